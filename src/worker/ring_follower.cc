#include "worker/ring_follower.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include "base/log.h"

namespace datasystem::worker {
namespace {

constexpr auto kCollectTimeout = std::chrono::seconds(60);
constexpr auto kRetryPause = std::chrono::milliseconds(10);
constexpr auto kUnreachablePause = std::chrono::milliseconds(200);

}  // namespace

void RingFollower::OnView(cluster::View view, cluster::SharedRing ring) {
  if (view.epoch <= node_.view.epoch()) return;
  const transport::PeerId self = node_.view.self();
  const cluster::Member* me = view.Find(self.address);
  // Without this worker, or with a successor at its address: the lease is lost, and Membership says so.
  if (me == nullptr || me->incarnation != self.incarnation) return;

  std::vector<transport::Peer> peers;
  std::string members;
  for (const cluster::Member& member : view.members) {
    members += (members.empty() ? "" : ",") + member.address;
    if (member.address == self.address) continue;
    peers.push_back({{member.address, member.incarnation}, member.endpoint});
  }
  const uint64_t epoch = view.epoch;
  LOG_INFO("cluster view epoch={} members={} addresses={}", epoch, view.members.size(), members);
  node_.view.Update(std::move(view), ring);
  node_.transport.SetPeers(std::move(peers));
  if (node_.directory.BeginEpoch(node_.view.view(), std::move(ring), self.incarnation)) {
    asio::co_spawn(node_.context, Collect(epoch), asio::detached);
  }
}

size_t RingFollower::OnLost(const std::string& reason) {
  node_.view.Lose(reason);
  node_.directory.Reset();
  return node_.store.Clear();
}

void RingFollower::ReportOwn(uint64_t epoch) {
  std::vector<directory::Copy> copies;
  for (proto::PeerEntry& entry : holder_.EntriesFor(node_.view.self())) {
    directory::Copy copy;
    copy.key = std::move(entry.key);
    copy.version = entry.version;
    copy.primary = entry.primary;
    copy.expires_at = ExpiryOf(node_.clock, entry.ttl_remaining_ms);
    copies.push_back(std::move(copy));
  }
  // Own copies come first, so none of them can be stale yet.
  node_.directory.Report(epoch, node_.view.self().incarnation, copies);
}

asio::awaitable<void> RingFollower::Collect(uint64_t epoch) {
  const TimePoint started = node_.clock.Now();
  ReportOwn(epoch);
  const std::vector<cluster::Member> members = node_.view.view().members;
  for (const cluster::Member& member : members) {
    if (member.incarnation == node_.view.self().incarnation) continue;
    const transport::PeerId peer{member.address, member.incarnation};
    const bool reported = co_await CollectFrom(peer, epoch);
    if (!reported) co_return;  // the next epoch collects again
  }
  node_.directory.Settle(epoch);
  LOG_INFO("directory shard is complete epoch={} entries={} after_ms={}", epoch,
           node_.directory.entries(),
           std::chrono::duration_cast<std::chrono::milliseconds>(node_.clock.Now() - started).count());
  settled_();
}

asio::awaitable<bool> RingFollower::CollectFrom(transport::PeerId peer, uint64_t epoch) {
  while (node_.directory.epoch() == epoch && node_.view.epoch() == epoch) {
    proto::PeerCollect message;
    message.epoch = epoch;
    std::string body = message.Encode();
    const TimePoint deadline = node_.clock.Now() + kCollectTimeout;
    auto answer = co_await node_.transport.Call(
        peer, static_cast<uint16_t>(proto::PeerMessage::kCollect), std::move(body), deadline);
    if (answer.ok()) co_return node_.view.epoch() == epoch;
    const bool behind = answer.status().GetCode() == K_TRY_AGAIN;
    if (!behind) {
      LOG_DEBUG("member has not reported yet peer={} epoch={} reason={}", peer.address, epoch,
                answer.status().ToString());
    }
    co_await node_.view.WaitForChange(node_.clock.Now() +
                                      (behind ? Duration(kRetryPause) : kUnreachablePause));
  }
  co_return false;
}

}  // namespace datasystem::worker
