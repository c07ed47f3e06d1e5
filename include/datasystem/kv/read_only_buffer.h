// A stored value, read in place.
#pragma once

#include <cstdint>
#include <memory>

#include "datasystem/utils/status.h"

namespace datasystem {

// The bytes never change: an overwrite of the key makes a new object. Their memory is not reused while
// the buffer or a copy of it lives, KVClient::ShutDown included. Copies share one view.
// Threads: any.
class DATASYSTEM_API ReadOnlyBuffer {
 public:
  struct Impl;

  // For KVClient.
  explicit ReadOnlyBuffer(std::shared_ptr<const Impl> impl);

  int64_t GetSize() const;
  const void* ImmutableData() const;

  // For programs that latch before they read. There is no writer to wait for, so both always succeed.
  Status RLatch(uint64_t timeoutSec = 60) const;
  Status UnRLatch() const;

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace datasystem
