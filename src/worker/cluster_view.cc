#include "worker/cluster_view.h"

namespace datasystem::worker {

void ClusterView::Update(cluster::View view, cluster::SharedRing ring) {
  view_ = std::move(view);
  ring_ = std::move(ring);
  changed_.NotifyAll();
}

void ClusterView::Lose(std::string reason) {
  view_.epoch = 0;
  valid_until_ = TimePoint::min();
  fence_reason_ = std::move(reason);
  changed_.NotifyAll();
}

Status ClusterView::Serving() const {
  if (clock_.Now() >= valid_until_) {
    return errors::NotReady("worker {} may not serve now: {}", self_.address, fence_reason_);
  }
  return Status::OK();
}

Status ClusterView::CheckEpoch(uint64_t epoch) const {
  if (epoch == view_.epoch) return Status::OK();
  return errors::TryAgain("worker {} is in epoch {}, the message in {}", self_.address, view_.epoch,
                          epoch);
}

transport::PeerId ClusterView::ShardOf(std::string_view key) const {
  const cluster::Member* member = view_.Find(ring_->OwnerOf(key));
  CHECK(member != nullptr);  // the ring is made of the view's addresses
  return {member->address, member->incarnation};
}

std::string ClusterView::AddressOf(uint64_t incarnation) const {
  for (const cluster::Member& member : view_.members) {
    if (member.incarnation == incarnation) return member.address;
  }
  return "";
}

asio::awaitable<void> ClusterView::WaitForChange(TimePoint deadline) {
  co_await changed_.Wait(deadline);
}

}  // namespace datasystem::worker
