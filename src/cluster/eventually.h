// For tests: waits for what other threads or processes bring about.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/clock.h"

namespace datasystem {

// False when `condition` did not become true before the deadline.
inline bool Eventually(Duration deadline, const std::function<bool()>& condition) {
  const TimePoint end = Clock::Steady().Now() + deadline;
  while (!condition()) {
    if (Clock::Steady().Now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace datasystem
