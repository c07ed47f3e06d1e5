// bench_shard_keys PREFIX COUNT SHARD MEMBER...: COUNT keys whose directory shard is the worker
// SHARD in a cluster of the MEMBERs (addresses), one a line.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cluster/hash_ring.h"

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: bench_shard_keys PREFIX COUNT SHARD MEMBER...\n");
    return 2;
  }
  const std::string prefix = argv[1];
  const long count = std::atol(argv[2]);
  const std::string shard = argv[3];
  const datasystem::cluster::HashRing ring({argv + 4, argv + argc});
  // A member has about its share of the keys: the bound is only there to end for one that is none.
  const long tries_max = (count + 100) * 100 * (argc - 4);
  long found = 0;
  for (long i = 0; found < count && i < tries_max; ++i) {
    const std::string key = prefix + std::to_string(i);
    if (ring.OwnerOf(key) != shard) continue;
    std::puts(key.c_str());
    ++found;
  }
  return found == count ? 0 : 1;
}
