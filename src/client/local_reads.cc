#include "client/local_reads.h"

#include "client/kv_client_impl.h"

namespace datasystem::client {

LocalReads::LocalReads(KVClient& client) {
  auto session = client.impl_->Local();
  if (session.ok() && (*session)->index() != nullptr) session_ = *std::move(session);
}

// An illegal key is not in the index: to say what is wrong with it is the business of the other way.
std::optional<shm::PinnedValue> LocalReads::Find(std::string_view key) const {
  return session_ == nullptr ? std::nullopt : session_->index()->Find(key);
}

bool LocalReads::Has(std::string_view key) const {
  return session_ != nullptr && session_->index()->SizeOf(key).has_value();
}

ReadOnlyBuffer LocalReads::ToView(shm::PinnedValue value) const {
  auto view = std::make_shared<ReadOnlyBuffer::Impl>();
  view->bytes = value.bytes;
  view->local_pin = LocalPin(session_, std::move(value.pin));
  return ReadOnlyBuffer(std::move(view));
}

}  // namespace datasystem::client
