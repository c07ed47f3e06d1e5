// The one truth is a list of changes on top of a base: the state at a revision is the base with the
// changes up to there. When the list is longer than history_max, its oldest revision becomes part
// of the base ("compaction"). Membership changes a few keys a minute at most, so replaying is cheap
// enough.
#include "cluster/embedded_store.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

namespace datasystem::cluster {
namespace {

using State = std::map<std::string, StoreEntry, std::less<>>;

void Apply(State& state, const StoreChange& change) {
  if (change.deleted) {
    state.erase(change.entry.key);
  } else {
    state[change.entry.key] = change.entry;
  }
}

// The history, shared by the store and its watches' threads.
class History {
 public:
  explicit History(size_t changes_max) : changes_max_(changes_max) {}

  std::unique_lock<std::mutex> Lock() { return std::unique_lock(mutex_); }

  // The rest with the lock held.
  uint64_t revision() const { return revision_; }
  State Now() const { return *At(revision_); }
  std::optional<State> At(uint64_t revision) const {
    if (revision < base_revision_ || revision > revision_) return std::nullopt;
    State state = base_;
    for (const StoreChange& change : changes_) {
      if (change.entry.mod_revision > revision) break;
      Apply(state, change);
    }
    return state;
  }
  // All as one revision.
  uint64_t Add(std::vector<StoreChange> changes) {
    ++revision_;
    for (StoreChange& change : changes) {
      change.entry.mod_revision = revision_;
      changes_.push_back(std::move(change));
    }
    while (changes_.size() > changes_max_ && changes_.front().entry.mod_revision < revision_) {
      base_revision_ = changes_.front().entry.mod_revision;
      while (changes_.front().entry.mod_revision == base_revision_) {
        Apply(base_, changes_.front());
        changes_.pop_front();
      }
    }
    added_.notify_all();
    return revision_;
  }
  // Waits for changes from `from` on. Nothing: they are no longer kept, or `stop`.
  std::optional<std::vector<StoreChange>> WaitFrom(uint64_t from, std::stop_token stop) {
    std::unique_lock lock(mutex_);
    if (!added_.wait(lock, stop, [&] { return revision_ >= from; }) || from <= base_revision_) {
      return std::nullopt;
    }
    std::vector<StoreChange> changes;
    for (const StoreChange& change : changes_) {
      if (change.entry.mod_revision >= from) changes.push_back(change);
    }
    return changes;
  }

 private:
  const size_t changes_max_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any added_;
  State base_;
  uint64_t base_revision_ = 1;
  uint64_t revision_ = 1;
  std::deque<StoreChange> changes_;
};

class EmbeddedWatch final : public Watch {
 public:
  EmbeddedWatch(History& history, std::string prefix, uint64_t from, WatchEvents events)
      : thread_([&history, prefix = std::move(prefix), from, events = std::move(events)](
                    std::stop_token stop) { Run(history, prefix, from, events, stop); }) {}

 private:
  static void Run(History& history, const std::string& prefix, uint64_t next,
                  const WatchEvents& events, std::stop_token stop) {
    if (events.on_connection) events.on_connection(Status::OK());
    while (true) {
      std::optional<std::vector<StoreChange>> changes = history.WaitFrom(next, stop);
      if (stop.stop_requested()) return;
      if (!changes) return events.on_compacted();
      next = changes->back().entry.mod_revision + 1;
      std::erase_if(*changes, [&](const StoreChange& change) {
        return !change.entry.key.starts_with(prefix);
      });
      if (!changes->empty()) events.on_changes(*changes);
    }
  }

  std::jthread thread_;  // stops and joins on destruction
};

Status NoSuchLease(LeaseId lease) {
  return errors::NotFound("the embedded cluster store has no lease {:x}", lease);
}

Status Stopped(const CallLimits& limits) {
  if (!limits.stop.stop_requested()) return Status::OK();
  return errors::Make(K_INTERRUPTED, "call to the embedded cluster store was stopped");
}

class EmbeddedStore final : public LeaseStore {
 public:
  explicit EmbeddedStore(EmbeddedStoreOptions options) : history_(options.history_max) {}

  std::string name() const override { return "the embedded cluster store"; }

  Result<Lease> Grant(std::chrono::seconds ttl, CallLimits limits) override {
    RETURN_IF_ERROR(Stopped(limits));
    const auto lock = history_.Lock();
    leases_[++last_lease_] = ttl;
    return Lease{.id = last_lease_, .ttl = ttl};
  }

  Result<std::chrono::seconds> KeepAlive(LeaseId lease, CallLimits limits) override {
    RETURN_IF_ERROR(Stopped(limits));
    const auto lock = history_.Lock();
    const auto found = leases_.find(lease);
    if (found == leases_.end()) return NoSuchLease(lease);
    return found->second;
  }

  Status Revoke(LeaseId lease, CallLimits limits) override {
    RETURN_IF_ERROR(Stopped(limits));
    const auto lock = history_.Lock();
    if (leases_.erase(lease) == 0) return NoSuchLease(lease);
    std::vector<StoreChange> deletions;
    for (auto& [key, entry] : history_.Now()) {
      if (entry.lease == lease) deletions.push_back({.deleted = true, .entry = {.key = key}});
    }
    if (!deletions.empty()) history_.Add(std::move(deletions));
    return Status::OK();
  }

  Result<uint64_t> Put(std::string_view key, std::string_view value, LeaseId lease,
                       CallLimits limits) override {
    RETURN_IF_ERROR(Stopped(limits));
    const auto lock = history_.Lock();
    if (!HasLease(lease)) return NoSuchLease(lease);
    return AddPut(key, value, lease);
  }

  Result<StoreCreation> CreateIfAbsent(std::string_view key, std::string_view value, LeaseId lease,
                                       CallLimits limits) override {
    RETURN_IF_ERROR(Stopped(limits));
    const auto lock = history_.Lock();
    if (!HasLease(lease)) return NoSuchLease(lease);
    State state = history_.Now();
    if (const auto found = state.find(key); found != state.end()) {
      return StoreCreation{.created = false, .entry = found->second};
    }
    const uint64_t revision = AddPut(key, value, lease);
    return StoreCreation{.created = true,
                         .entry = {std::string(key), std::string(value), revision, lease}};
  }

  Result<bool> Delete(std::string_view key, CallLimits limits) override {
    RETURN_IF_ERROR(Stopped(limits));
    const auto lock = history_.Lock();
    if (!history_.Now().contains(key)) return false;
    history_.Add({{.deleted = true, .entry = {.key = std::string(key)}}});
    return true;
  }

  Result<StoreSnapshot> RangePrefix(std::string_view prefix, uint64_t at_revision,
                                    CallLimits limits) override {
    RETURN_IF_ERROR(Stopped(limits));
    const auto lock = history_.Lock();
    StoreSnapshot snapshot{.revision = at_revision == 0 ? history_.revision() : at_revision};
    const std::optional<State> state = history_.At(snapshot.revision);
    if (!state) {
      return errors::OutOfRange("the embedded cluster store does not hold revision {}",
                                at_revision);
    }
    for (auto entry = state->lower_bound(prefix);
         entry != state->end() && entry->first.starts_with(prefix); ++entry) {
      snapshot.entries.push_back(entry->second);
    }
    return snapshot;
  }

  std::unique_ptr<Watch> WatchPrefix(std::string prefix, uint64_t from_revision,
                                     WatchEvents events) override {
    return std::make_unique<EmbeddedWatch>(history_, std::move(prefix), from_revision,
                                           std::move(events));
  }

 private:
  bool HasLease(LeaseId lease) const { return lease == kNoLease || leases_.contains(lease); }
  uint64_t AddPut(std::string_view key, std::string_view value, LeaseId lease) {
    return history_.Add({{.entry = {std::string(key), std::string(value), 0, lease}}});
  }

  History history_;  // its lock guards what follows, too
  std::unordered_map<LeaseId, std::chrono::seconds> leases_;
  LeaseId last_lease_ = kNoLease;
};

}  // namespace

std::unique_ptr<LeaseStore> CreateEmbeddedStore(EmbeddedStoreOptions options) {
  return std::make_unique<EmbeddedStore>(options);
}

}  // namespace datasystem::cluster
