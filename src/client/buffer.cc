#include "client/buffer_impl.h"
#include "client/copy.h"

namespace datasystem {

Buffer::Buffer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Buffer::Buffer(Buffer&&) noexcept = default;
Buffer& Buffer::operator=(Buffer&&) noexcept = default;
Buffer::~Buffer() = default;

int64_t Buffer::GetSize() const {
  return static_cast<int64_t>(impl_->read_only != nullptr ? impl_->read_only->bytes.size()
                                                          : impl_->size);
}

void* Buffer::MutableData() { return impl_->writable().data(); }

const void* Buffer::ImmutableData() const {
  return impl_->read_only != nullptr ? impl_->read_only->bytes.data() : impl_->writable().data();
}

Status Buffer::MemoryCopy(const void* data, uint64_t length) {
  if (impl_->read_only != nullptr) {
    return errors::Invalid("a buffer from Get cannot be written: use Create for a new value");
  }
  const std::span<std::byte> to = impl_->writable();
  if (to.empty())
    return errors::Invalid("the buffer has been published and cannot be written any more");
  if (length > to.size()) {
    return errors::Invalid("{} bytes are more than the {} of the buffer", length, to.size());
  }
  client::Copy(to, {static_cast<const std::byte*>(data), length});
  return Status::OK();
}

Status Buffer::WLatch(uint64_t timeoutSec) { return impl_->latch.LockExclusive(timeoutSec); }
Status Buffer::RLatch(uint64_t timeoutSec) { return impl_->latch.LockShared(timeoutSec); }
Status Buffer::UnWLatch() { return impl_->latch.UnlockExclusive(); }
Status Buffer::UnRLatch() { return impl_->latch.UnlockShared(); }

ReadOnlyBuffer::ReadOnlyBuffer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

int64_t ReadOnlyBuffer::GetSize() const { return static_cast<int64_t>(impl_->bytes.size()); }
const void* ReadOnlyBuffer::ImmutableData() const { return impl_->bytes.data(); }
Status ReadOnlyBuffer::RLatch(uint64_t) const { return Status::OK(); }
Status ReadOnlyBuffer::UnRLatch() const { return Status::OK(); }

}  // namespace datasystem
