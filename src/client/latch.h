// A reader/writer latch with a time-out that, unlike std::shared_timed_mutex, may be released by another
// thread than the one that took it, and says when it was not held.
#pragma once

#include <condition_variable>
#include <mutex>

#include "base/result.h"

namespace datasystem::client {

class Latch {
 public:
  Status LockShared(uint64_t timeout_sec);
  Status LockExclusive(uint64_t timeout_sec);
  // kInvalid: it was not held that way.
  Status UnlockShared();
  Status UnlockExclusive();

 private:
  std::mutex mutex_;
  std::condition_variable released_;
  uint32_t readers_ = 0;
  bool writer_ = false;
};

}  // namespace datasystem::client
