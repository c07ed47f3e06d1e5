// Follows the cluster: takes over each new view, and has the directory shard's new ranges reported by all
// members before it answers for them.
// Threads: the event loop's.
#pragma once

#include <functional>

#include "worker/holder.h"
#include "worker/node.h"

namespace datasystem::worker {

class RingFollower {
 public:
  // `settled` is called each time that the shard answers for all of its keys.
  RingFollower(const Node& node, Holder& holder, std::function<void()> settled)
      : node_(node), holder_(holder), settled_(std::move(settled)) {}

  void OnView(cluster::View view, cluster::SharedRing ring);
  // This worker's lease is lost: whatever it held may have been changed by others since.
  // Returns how many objects were dropped.
  size_t OnLost(const std::string& reason);

 private:
  asio::awaitable<void> Collect(uint64_t epoch);
  asio::awaitable<bool> CollectFrom(transport::PeerId peer, uint64_t epoch);
  void ReportOwn(uint64_t epoch);

  const Node& node_;
  Holder& holder_;
  const std::function<void()> settled_;
};

}  // namespace datasystem::worker
