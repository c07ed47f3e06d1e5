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
// How long the expiry of a value waits for the set that is about to publish it. Not longer: while it waits, the
// shard lets no other set of the key be granted, and that set may be of this very worker.
constexpr auto kPublishPause = std::chrono::milliseconds(50);
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

asio::awaitable<Status> Holder::SetExpiry(directory::HolderId holder, std::string key, uint64_t version,
                                          TimePoint expires_at, TimePoint deadline) {
  const Node& node = *node_;
  if (holder == node.view.self().incarnation) {
    co_return co_await SetExpiryHere(std::move(key), version, expires_at);
  }
  const std::string address = node.view.AddressOf(holder);
  if (address.empty()) co_return errors::TryAgain("the owner just left the cluster");
  const transport::PeerId peer{address, holder};
  proto::PeerSetExpiry message;
  message.epoch = node.view.epoch();
  message.key = std::move(key);
  message.version = version;
  message.ttl_ms = TtlMs(node.clock, expires_at);
  std::string body = message.Encode();
  auto answer = co_await node.transport.Call(
      peer, static_cast<uint16_t>(proto::PeerMessage::kSetExpiry), std::move(body), deadline);
  co_return answer.status();
}

asio::awaitable<Status> Holder::SetExpiryHere(std::string key, uint64_t version, TimePoint expires_at) {
  const uint64_t epoch = node_->view.epoch();
  const TimePoint until = node_->clock.Now() + kPublishPause;
  for (;;) {
    const store::ObjectRef object = node_->store.Find(key);
    if (object && object->meta().version >= version) {
      if (object->meta().version > version) co_return errors::TryAgain("the value was just overwritten");
      // Before the expiry, which may be now.
      node_->store.Promote(key, version);
      node_->store.SetExpiry(key, expires_at);
      co_return Status::OK();
    }
    if (!node_->pending.HasUpdate(key)) break;
    if (node_->clock.Now() >= until) co_return errors::TryAgain("a set of the key is still under way");
    co_await node_->pending.WaitForEnd(key, until);
    if (node_->view.epoch() != epoch) co_return errors::TryAgain("the cluster changed meanwhile");
  }
  // Also what is older than the version granted, and a copy of it that is still being fetched.
  InvalidateHere(key, version);
  co_return errors::NotFound("worker {} does not hold the object any more", node_->view.self().address);
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
  node_->pending.Invalidate(key, version);  // a fetch under way may not be kept
  ++untold_[key];
  proto::PeerEntry entry;
  entry.key = std::move(key);
  entry.version = version;
  dropped_.push_back(std::move(entry));
  ScheduleFlush();
}

void Holder::Told(const std::string& key) {
  const auto found = untold_.find(key);
  if (--found->second == 0) untold_.erase(found);
}

// Later: the store may be in the middle of something.
void Holder::ScheduleFlush() {
  if (std::exchange(flush_scheduled_, true)) return;
  asio::co_spawn(node_->context, FlushDropped(), asio::detached);
}

asio::awaitable<void> Holder::FlushDropped() {
  co_await asio::post(node_->context, asio::use_awaitable);
  flush_scheduled_ = false;
  const std::vector<proto::PeerEntry> dropped = std::exchange(dropped_, {});
  std::map<std::string, std::pair<transport::PeerId, std::vector<proto::PeerEntry>>> by_shard;
  for (const proto::PeerEntry& entry : dropped) {
    const transport::PeerId shard = node_->view.ShardOf(entry.key);
    if (node_->view.IsSelf(shard)) {
      node_->directory.Dropped(entry.key, entry.version, shard.incarnation);
      Told(entry.key);
      continue;
    }
    auto& [peer, entries] = by_shard[shard.address];
    peer = shard;
    entries.push_back(entry);
  }
  for (auto& [address, target] : by_shard) {
    asio::co_spawn(node_->context, TellShard(target.first, std::move(target.second)), asio::detached);
  }
}

// A notice counts only in the epoch it was sent in, so after a change of the ring it goes out anew, perhaps
// to another shard.
asio::awaitable<void> Holder::TellShard(transport::PeerId shard, std::vector<proto::PeerEntry> entries) {
  const uint64_t epoch = node_->view.epoch();
  for (size_t from = 0; from < entries.size();) {
    const size_t to = std::min(entries.size(), from + kNoticeEntriesMax);
    proto::PeerEntries notice;
    notice.epoch = epoch;
    notice.entries.assign(entries.begin() + from, entries.begin() + to);
    std::string body = notice.Encode();
    const TimePoint deadline = node_->clock.Now() + kNoticeTimeout;
    auto answer = co_await node_->transport.Call(
        shard, static_cast<uint16_t>(proto::PeerMessage::kDropped), std::move(body), deadline);
    if (answer.ok()) {
      for (; from < to; ++from) Told(entries[from].key);
      continue;
    }
    co_await node_->view.WaitForChange(node_->clock.Now() + kUnreachablePause);
    if (node_->view.epoch() == epoch) continue;
    dropped_.insert(dropped_.end(), entries.begin() + from, entries.end());
    ScheduleFlush();
    co_return;
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
