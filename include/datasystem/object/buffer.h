// Memory of one value, filled or read in place.
#pragma once

#include <cstdint>
#include <memory>

#include "datasystem/utils/status.h"

namespace datasystem {

// Two kinds:
// - from KVClient::Create: writable until KVClient::Set(buffer) publishes it, after which it is spent:
//   it has a size but no data. Destroyed unpublished, it gives its memory back and nothing was stored.
// - from KVClient::Get: a view of the stored value, which never changes (an overwrite makes a new
//   object) and whose memory is not reused while the buffer lives, KVClient::ShutDown included.
//
// Threads: different threads may read, or write different bytes; the latch orders them where they need
// it. The latch works inside this process: no other process sees an unpublished buffer, and nobody
// changes a published one.
class DATASYSTEM_API Buffer {
 public:
  struct Impl;

  // For KVClient.
  explicit Buffer(std::shared_ptr<Impl> impl);
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();

  int64_t GetSize() const;
  // Null when the buffer is not writable (came from Get, or is spent).
  void* MutableData();
  // Null when the buffer is spent.
  const void* ImmutableData() const;
  // Copies `length` bytes to the start. K_INVALID: longer than the buffer, or not writable.
  Status MemoryCopy(const void* data, uint64_t length);

  // K_TRY_AGAIN after `timeoutSec` seconds without success.
  Status WLatch(uint64_t timeoutSec = 60);
  Status RLatch(uint64_t timeoutSec = 60);
  // K_INVALID when no latch of that kind is held.
  Status UnWLatch();
  Status UnRLatch();

  // For KVClient.
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace datasystem
