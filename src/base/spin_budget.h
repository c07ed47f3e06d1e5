// How long to look for something again and again before sleeping until it comes.
//
// Waking up takes 15 to 30 us on virtual cores, longer than most answers: who looks that long saves it. As the
// kernel's haltpoll does, the spin follows what the last waits were like: after a short one it is worth it, after a
// long one half of it. Between two looks the core is offered to others: the other side may be waiting for this very
// one, and gets it sooner than by a wake-up.
//
// Use: Begin(), then look and Yield() while Spinning(), then sleep unless found; at last Found().
// Threads: one at a time.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>

namespace datasystem {

// Between two looks at memory that another core writes.
inline void CpuPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class SpinBudget {
 public:
  using Clock = std::chrono::steady_clock;
  using Duration = std::chrono::nanoseconds;

  // `max` 0: never.
  explicit SpinBudget(Duration max) : max_(max), budget_(max) {}

  void Begin() { begun_ = Clock::now(); }
  bool Spinning() const { return budget_ > Duration(0) && Clock::now() - begun_ < budget_; }

  void Yield() { ::sched_yield(); }

  // It came, during the spin or after sleeping.
  void Found() {
    // A wait that ended in sleep is seen longer than it was, by a wake-up, which takes about as long as a spin may.
    if (Clock::now() - begun_ <= 2 * max_) {
      budget_ = max_;
    } else {
      budget_ = budget_ / 2 < std::chrono::microseconds(1) ? Duration(0) : budget_ / 2;
    }
  }

 private:
  const Duration max_;
  Duration budget_;
  Clock::time_point begun_{};
};

}  // namespace datasystem
