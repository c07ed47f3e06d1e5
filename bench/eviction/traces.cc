#include "eviction/traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace datasystem::bench {
namespace {

constexpr uint32_t kObjects = 200'000;
constexpr uint32_t kRequests = 3'000'000;
constexpr uint32_t kOneSize = 4096;

using Random = std::mt19937_64;

double Uniform(Random& random) { return std::uniform_real_distribution<double>(0, 1)(random); }

// Popular objects are spread over all numbers.
std::vector<uint32_t> Shuffled(uint32_t n, Random& random) {
  std::vector<uint32_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0U);
  std::ranges::shuffle(numbers, random);
  return numbers;
}

Trace ZipfTrace(double alpha, uint32_t objects, uint32_t requests) {
  Random random(1);
  const Zipf zipf(objects, alpha);
  const auto numbers = Shuffled(objects, random);
  Trace trace{.name = fmt::format("Zipf {}", alpha),
              .sizes = std::vector<uint32_t>(objects, kOneSize)};
  for (uint32_t i = 0; i < requests; ++i)
    trace.requests.push_back(numbers[zipf.At(Uniform(random))]);
  trace.base_bytes = uint64_t{objects} * kOneSize;
  return trace;
}

// Every now and then somebody reads a long row of objects once. The rows are a third of the
// requests.
Trace ScanInZipf() {
  Trace trace = ZipfTrace(0.99, kObjects, kRequests);
  trace.name = "Zipf 0.99 with scans";
  constexpr uint32_t kScan = 50'000;
  std::vector<uint32_t> mixed;
  uint32_t cold = kObjects;
  for (uint32_t i = 0; i < kRequests; ++i) {
    mixed.push_back(trace.requests[i]);
    if (i % (2 * kScan) != 0) continue;
    for (uint32_t n = 0; n < kScan; ++n) mixed.push_back(cold++);
  }
  trace.requests = std::move(mixed);
  trace.sizes.resize(cold, kOneSize);
  return trace;
}

// A working set that is read from end to end again and again: an epoch of training.
Trace Loop() {
  Trace trace{.name = "loop", .sizes = std::vector<uint32_t>(kObjects, kOneSize)};
  for (uint32_t i = 0; i < kRequests; ++i) trace.requests.push_back(i % kObjects);
  trace.base_bytes = uint64_t{kObjects} * kOneSize;
  return trace;
}

// Of the objects, 70 % are asked for once, ever; between them a Zipf over the rest.
Trace OneHitWonders() {
  Random random(2);
  constexpr uint32_t kHot = 60'000;
  const Zipf zipf(kHot, 0.9);
  const auto numbers = Shuffled(kHot, random);
  Trace trace{.name = "70 % one-hit wonders"};
  uint32_t cold = kHot;
  constexpr uint32_t kCold = kHot * 7 / 3;
  for (uint32_t i = 0; i < kRequests / 5; ++i) {
    const bool once =
        cold < kHot + kCold && Uniform(random) < static_cast<double>(kCold) / (kRequests / 5);
    trace.requests.push_back(once ? cold++ : numbers[zipf.At(Uniform(random))]);
  }
  trace.sizes.assign(cold, kOneSize);
  trace.base_bytes = uint64_t{cold} * kOneSize;
  return trace;
}

// What is popular changes: of the 1,000 most popular objects, `changes` trade places with others at
// each of 40 steps.
Trace Drift(uint32_t changes) {
  Random random(3);
  const Zipf zipf(kObjects, 0.99);
  auto numbers = Shuffled(kObjects, random);
  Trace trace{.name = fmt::format("Zipf 0.99, {} of the top 1000 change 40 times", changes),
              .sizes = std::vector<uint32_t>(kObjects, kOneSize)};
  for (uint32_t i = 0; i < kRequests; ++i) {
    if (i % (kRequests / 40) == 0) {
      for (uint32_t n = 0; n < changes; ++n)
        std::swap(numbers[n * (1000 / changes)], numbers[random() % kObjects]);
    }
    trace.requests.push_back(numbers[zipf.At(Uniform(random))]);
  }
  trace.base_bytes = uint64_t{kObjects} * kOneSize;
  return trace;
}

Trace ZipfOfMixedSizes() {
  constexpr uint32_t kMixed = 20'000;
  Trace trace = ZipfTrace(0.99, kMixed, kRequests / 3);
  trace.name = "Zipf 0.99, 1 KiB to 64 MiB";
  trace.sizes = MixedSizes(kMixed, 4);
  trace.base_bytes = std::accumulate(trace.sizes.begin(), trace.sizes.end(), uint64_t{0});
  return trace;
}

}  // namespace

Zipf::Zipf(uint32_t n, double alpha) : cumulative_(n) {
  double sum = 0;
  for (uint32_t i = 0; i < n; ++i) cumulative_[i] = sum += std::pow(i + 1.0, -alpha);
}

uint32_t Zipf::At(double uniform) const {
  const auto at = std::ranges::upper_bound(cumulative_, uniform * cumulative_.back());
  return static_cast<uint32_t>(std::min<ptrdiff_t>(at - cumulative_.begin(),
                                                   static_cast<ptrdiff_t>(cumulative_.size()) - 1));
}

std::vector<uint32_t> MixedSizes(uint32_t objects, uint64_t seed) {
  Random random(seed);
  std::vector<uint32_t> sizes(objects);
  for (uint32_t& size : sizes) size = static_cast<uint32_t>(std::exp2(10 + 16 * Uniform(random)));
  return sizes;
}

std::vector<Trace> AllTraces() {
  std::vector<Trace> traces;
  for (const double alpha : {0.7, 0.99, 1.2})
    traces.push_back(ZipfTrace(alpha, kObjects, kRequests));
  traces.push_back(ScanInZipf());
  traces.push_back(Loop());
  traces.push_back(OneHitWonders());
  for (const uint32_t changes : {50U, 1000U}) traces.push_back(Drift(changes));
  traces.push_back(ZipfOfMixedSizes());
  return traces;
}

}  // namespace datasystem::bench
