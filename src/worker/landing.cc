#include "worker/landing.h"

namespace datasystem::worker {

Landing::Landing(const Node& node, const Holder& holder, std::string key, bool keep_copies)
    : node_(node),
      key_(std::move(key)),
      may_keep_(keep_copies && !holder.Untold(key_)),
      epoch_(node.view.epoch()),
      operation_(node.pending, key_, PendingKeys::Kind::kFetch) {}

Result<store::ObjectRef> Landing::Take(const Arrival& arrival, shm::Extent& extent) const {
  store::ObjectMeta meta;
  meta.version = arrival.version;
  meta.role = store::Role::kReplica;
  meta.evictable = arrival.evictable;  // as a replica it may go anyway
  meta.expires_at = ExpiryOf(node_.clock, arrival.ttl_remaining_ms);
  const store::ObjectRef newest = node_.store.Find(key_);
  const bool keep = may_keep_ && arrival.listed && node_.view.epoch() == epoch_ &&
                    arrival.version > operation_.invalidated_up_to() &&
                    (!newest || newest->meta().version < arrival.version);
  return keep ? node_.store.Publish(key_, meta, extent)
              : node_.store.MakeUnlinked(key_, meta, extent);
}

}  // namespace datasystem::worker
