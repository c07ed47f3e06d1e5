// How much one answer to GetMany gathers.
#pragma once

#include <cstdint>

namespace datasystem::worker {

struct ManyLimits {
  uint64_t value_max = 64 << 10;  // oc_worker_aggregate_single_max
  uint64_t answer_max = 2 << 20;  // oc_worker_aggregate_merge_size
};

}  // namespace datasystem::worker
