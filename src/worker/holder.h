// This worker as a holder of copies: what the directory shards ask of it, what it tells them, and how its
// own shard reaches the other holders.
// Threads: the event loop's.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "proto/peer_messages.h"
#include "worker/node.h"

namespace datasystem::worker {

class Holder final : public directory::HolderLink {
 public:
  // The parts are bound later, because the directory needs the link before a Node can exist.
  void Bind(const Node* node) { node_ = node; }

  // directory::HolderLink
  asio::awaitable<Status> Invalidate(directory::HolderId holder, std::string key, uint64_t version,
                                     TimePoint deadline) override;
  asio::awaitable<Status> SetExpiry(directory::HolderId holder, std::string key, uint64_t version,
                                    TimePoint expires_at, TimePoint deadline) override;
  void Promote(directory::HolderId holder, std::string key, uint64_t version) override;

  // Drops this worker's copy up to `version`, also of what is still under way.
  void InvalidateHere(std::string_view key, uint64_t version);
  void PromoteHere(std::string_view key, uint64_t version);
  // SetExpiry for this worker's own copy. Waits a moment for a set that may be about to publish the version.
  asio::awaitable<Status> SetExpiryHere(std::string key, uint64_t version, TimePoint expires_at);

  // Tells the shards, soon and in batches, that copies are gone from here. Until a shard has acknowledged it
  // the key is untold: a copy fetched meanwhile must not be kept, or the late notice would strike it off.
  void NoteDropped(const store::Object& object) { NoteDropped(std::string(object.key()), object.meta().version); }
  void NoteDropped(std::string key, uint64_t version);

  bool Untold(std::string_view key) const { return untold_.contains(key); }

  // What this worker holds of the keys whose shard is at `shard`.
  std::vector<proto::PeerEntry> EntriesFor(const transport::PeerId& shard) const;

 private:
  asio::awaitable<void> FlushDropped();
  void ScheduleFlush();
  asio::awaitable<void> TellShard(transport::PeerId shard, std::vector<proto::PeerEntry> entries);
  void Told(const std::string& key);
  asio::awaitable<void> SendPromote(transport::PeerId peer, std::string key, uint64_t version);

  const Node* node_ = nullptr;
  std::vector<proto::PeerEntry> dropped_;
  std::unordered_map<std::string, uint32_t, KeyHash, std::equal_to<>> untold_;  // notices on their way
  bool flush_scheduled_ = false;
};

}  // namespace datasystem::worker
