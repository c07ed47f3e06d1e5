// Versions are (epoch << 32) + counter: a shard that takes over a key starts above anything that its
// predecessor, which acted in an earlier epoch, can have granted.
#include "directory/directory.h"

#include <algorithm>

#include "base/concurrently.h"

namespace datasystem::directory {
namespace {

// Holders that are told at the same time to drop their copies of one key.
constexpr size_t kDropWindow = 64;

}  // namespace

// While it lives, the key is being changed by its owner only.
class Directory::Change {
 public:
  Change(Directory& directory, std::string key) : directory_(directory), key_(std::move(key)) {
    auto& activity = directory_.activities_[key_];
    if (!activity) activity = std::make_shared<Activity>(directory_.context_);
    DCHECK(!activity->changing);
    activity->changing = true;
  }
  Change(const Change&) = delete;
  ~Change() {
    directory_.activities_.at(key_)->changing = false;
    directory_.Notify(key_);
  }

 private:
  Directory& directory_;
  const std::string key_;
};

Directory::Directory(asio::io_context& context, const Clock& clock, HolderLink& holders)
    : context_(context), clock_(clock), holders_(holders) {}

Directory::~Directory() = default;

bool Directory::IsMember(HolderId holder) const {
  return std::find(members_.begin(), members_.end(), holder) != members_.end();
}

bool Directory::Owns(std::string_view key) const {
  return !history_.empty() && history_.back()->OwnerOf(key) == self_address_;
}

bool Directory::Answers(std::string_view key) const {
  return !history_.empty() && std::all_of(history_.begin(), history_.end(), [&](const auto& ring) {
    return !ring->empty() && ring->OwnerOf(key) == self_address_;
  });
}

Directory::Id Directory::FindLive(std::string_view key) const {
  const Id entry = entries_.Find(key);
  return entry != 0 && entries_.ExpiryOf(entry) > clock_.Now() ? entry : 0;
}

void Directory::Notify(const std::string& key) {
  const auto found = activities_.find(key);
  if (found == activities_.end()) return;
  found->second->changed.NotifyAll();
  // Waiters keep the activity alive by their own reference.
  if (!found->second->changing && found->second->changed.empty()) activities_.erase(found);
}

// Everyone who waits looks again: a key may have moved, or become answerable.
void Directory::NotifyAll() {
  std::vector<std::string> waiting;
  for (const auto& [key, activity] : activities_) waiting.push_back(key);
  for (const std::string& key : waiting) Notify(key);
}

asio::awaitable<bool> Directory::WaitForChange(std::string key, TimePoint deadline) {
  std::shared_ptr<Activity> activity;
  {
    auto& place = activities_[key];
    if (!place) place = std::make_shared<Activity>(context_);
    activity = place;
  }
  const bool changed = co_await activity->changed.Wait(deadline);
  const auto found = activities_.find(key);
  if (found != activities_.end() && found->second == activity && !activity->changing &&
      activity->changed.empty()) {
    activities_.erase(found);
  }
  co_return changed;
}

asio::awaitable<Status> Directory::Ready(std::string key, TimePoint deadline) {
  for (;;) {
    if (!Owns(key)) co_return errors::TryAgain("key belongs to another shard in epoch {}", epoch_);
    const auto activity = activities_.find(key);
    const bool changing = activity != activities_.end() && activity->second->changing;
    if (!changing && Answers(key)) co_return Status::OK();
    if (clock_.Now() >= deadline) {
      co_return errors::DeadlineExceeded(
          "directory shard was busy with the key until the deadline ({})",
          changing ? "another change is under way" : "waiting for the members' reports");
    }
    co_await WaitForChange(key, deadline);
  }
}

bool Directory::BeginEpoch(const cluster::View& view, cluster::SharedRing ring, HolderId self) {
  const bool was_member = !history_.empty();
  const bool lost_nobody =
      was_member && std::all_of(members_.begin(), members_.end(), [&](HolderId id) {
        return std::any_of(view.members.begin(), view.members.end(),
                           [id](const cluster::Member& member) { return member.incarnation == id; });
      });
  epoch_ = view.epoch;
  next_version_ = std::max(next_version_, epoch_ << 32);
  members_.clear();
  for (const cluster::Member& member : view.members) {
    members_.push_back(member.incarnation);
    if (member.incarnation == self) self_address_ = member.address;
  }
  const bool alone = members_.size() == 1;
  const bool was_settled = settled();
  // An empty ring gives us nothing: no key is answerable until all have reported.
  if (!was_member && !alone) history_.push_back(std::make_shared<cluster::HashRing>());
  history_.push_back(std::move(ring));

  entries_.ForEach([&](Id entry) {
    if (!Owns(entries_.KeyOf(entry))) {
      entries_.Erase(entry);
    } else if (!lost_nobody) {
      LoseThoseWhoLeft(entry);
    }
  });
  if (!lost_nobody) entries_.ForgetHoldersBut([this](HolderId holder) { return IsMember(holder); });
  NotifyAll();

  // When nobody left, our ranges only shrank, and what remains is known. When we are alone, nobody else
  // has copies, but our own store's must still be reported.
  if (was_member && was_settled && lost_nobody) {
    history_.erase(history_.begin(), history_.end() - 1);
    return false;
  }
  return !settled() || !lost_nobody;
}

void Directory::Reset() {
  epoch_ = 0;  // what is under way was granted in an epoch that has ended
  entries_.Clear();
  history_.clear();
  members_.clear();
  NotifyAll();
}

std::vector<StaleCopy> Directory::Report(uint64_t epoch, HolderId holder,
                                         const std::vector<Copy>& copies) {
  std::vector<StaleCopy> stale;
  if (epoch != epoch_) return stale;
  for (const Copy& copy : copies) {
    // What is answered already is known, and the report may be older than a change made since. A version of
    // an epoch that is still to come was granted by nobody.
    if (!Owns(copy.key) || Answers(copy.key) || copy.expires_at <= clock_.Now() ||
        copy.version >> 32 > epoch_) {
      continue;
    }
    next_version_ = std::max(next_version_, copy.version);
    Id entry = entries_.Find(copy.key);
    if (entry == 0) {
      entry = entries_.Insert(copy.key, copy.version, copy.expires_at, holder);
      // What cannot be noted must not stay.
      if (entry == 0) stale.push_back({holder, copy.key, copy.version});
      if (entry != 0) entries_.SetHasPrimary(entry, copy.primary);
      continue;
    }
    const uint64_t version = entries_.VersionOf(entry);
    if (copy.version < version) {
      stale.push_back({holder, copy.key, copy.version});
    } else if (copy.version > version) {
      for (const HolderId older : entries_.HoldersOf(entry)) {
        if (older != holder) stale.push_back({older, copy.key, version});
      }
      entry = Assign(entry, copy.version, copy.expires_at, holder);
      entries_.SetHasPrimary(entry, copy.primary);
    } else if (copy.primary) {
      entries_.MakeOwner(entry, holder);
      entries_.SetHasPrimary(entry, true);
    } else {
      entries_.AddHolder(entry, holder);
    }
  }
  return stale;
}

void Directory::Settle(uint64_t epoch) {
  if (epoch != epoch_ || history_.empty()) return;
  history_.erase(history_.begin(), history_.end() - 1);
  // A replica whose primary went with its node becomes the primary: nothing else keeps it from eviction.
  entries_.ForEach([&](Id entry) {
    if (!entries_.HasPrimary(entry)) Promote(entry);
  });
  NotifyAll();
}

asio::awaitable<Status> Directory::DropCopies(std::string key, uint64_t version,
                                              std::vector<HolderId> holders, TimePoint deadline) {
  Status first_error;
  const auto drop = [&](size_t i) -> asio::awaitable<void> {
    Status dropped = co_await holders_.Invalidate(holders[i], key, version, deadline);
    if (dropped.IsError() && first_error.IsOk()) first_error = dropped;
  };
  if (!holders.empty()) co_await ForEachConcurrently(context_, holders.size(), kDropWindow, drop);
  co_return first_error;
}

asio::awaitable<Result<uint64_t>> Directory::Update(UpdateRequest request) {
  Status ready = co_await Ready(request.key, request.deadline);
  if (ready.IsError()) co_return ready;
  if (!IsMember(request.holder)) co_return errors::TryAgain("the writer has left the cluster");
  const uint64_t epoch = epoch_;
  const Change change(*this, request.key);

  std::vector<HolderId> others;
  if (const Id entry = entries_.Find(request.key); entry != 0) {
    const bool exists =
        entries_.ExpiryOf(entry) > clock_.Now() && entries_.VersionOf(entry) != request.discarded;
    if (request.only_if_absent && exists) {
      co_return errors::AlreadyExists("key {} exists already", request.key);
    }
    // Also of an expired entry: by their own clocks, holders may read it a little longer.
    others = entries_.HoldersOf(entry);
    std::erase(others, request.holder);
  }
  const uint64_t version = ++next_version_;
  if (!others.empty()) {
    Status dropped = co_await DropCopies(request.key, version - 1, others, request.deadline);
    // Copies that did go are missed by nobody: a lookup that is sent to one is told so, and reported here.
    if (dropped.IsError()) co_return dropped;
    if (epoch != epoch_) co_return errors::TryAgain("the ring changed during the update");
  }
  Id entry = entries_.Find(request.key);
  if (entry == 0) {
    entry = entries_.Insert(request.key, version, request.expires_at, request.holder);
    if (entry == 0) {
      co_return errors::OutOfMemory("the directory shard has no room for key {} beside its {} entries",
                                    request.key, entries_.size());
    }
  } else {
    entry = Assign(entry, version, request.expires_at, request.holder);
  }
  entries_.SetHasPrimary(entry, true);
  co_return version;
}

asio::awaitable<Result<bool>> Directory::Delete(std::string key, TimePoint deadline) {
  Status ready = co_await Ready(key, deadline);
  if (ready.IsError()) co_return ready;
  const uint64_t epoch = epoch_;
  const Change change(*this, key);

  const Id entry = entries_.Find(key);
  if (entry == 0) co_return false;
  const bool live = entries_.ExpiryOf(entry) > clock_.Now();
  std::vector<HolderId> holders = entries_.HoldersOf(entry);
  Status dropped = co_await DropCopies(key, ++next_version_, std::move(holders), deadline);
  if (dropped.IsError()) co_return dropped;
  if (epoch != epoch_) co_return errors::TryAgain("the ring changed during the delete");
  // Nobody but this change touched it in this epoch, but another entry's coming may have moved it.
  if (const Id now = entries_.Find(key); now != 0) entries_.Erase(now);
  co_return live;
}

// Replicas go first, so that at any moment all copies live equally long, whatever fails in between. The entry
// lives as long as the longer of both times until it is known which holds: an entry that ends before its copies
// would let the key be created anew beside them; one that ends after them is put right by the next reader.
asio::awaitable<Status> Directory::Expire(std::string key, TimePoint expires_at, TimePoint deadline) {
  Status ready = co_await Ready(key, deadline);
  if (ready.IsError()) co_return ready;
  const uint64_t epoch = epoch_;
  const Change change(*this, key);

  Id entry = FindLive(key);
  if (entry == 0) co_return errors::NotFound("no object {}", key);
  const uint64_t version = entries_.VersionOf(entry);
  const HolderId owner = entries_.OwnerOf(entry);
  std::vector<HolderId> replicas = entries_.HoldersOf(entry);
  replicas.erase(replicas.begin());
  entries_.SetExpiry(entry, std::max(entries_.ExpiryOf(entry), expires_at));

  Status done = co_await DropCopies(key, version, std::move(replicas), deadline);
  if (done.IsError()) co_return done;
  if (epoch != epoch_) co_return errors::TryAgain("the ring changed before the expiry was set");
  done = co_await holders_.SetExpiry(owner, key, version, expires_at, deadline);
  if (epoch != epoch_) co_return errors::TryAgain("the ring changed while the expiry was set");
  if (done.IsError() && done.GetCode() != K_NOT_FOUND) co_return done;

  entry = entries_.Find(key);  // it is there: nobody but this change touched it in this epoch
  if (done.IsError()) {
    entries_.Erase(entry);
    co_return errors::NotFound("no object {}", key);
  }
  entries_.SetHasPrimary(Assign(entry, version, expires_at, owner), true);
  co_return Status::OK();
}

asio::awaitable<Result<Found>> Directory::Lookup(LookupRequest request) {
  for (;;) {
    Status ready = co_await Ready(request.key, request.deadline);
    if (ready.IsError()) co_return ready;
    auto found = LookupNow(request.key, request.reader, request.keep_copy);
    const bool absent = !found.ok() && found.status().GetCode() == K_NOT_FOUND;
    if (!absent || clock_.Now() >= request.wait_until) co_return found;
    co_await WaitForChange(request.key, request.wait_until);
  }
}

Result<Found> Directory::LookupNow(std::string_view key, HolderId reader, bool keep_copy) {
  const auto activity = activities_.find(key);
  const bool changing = activity != activities_.end() && activity->second->changing;
  if (changing || !Answers(key)) {
    return errors::TryAgain("the key is being changed, or not answered for yet in epoch {}", epoch_);
  }
  if (!IsMember(reader)) return errors::TryAgain("the reader has left the cluster");
  const Id entry = FindLive(key);
  if (entry == 0) return errors::NotFound("no object {}", key);
  const Found found{entries_.OwnerOf(entry), entries_.VersionOf(entry)};
  if (keep_copy) entries_.AddHolder(entry, reader);
  return found;
}

asio::awaitable<Result<bool>> Directory::Exists(std::string key, TimePoint deadline) {
  Status ready = co_await Ready(key, deadline);
  if (ready.IsError()) co_return ready;
  co_return FindLive(key) != 0;
}

Directory::Id Directory::Assign(Id entry, uint64_t version, TimePoint expires_at, HolderId holder) {
  entries_.SetVersion(entry, version);
  entries_.SetOnlyHolder(entry, holder);
  return entries_.SetExpiry(entry, expires_at);
}

void Directory::Promote(Id entry) {
  entries_.SetHasPrimary(entry, true);
  holders_.Promote(entries_.OwnerOf(entry), std::string(entries_.KeyOf(entry)), entries_.VersionOf(entry));
}

void Directory::LoseHolder(Id entry, HolderId holder) {
  const bool was_owner = entries_.OwnerOf(entry) == holder;
  if (!entries_.RemoveHolder(entry, holder)) {
    entries_.Erase(entry);
  } else if (was_owner) {
    entries_.SetHasPrimary(entry, false);
    // Else Settle() does it: until then the members may be in another epoch.
    if (settled()) Promote(entry);
  }
}

void Directory::LoseThoseWhoLeft(Id entry) {
  if (!entries_.IsShared(entry)) {  // nearly all, and there may be millions
    if (!IsMember(entries_.OwnerOf(entry))) entries_.Erase(entry);
    return;
  }
  std::vector<HolderId> left = entries_.HoldersOf(entry);
  const size_t all = left.size();
  std::erase_if(left, [this](HolderId holder) { return IsMember(holder); });
  if (left.size() == all) {
    entries_.Erase(entry);
    return;
  }
  for (const HolderId holder : left) LoseHolder(entry, holder);
}

// Readers who wait for the version may be listed already: none of them becomes its owner.
asio::awaitable<Status> Directory::Withdraw(std::string key, uint64_t version, TimePoint deadline) {
  Status ready = co_await Ready(key, deadline);
  if (ready.IsError()) co_return ready;
  const Id entry = entries_.Find(key);
  if (entry != 0 && entries_.VersionOf(entry) == version) entries_.Erase(entry);
  co_return Status::OK();
}

void Directory::Dropped(std::string_view key, uint64_t version, HolderId holder) {
  const Id entry = entries_.Find(key);
  if (entry == 0 || entries_.VersionOf(entry) != version) return;
  const auto activity = activities_.find(key);
  // A change under way decides about the entry itself.
  if (activity != activities_.end() && activity->second->changing) return;
  LoseHolder(entry, holder);
}

}  // namespace datasystem::directory
