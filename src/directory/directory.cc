// Versions are (epoch << 32) + counter: a shard that takes over a key starts above anything that its
// predecessor, which acted in an earlier epoch, can have granted.
#include "directory/directory.h"

#include <algorithm>

namespace datasystem::directory {

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

Directory::Entry* Directory::FindLive(std::string_view key) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.expires_at <= clock_.Now()) return nullptr;
  return &found->second;
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

  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (!Owns(entry->first)) {
      Remove(entry);
    } else if (!lost_nobody) {
      const std::vector<HolderId> holders = entry->second.holders;
      for (const HolderId holder : holders) {
        if (!IsMember(holder) && !LoseHolder(entry->first, entry->second, holder)) {
          Remove(entry);
          break;
        }
      }
    }
    entry = next;
  }
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
  entries_.clear();
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
    Entry& entry = entries_[copy.key];
    if (copy.version < entry.version) {
      stale.push_back({holder, copy.key, copy.version});
      continue;
    }
    if (copy.version > entry.version) {
      for (const HolderId older : entry.holders) {
        if (older != holder) stale.push_back({older, copy.key, entry.version});
      }
      entry.version = copy.version;
      entry.expires_at = copy.expires_at;
      entry.has_primary = false;
      entry.holders.clear();
    }
    entry.has_primary |= copy.primary;
    const auto known = std::find(entry.holders.begin(), entry.holders.end(), holder);
    if (known == entry.holders.end()) {
      entry.holders.insert(copy.primary ? entry.holders.begin() : entry.holders.end(), holder);
    } else if (copy.primary) {
      std::rotate(entry.holders.begin(), known, known + 1);
    }
  }
  return stale;
}

void Directory::Settle(uint64_t epoch) {
  if (epoch != epoch_ || history_.empty()) return;
  history_.erase(history_.begin(), history_.end() - 1);
  // A replica whose primary went with its node becomes the primary: nothing else keeps it from eviction.
  for (auto& [key, entry] : entries_) {
    if (!std::exchange(entry.has_primary, true)) {
      holders_.Promote(entry.holders.front(), key, entry.version);
    }
  }
  NotifyAll();
}

asio::awaitable<Status> Directory::DropCopies(std::string key, uint64_t version,
                                              std::vector<HolderId> holders, TimePoint deadline) {
  for (const HolderId holder : holders) {
    Status dropped = co_await holders_.Invalidate(holder, key, version, deadline);
    if (dropped.IsError()) co_return dropped;
  }
  co_return Status::OK();
}

asio::awaitable<Result<uint64_t>> Directory::Update(UpdateRequest request) {
  Status ready = co_await Ready(request.key, request.deadline);
  if (ready.IsError()) co_return ready;
  if (!IsMember(request.holder)) co_return errors::TryAgain("the writer has left the cluster");
  const uint64_t epoch = epoch_;
  const Change change(*this, request.key);

  std::vector<HolderId> others;
  if (const auto found = entries_.find(request.key); found != entries_.end()) {
    const Entry& entry = found->second;
    const bool exists = entry.expires_at > clock_.Now() && entry.version != request.discarded;
    if (request.only_if_absent && exists) {
      co_return errors::AlreadyExists("key {} exists already", request.key);
    }
    // Also of an expired entry: by their own clocks, holders may read it a little longer.
    others = entry.holders;
    std::erase(others, request.holder);
  }
  const uint64_t version = ++next_version_;
  if (!others.empty()) {
    Status dropped = co_await DropCopies(request.key, version - 1, others, request.deadline);
    // Copies that did go are missed by nobody: a lookup that is sent to one is told so, and reported here.
    if (dropped.IsError()) co_return dropped;
    if (epoch != epoch_) co_return errors::TryAgain("the ring changed during the update");
  }
  Entry& entry = entries_[request.key];
  entry.version = version;
  entry.expires_at = request.expires_at;
  entry.has_primary = true;
  entry.holders.assign(1, request.holder);
  co_return version;
}

asio::awaitable<Result<bool>> Directory::Delete(std::string key, TimePoint deadline) {
  Status ready = co_await Ready(key, deadline);
  if (ready.IsError()) co_return ready;
  const uint64_t epoch = epoch_;
  const Change change(*this, key);

  const auto found = entries_.find(key);
  if (found == entries_.end()) co_return false;
  const bool live = found->second.expires_at > clock_.Now();
  std::vector<HolderId> holders = found->second.holders;
  Status dropped = co_await DropCopies(key, ++next_version_, std::move(holders), deadline);
  if (dropped.IsError()) co_return dropped;
  if (epoch != epoch_) co_return errors::TryAgain("the ring changed during the delete");
  entries_.erase(key);
  co_return live;
}

asio::awaitable<Result<Found>> Directory::Lookup(LookupRequest request) {
  for (;;) {
    Status ready = co_await Ready(request.key, request.deadline);
    if (ready.IsError()) co_return ready;
    if (!IsMember(request.reader)) co_return errors::TryAgain("the reader has left the cluster");
    if (Entry* entry = FindLive(request.key)) {
      const Found found{entry->holders.front(), entry->version};
      if (request.keep_copy && std::find(entry->holders.begin(), entry->holders.end(),
                                         request.reader) == entry->holders.end()) {
        entry->holders.push_back(request.reader);
      }
      co_return found;
    }
    if (clock_.Now() >= request.wait_until) co_return errors::NotFound("no object {}", request.key);
    co_await WaitForChange(request.key, request.wait_until);
  }
}

asio::awaitable<Result<bool>> Directory::Exists(std::string key, TimePoint deadline) {
  Status ready = co_await Ready(key, deadline);
  if (ready.IsError()) co_return ready;
  co_return FindLive(key) != nullptr;
}

void Directory::Remove(Entries::iterator entry) { entries_.erase(entry); }

bool Directory::LoseHolder(const std::string& key, Entry& entry, HolderId holder) {
  const bool was_owner = !entry.holders.empty() && entry.holders.front() == holder;
  std::erase(entry.holders, holder);
  if (entry.holders.empty()) return false;
  if (was_owner) {
    entry.has_primary = settled();
    // Else Settle() does it: until then the members may be in another epoch.
    if (entry.has_primary) holders_.Promote(entry.holders.front(), key, entry.version);
  }
  return true;
}

void Directory::Dropped(std::string_view key, uint64_t version, HolderId holder) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second.version != version) return;
  const auto activity = activities_.find(std::string(key));
  // A change under way decides about the entry itself.
  if (activity != activities_.end() && activity->second->changing) return;
  if (!LoseHolder(found->first, found->second, holder)) Remove(found);
}

}  // namespace datasystem::directory
