// One value on its way from another worker, until it is kept here or given to its reader only.
//
// It may be kept only if the shard has listed this worker for just this version, in the epoch that still is,
// and if no invalidation came in between: so this must exist before the shard is asked.
// Threads: the event loop's.
#pragma once

#include <string>

#include "worker/holder.h"
#include "worker/node.h"

namespace datasystem::worker {

class Landing {
 public:
  // `keep_copies`: enable_data_replication.
  Landing(const Node& node, const Holder& holder, std::string key, bool keep_copies);

  const std::string& key() const { return key_; }
  // Whether the shard should list this worker.
  bool may_keep() const { return may_keep_; }

  struct Arrival {
    uint64_t version = 0;
    uint64_t ttl_remaining_ms = 0;
    bool listed = false;
    bool evictable = false;
  };
  // Takes the extent unless it fails. Errors as ObjectStore::Publish.
  Result<store::ObjectRef> Take(const Arrival& arrival, shm::Extent& extent) const;

 private:
  const Node& node_;
  const std::string key_;
  const bool may_keep_;
  const uint64_t epoch_;
  const PendingKeys::Operation operation_;
};

}  // namespace datasystem::worker
