// Monotonic time. Protocol logic takes a Clock so that tests move time by hand.
#pragma once

#include <chrono>

namespace datasystem {

// CLOCK_MONOTONIC: comparable between processes of one node, not between nodes.
using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;

  // The real one. Threads: any.
  static const Clock& Steady();
};

// Threads: none; move it only from the test's own thread.
class FakeClock final : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{std::chrono::hours(1)};
};

}  // namespace datasystem
