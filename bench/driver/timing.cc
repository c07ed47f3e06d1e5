#include "driver/timing.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace datasystem::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kGroupNs = 2000;
constexpr size_t kGroupMax = 64;

double NsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

Timing Summary(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double rank) {
    return samples[static_cast<size_t>(rank * (samples.size() - 1))];
  };
  const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  return {.p50_ns = at(0.5), .p99_ns = at(0.99), .mean_ns = sum / samples.size(), .max_ns = samples.back()};
}

Timing TimeGroups(size_t count, size_t group, const std::function<void(size_t)>& operation) {
  std::vector<double> samples;
  samples.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto start = Clock::now();
    for (size_t n = 0; n < group; ++n) operation(i);
    samples.push_back(NsSince(start) / static_cast<double>(group));
  }
  return Summary(std::move(samples));
}

}  // namespace

std::string Timing::ToJson() const {
  char text[200];
  std::snprintf(text, sizeof(text), R"({"p50_ns": %.1f, "p99_ns": %.1f, "mean_ns": %.1f, "max_ns": %.1f})",
                p50_ns, p99_ns, mean_ns, max_ns);
  return text;
}

Timing TimeEach(size_t count, const std::function<void(size_t)>& operation) {
  return TimeGroups(count, 1, operation);
}

Timing TimePaced(double interval_ns, double seconds, uint64_t seed,
                 const std::function<void()>& operation) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> pause(1 / interval_ns);
  std::vector<double> samples;
  const auto begun = Clock::now();
  while (NsSince(begun) < seconds * 1e9) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<int64_t>(pause(random))));
    const auto start = Clock::now();
    operation();
    samples.push_back(NsSince(start));
  }
  return Summary(std::move(samples));
}

Timing TimeRepeated(size_t count, const std::function<void(size_t)>& operation) {
  // A tenth more, so that memory is mapped and connections are warm.
  const Timing warm = TimeGroups(count / 10 + 1, 1, operation);
  const size_t group =
      warm.p50_ns >= 1000 ? 1 : static_cast<size_t>(kGroupNs / std::max(warm.p50_ns, 1.0));
  return TimeGroups(count, std::clamp<size_t>(group, 1, kGroupMax), operation);
}

}  // namespace datasystem::bench
