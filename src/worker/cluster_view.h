// What this worker knows of the cluster right now: view, ring, and how long it may act on it.
// Threads: the event loop's.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/wait_list.h"
#include "cluster/hash_ring.h"
#include "cluster/view.h"
#include "transport/transport.h"

namespace datasystem::worker {

class ClusterView {
 public:
  ClusterView(asio::io_context& context, const Clock& clock, transport::PeerId self)
      : clock_(clock), self_(std::move(self)), changed_(context) {}

  // `ring` is that of the view's members.
  void Update(cluster::View view, cluster::SharedRing ring);
  void set_valid_until(TimePoint until) { valid_until_ = until; }
  void set_fence_reason(std::string reason) { fence_reason_ = std::move(reason); }
  // This worker is no member any more. Nothing that was begun as one may count: the epoch is none, until
  // the next Update.
  void Lose(std::string reason);

  const transport::PeerId& self() const { return self_; }
  uint64_t epoch() const { return view_.epoch; }
  const cluster::View& view() const { return view_; }
  TimePoint valid_until() const { return valid_until_; }
  const cluster::SharedRing& ring() const { return ring_; }

  // OK while this worker can prove that it is a member; else kNotReady with the reason. Nothing may be
  // read from or granted by a worker that is not.
  Status Serving() const;
  // OK if a peer's message was sent in the epoch that this worker is in.
  Status CheckEpoch(uint64_t epoch) const;

  bool IsSelf(const transport::PeerId& peer) const { return peer == self_; }
  // The worker whose directory shard has the key. The view must not be empty.
  transport::PeerId ShardOf(std::string_view key) const;
  // The address of the member with this incarnation, "" if there is none.
  std::string AddressOf(uint64_t incarnation) const;

  // Until the view changes or the deadline.
  asio::awaitable<void> WaitForChange(TimePoint deadline);

 private:
  const Clock& clock_;
  const transport::PeerId self_;
  cluster::View view_;
  cluster::SharedRing ring_ = std::make_shared<cluster::HashRing>();
  TimePoint valid_until_ = TimePoint::min();
  std::string fence_reason_ = "this worker has not joined its cluster yet";
  WaitList changed_;
};

}  // namespace datasystem::worker
