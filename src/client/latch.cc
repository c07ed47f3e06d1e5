#include "client/latch.h"

#include <algorithm>
#include <chrono>

namespace datasystem::client {
namespace {

// Beyond it, adding to the clock could overflow.
constexpr uint64_t kTimeoutMaxSec = 1'000'000'000;

std::chrono::seconds Timeout(uint64_t sec) {
  return std::chrono::seconds(std::min(sec, kTimeoutMaxSec));
}

Status NotObtained(uint64_t timeout_sec) {
  return errors::TryAgain("the buffer's latch was not released within {} s", timeout_sec);
}

}  // namespace

Status Latch::LockShared(uint64_t timeout_sec) {
  std::unique_lock lock(mutex_);
  if (!released_.wait_for(lock, Timeout(timeout_sec), [this] { return !writer_; })) {
    return NotObtained(timeout_sec);
  }
  ++readers_;
  return Status::OK();
}

Status Latch::LockExclusive(uint64_t timeout_sec) {
  std::unique_lock lock(mutex_);
  if (!released_.wait_for(lock, Timeout(timeout_sec), [this] { return !writer_ && readers_ == 0; })) {
    return NotObtained(timeout_sec);
  }
  writer_ = true;
  return Status::OK();
}

Status Latch::UnlockShared() {
  std::lock_guard lock(mutex_);
  if (readers_ == 0) return errors::Invalid("the buffer's read latch is not held");
  --readers_;
  released_.notify_all();
  return Status::OK();
}

Status Latch::UnlockExclusive() {
  std::lock_guard lock(mutex_);
  if (!writer_) return errors::Invalid("the buffer's write latch is not held");
  writer_ = false;
  released_.notify_all();
  return Status::OK();
}

}  // namespace datasystem::client
