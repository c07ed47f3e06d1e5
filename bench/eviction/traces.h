// Requests for objects, in shapes that published cache traces have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace datasystem::bench {

struct Trace {
  std::string name;
  std::vector<uint32_t> sizes;     // of the objects, bytes
  std::vector<uint32_t> requests;  // numbers of objects
  uint64_t base_bytes = 0;         // what cache sizes are shares of
};

// Seeded: the same in every run.
std::vector<Trace> AllTraces();
// Log-uniform between 1 KiB and 64 MiB.
std::vector<uint32_t> MixedSizes(uint32_t objects, uint64_t seed);
// Ranks 0 to n-1, by the power law 1/rank^alpha.
class Zipf {
 public:
  Zipf(uint32_t n, double alpha);
  uint32_t At(double uniform) const;  // [0, 1)

 private:
  std::vector<double> cumulative_;
};

}  // namespace datasystem::bench
