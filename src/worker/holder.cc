#include "worker/holder.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <map>

namespace datasystem::worker {
namespace {

constexpr auto kNoticeTimeout = std::chrono::seconds(5);
constexpr auto kRetryPause = std::chrono::milliseconds(5);
// How long to wait for news of the cluster before an unreachable holder is tried again.
constexpr auto kUnreachablePause = std::chrono::milliseconds(100);
// Entries in one notice: far below the transport's largest body even with the longest keys.
constexpr size_t kNoticeEntriesMax = 4096;

}  // namespace

asio::awaitable<Status> Holder::Invalidate(directory::HolderId holder, std::string key,
                                           uint64_t version, TimePoint deadline) {
  const Node& node = *node_;
  if (holder == node.view.self().incarnation) {
    InvalidateHere(key, version);
    co_return Status::OK();
  }
  const uint64_t epoch = node.view.epoch();
  for (;;) {
    if (node.view.epoch() != epoch) {
      co_return errors::TryAgain("the cluster changed while copies were being dropped");
    }
    // A holder that left the cluster is struck off with the epoch that removed it.
    const std::string address = node.view.AddressOf(holder);
    if (address.empty()) co_return Status::OK();
    const transport::PeerId peer{address, holder};
    proto::PeerVersionedKey message;
    message.epoch = epoch;
    message.key = key;
    message.version = version;
    std::string body = message.Encode();
    auto answer = co_await node.transport.Call(
        peer, static_cast<uint16_t>(proto::PeerMessage::kInvalidate), std::move(body), deadline);
    if (answer.ok()) co_return Status::OK();
    if (node.clock.Now() >= deadline) {
      co_return errors::DeadlineExceeded("worker {} did not drop its copy in time: {}", address,
                                         answer.status().GetMsg());
    }
    const bool behind = answer.status().GetCode() == K_TRY_AGAIN;
    const TimePoint retry = node.clock.Now() + (behind ? Duration(kRetryPause) : kUnreachablePause);
    co_await node.view.WaitForChange(std::min(deadline, retry));
  }
}

void Holder::Promote(directory::HolderId holder, std::string key, uint64_t version) {
  if (holder == node_->view.self().incarnation) {
    PromoteHere(key, version);
    return;
  }
  const std::string address = node_->view.AddressOf(holder);
  if (address.empty()) return;
  asio::co_spawn(node_->context, SendPromote({address, holder}, std::move(key), version), asio::detached);
}

asio::awaitable<void> Holder::SendPromote(transport::PeerId peer, std::string key, uint64_t version) {
  proto::PeerVersionedKey message;
  message.epoch = node_->view.epoch();
  message.key = std::move(key);
  message.version = version;
  std::string body = message.Encode();
  const TimePoint deadline = node_->clock.Now() + kNoticeTimeout;
  // If it does not arrive, the copy stays evictable: an eviction will be reported like any other.
  co_await node_->transport.Call(peer, static_cast<uint16_t>(proto::PeerMessage::kPromote),
                                 std::move(body), deadline);
}

void Holder::InvalidateHere(std::string_view key, uint64_t version) {
  node_->pending.Invalidate(key, version);
  node_->store.Erase(key, version);
}

void Holder::PromoteHere(std::string_view key, uint64_t version) {
  node_->store.Promote(key, version);
}

void Holder::NoteDropped(std::string key, uint64_t version) {
  proto::PeerEntry entry;
  entry.key = std::move(key);
  entry.version = version;
  dropped_.push_back(std::move(entry));
  if (std::exchange(flush_scheduled_, true)) return;
  // Later: the store may be in the middle of something.
  asio::co_spawn(node_->context, FlushDropped(), asio::detached);
}

asio::awaitable<void> Holder::FlushDropped() {
  co_await asio::post(node_->context, asio::use_awaitable);
  flush_scheduled_ = false;
  const std::vector<proto::PeerEntry> dropped = std::exchange(dropped_, {});
  if (node_->view.ring()->empty()) co_return;
  std::map<std::string, std::pair<transport::PeerId, proto::PeerEntries>> by_shard;
  for (const proto::PeerEntry& entry : dropped) {
    const transport::PeerId shard = node_->view.ShardOf(entry.key);
    if (node_->view.IsSelf(shard)) {
      node_->directory.Dropped(entry.key, entry.version, shard.incarnation);
      continue;
    }
    auto& [peer, notice] = by_shard[shard.address];
    peer = shard;
    notice.entries.push_back(entry);
  }
  const TimePoint deadline = node_->clock.Now() + kNoticeTimeout;
  for (auto& [address, target] : by_shard) {
    auto& [peer, all] = target;
    for (size_t from = 0; from < all.entries.size(); from += kNoticeEntriesMax) {
      proto::PeerEntries notice;
      notice.epoch = node_->view.epoch();
      const size_t to = std::min(all.entries.size(), from + kNoticeEntriesMax);
      notice.entries.assign(all.entries.begin() + from, all.entries.begin() + to);
      std::string body = notice.Encode();
      // A lost notice costs a detour: the shard learns of it when it sends a reader here.
      co_await node_->transport.Call(peer, static_cast<uint16_t>(proto::PeerMessage::kDropped),
                                     std::move(body), deadline);
    }
  }
}

std::vector<proto::PeerEntry> Holder::EntriesFor(const transport::PeerId& shard) const {
  std::vector<proto::PeerEntry> entries;
  const cluster::SharedRing ring = node_->view.ring();
  if (node_->view.AddressOf(shard.incarnation) != shard.address) return entries;
  node_->store.ForEach([&](const store::Object& object) {
    if (ring->OwnerOf(object.key()) != shard.address) return;
    proto::PeerEntry entry;
    entry.key = object.key();
    entry.version = object.meta().version;
    entry.size = object.size();
    entry.primary = object.meta().role == store::Role::kPrimary;
    entry.ttl_remaining_ms = TtlMs(node_->clock, object.meta().expires_at);
    entries.push_back(std::move(entry));
  });
  return entries;
}

}  // namespace datasystem::worker
