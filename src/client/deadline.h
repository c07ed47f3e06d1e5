// When a call must have ended, and how long it was given (for its error text).
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace datasystem::client {

class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds timeout)
      : timeout_(timeout), at_(Clock::Steady().Now() + timeout) {}

  std::chrono::milliseconds timeout() const { return timeout_; }
  TimePoint at() const { return at_; }
  // Rounded up; 0 once it has passed.
  std::chrono::milliseconds remaining() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::Steady().Now());
    return std::max(left, std::chrono::milliseconds(0));
  }
  // What the worker is told, a little less, so that its answer, which knows the reason, comes first.
  uint32_t worker_timeout_ms() const {
    const int64_t left = remaining().count();
    return static_cast<uint32_t>(
        std::clamp<int64_t>(left - std::min<int64_t>(left / 10, 100), 1, UINT32_MAX));
  }

 private:
  std::chrono::milliseconds timeout_;
  TimePoint at_;
};

}  // namespace datasystem::client
