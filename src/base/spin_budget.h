// How long to look for something again and again before sleeping until it comes.
//
// Waking up takes 15 to 30 us on these machines' virtual cores, longer than most answers: who spins that long
// saves it. Spinning pays only while the other side works on another core. On busy cores it keeps the other
// side from running: every hop then takes the whole spin longer (measured at load 16 on 2 cores: round
// trips of 45 us without, 85 us with 20 us of spin). So a spin that finds nothing halves the next, and one
// in kProbeEvery waits is preceded by a full one, to notice when it would pay again.
//
// Threads: one at a time.
#pragma once

#include <chrono>
#include <cstdint>

namespace datasystem {

class SpinBudget {
 public:
  using Duration = std::chrono::nanoseconds;
  // `max` 0: never.
  explicit SpinBudget(Duration max) : max_(max), budget_(max) {}

  Duration budget() const { return budget_; }
  // What was looked for came during the spin.
  void Hit() { budget_ = max_; }
  void Missed() {
    budget_ = budget_ / 2 < std::chrono::microseconds(1) ? Duration(0) : budget_ / 2;
    if (++misses_ % kProbeEvery == 0) budget_ = max_;
  }

 private:
  static constexpr uint64_t kProbeEvery = 64;
  const Duration max_;
  Duration budget_;
  uint64_t misses_ = 0;
};

}  // namespace datasystem
