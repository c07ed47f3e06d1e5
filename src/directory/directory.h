// The directory shard of one worker: for the keys that the ring gives it, who holds which version.
//
// It orders the changes of each key. An update or delete is granted after every other holder of an older
// copy has dropped it; while that is under way, lookups of the key wait, so no reader can see a new value
// and then an old one. State is soft: it is never written down; after a change of the ring the holders
// tell the new shard what they have, and the shard answers for new ranges once all of them have.
//
// Protocol logic only: peers are reached through HolderLink, time through Clock.
// Threads: the event loop's.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/hash.h"
#include "base/result.h"
#include "base/wait_list.h"
#include "cluster/hash_ring.h"
#include "cluster/view.h"
#include "directory/entry_table.h"

namespace datasystem::directory {

// How the shard reaches holders. Its own worker is a holder like any other.
class HolderLink {
 public:
  virtual ~HolderLink() = default;
  // OK once the holder has no copy up to `version` that anyone could still get.
  virtual asio::awaitable<Status> Invalidate(HolderId holder, std::string key, uint64_t version,
                                             TimePoint deadline) = 0;
  // OK once the holder's copy of just this version is the primary one and lives until `expires_at`.
  // K_NOT_FOUND if the holder has not got it, and will not get it any more; K_TRY_AGAIN if that is not known
  // yet, or the ring changed. After any other error it may have been done.
  virtual asio::awaitable<Status> SetExpiry(HolderId holder, std::string key, uint64_t version,
                                            TimePoint expires_at, TimePoint deadline) = 0;
  // The holder's replica is the primary copy from now on. Fire and forget.
  virtual void Promote(HolderId holder, std::string key, uint64_t version) = 0;
};

struct UpdateRequest {
  std::string key;
  HolderId holder = 0;  // who has the new value
  bool only_if_absent = false;
  // A version that was granted to this very set before, and never published because the ring changed: it
  // does not make the key exist.
  uint64_t discarded = 0;
  TimePoint expires_at = TimePoint::max();
  TimePoint deadline;
};

struct LookupRequest {
  std::string key;
  HolderId reader = 0;
  bool keep_copy = false;  // the reader will keep what it gets: note it as a holder
  TimePoint wait_until;    // for a key that does not exist yet; in the past = do not wait
  TimePoint deadline;
};

struct Found {
  HolderId owner = 0;
  uint64_t version = 0;
};

// One copy, as its holder reports it.
struct Copy {
  std::string key;
  uint64_t version = 0;
  bool primary = false;
  TimePoint expires_at = TimePoint::max();
};

// A copy that must go: a newer version was reported by another holder.
struct StaleCopy {
  HolderId holder = 0;
  std::string key;
  uint64_t version = 0;
};

class Directory {
 public:
  Directory(asio::io_context& context, const Clock& clock, HolderLink& holders);
  ~Directory();

  // A new view of the cluster, in which this worker is `self`. Entries of keys that went to other shards
  // are forgotten, holders that are gone are struck off. True if the shard must collect the members'
  // copies (then call Settle) before it can answer for all of its keys.
  // `ring` is that of the view's members.
  bool BeginEpoch(const cluster::View& view, cluster::SharedRing ring, HolderId self);
  // This worker is no member any more: all is forgotten, and nothing answered until the next BeginEpoch.
  void Reset();
  // The copies of `holder` that this shard is to know, all or some of them. Ignored if `epoch` is not the
  // current one. The caller must have the stale copies dropped before it calls Settle.
  std::vector<StaleCopy> Report(uint64_t epoch, HolderId holder, const std::vector<Copy>& copies);
  // Every member has reported in this epoch.
  void Settle(uint64_t epoch);
  uint64_t epoch() const { return epoch_; }
  bool settled() const { return history_.size() == 1; }

  // The version of the new value. K_OC_KEY_ALREADY_EXIST if only_if_absent and the key exists;
  // K_TRY_AGAIN if the ring changed meanwhile or the key belongs to another shard;
  // K_RPC_DEADLINE_EXCEEDED if a holder did not drop its copy in time; K_OUT_OF_MEMORY if the shard is full.
  asio::awaitable<Result<uint64_t>> Update(UpdateRequest request);
  // True if the key existed.
  asio::awaitable<Result<bool>> Delete(std::string key, TimePoint deadline);
  // The key lives until `expires_at` instead. When this returns, no copy lives by the old time: replicas are
  // dropped, and fetched anew with the new one. The version stays. K_NOT_FOUND if the key does not exist. After
  // another error both times are possible.
  asio::awaitable<Status> Expire(std::string key, TimePoint expires_at, TimePoint deadline);
  // K_NOT_FOUND if the key does not exist (by wait_until).
  asio::awaitable<Result<Found>> Lookup(LookupRequest request);
  // The same without waiting for anything: K_TRY_AGAIN if it would have to.
  Result<Found> LookupNow(std::string_view key, HolderId reader, bool keep_copy);
  asio::awaitable<Result<bool>> Exists(std::string key, TimePoint deadline);
  // A holder dropped its copy of this version by itself.
  void Dropped(std::string_view key, uint64_t version, HolderId holder);

  // This version was granted, and nobody has it or is going to. An error if that could not be noted.
  asio::awaitable<Status> Withdraw(std::string key, uint64_t version, TimePoint deadline);

  size_t entries() const { return entries_.size(); }

 private:
  // Present while a key is being changed or somebody waits for it.
  struct Activity {
    explicit Activity(asio::io_context& context) : changed(context) {}
    bool changing = false;
    WaitList changed;
  };
  class Change;
  using Id = EntryTable::Id;

  // Whether the key is ours and everybody has reported its copies.
  bool Answers(std::string_view key) const;
  bool Owns(std::string_view key) const;
  bool IsMember(HolderId holder) const;
  Id FindLive(std::string_view key) const;
  asio::awaitable<bool> WaitForChange(std::string key, TimePoint deadline);
  // Waits until the key is answerable and nobody else is changing it.
  asio::awaitable<Status> Ready(std::string key, TimePoint deadline);
  // All at once. Returns when all have answered: the first error, if there was one.
  asio::awaitable<Status> DropCopies(std::string key, uint64_t version, std::vector<HolderId> holders,
                                     TimePoint deadline);
  void Notify(const std::string& key);
  void NotifyAll();
  // Returns the entry's new id.
  Id Assign(Id entry, uint64_t version, TimePoint expires_at, HolderId holder);
  void Promote(Id entry);
  // The entry goes with its last holder.
  void LoseHolder(Id entry, HolderId holder);
  void LoseThoseWhoLeft(Id entry);

  asio::io_context& context_;
  const Clock& clock_;
  HolderLink& holders_;

  uint64_t epoch_ = 0;
  uint64_t next_version_ = 0;
  std::string self_address_;
  std::vector<HolderId> members_;
  // The rings since everything was settled, newest last: a key is answerable if all of them give it to us.
  // An empty one in front stands for the time before this worker was a member.
  std::vector<cluster::SharedRing> history_;
  EntryTable entries_;
  std::unordered_map<std::string, std::shared_ptr<Activity>, KeyHash, std::equal_to<>> activities_;
};

}  // namespace datasystem::directory
