// How operations are timed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace datasystem::bench {

struct Timing {
  double p50_ns = 0;
  double p99_ns = 0;
  double mean_ns = 0;
  double max_ns = 0;

  std::string ToJson() const;
};

// Runs `operation(0)` to `operation(count - 1)` and times each by itself.
Timing TimeEach(size_t count, const std::function<void(size_t)>& operation);

// Starts an operation every `interval_ns` on average, at random times, for `seconds`.
Timing TimePaced(double interval_ns, double seconds, uint64_t seed, const std::function<void()>& operation);

// As TimeEach, after a warm-up, for an operation that may be repeated at will: one that takes less
// than a microsecond is timed in groups, since reading the clock would be a large part of it.
Timing TimeRepeated(size_t count, const std::function<void(size_t)>& operation);

}  // namespace datasystem::bench
