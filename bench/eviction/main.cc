// bench_eviction: the tables of docs/decisions/0011.md. Takes no arguments, about a minute.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "eviction/policies.h"
#include "eviction/traces.h"
#include "shm/cache_memory.h"

namespace datasystem::bench {
namespace {

struct Outcome {
  double miss_ratio = 0;
  double ns = 0;  // a request
};

template <typename P>
Outcome Run(const Trace& trace, uint64_t capacity) {
  P policy(trace.sizes, capacity);
  uint64_t misses = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const uint32_t object : trace.requests) {
    if (policy.Hit(object)) continue;
    ++misses;
    if (trace.sizes[object] <= capacity) policy.Add(object);
  }
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
  const auto requests = static_cast<double>(trace.requests.size());
  return {.miss_ratio = static_cast<double>(misses) / requests, .ns = time.count() / requests};
}

void Compare() {
  fmt::print("| requests | cache | FIFO | LRU | S3-FIFO | SIEVE |\n|---|---|---|---|---|---|\n");
  double ns[4] = {};
  int runs = 0;
  for (const Trace& trace : AllTraces()) {
    for (const double share :
         trace.name == "loop" ? std::vector{0.5, 0.9, 0.98} : std::vector{0.01, 0.1, 0.3}) {
      const auto capacity = static_cast<uint64_t>(share * static_cast<double>(trace.base_bytes));
      const Outcome outcomes[] = {Run<Fifo>(trace, capacity), Run<Lru>(trace, capacity),
                                  Run<S3Fifo>(trace, capacity), Run<Sieve>(trace, capacity)};
      fmt::print("| {} | {:.0f} % |", trace.name, share * 100);
      for (int i = 0; i < 4; ++i) {
        fmt::print(" {:.1f} % |", outcomes[i].miss_ratio * 100);
        ns[i] += outcomes[i].ns;
      }
      fmt::print("\n");
      ++runs;
    }
  }
  fmt::print("| ns a request, mean | |");
  for (const double sum : ns) fmt::print(" {:.0f} |", sum / runs);
  fmt::print("\n\n");
}

// Fills real cache memory with three times its size of 1 KiB to 64 MiB, evicting by SIEVE until the
// next value fits. Half of the values are read afterwards now and then, so that what stays lies
// scattered.
void Fragmentation(uint64_t size_bytes) {
  constexpr uint32_t kValues = 1'000'000;
  const auto sizes = MixedSizes(kValues, 7);
  auto memory = shm::CacheMemory::Create(
      {.size_bytes = size_bytes, .head_room = [] { return shm::HeadRoom{}; }});
  Sieve sieve(sizes, size_bytes);
  std::vector<shm::Extent> extents(kValues);
  std::mt19937_64 random(8);
  std::vector<double> shares;
  uint64_t written = 0;
  uint64_t evictions = 0;
  uint32_t value = 0;
  for (; value < kValues && written < 3 * size_bytes; ++value) {
    auto extent = (*memory)->Reserve(sizes[value]);
    const double share =
        static_cast<double>((*memory)->usage().allocated_bytes) / static_cast<double>(size_bytes);
    if (!extent.ok()) shares.push_back(share);
    while (!extent.ok()) {
      const uint32_t victim = sieve.Evict();
      if (victim == kNone) break;
      extents[victim] = shm::Extent();
      ++evictions;
      extent = (*memory)->Reserve(sizes[value]);
    }
    if (!extent.ok()) {
      fmt::print("{} bytes do not fit\n", sizes[value]);
      return;
    }
    extents[value] = std::move(extent).value();
    sieve.Insert(value);
    written += sizes[value];
    if (random() % 2 == 0) sieve.Hit(static_cast<uint32_t>(random() % (value + 1)));
  }
  std::ranges::sort(shares);
  if (shares.empty()) return;
  fmt::print("| {} MiB | {} | {} | {:.1f} % | {:.1f} % | {:.1f} % |\n", size_bytes >> 20, value,
             evictions, shares.front() * 100, shares[shares.size() / 2] * 100, shares.back() * 100);
  extents.clear();
}

}  // namespace
}  // namespace datasystem::bench

int main() {
  using namespace datasystem::bench;  // NOLINT
  Compare();
  fmt::print(
      "| memory | values | evicted | share in use when the next does not fit: least | median | "
      "most |\n");
  fmt::print("|---|---|---|---|---|---|\n");
  for (const uint64_t mib : {512, 1024, 4096, 8192}) Fragmentation(mib << 20);
}
