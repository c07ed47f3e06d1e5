// Two threads and the store's watch thread share one state under one lock:
//
//   control  makes every call to the store: registers, renews, reads anew after a compaction;
//   events   calls the owner's callbacks with what is new, never under the lock;
//   watch    brings the roster forward.
//
// What is new is state, not a queue: a slow owner gets the newest view, and nothing can pile up.
//
// Epochs: after a registration or a re-registration at revision R the members are read as they were
// at R, and watched from R+1. So the view at epoch E is the content of the prefix at revision E for
// everyone, deletions included; reading "now" would give a view whose last change may be a deletion
// that nothing dates. When the store has compacted what a broken watch would need, putting the own
// registration again makes such a revision.
#include "cluster/membership.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/log.h"
#include "cluster/registration.h"
#include "cluster/roster.h"

namespace datasystem::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Clock rates of two machines differ by less than this part of a lease.
constexpr int kMarginDivisor = 10;
constexpr milliseconds kMarginMin{500};
// A busy store may compact between a put and the read at its revision; then both are done again.
constexpr int kPublishAttemptsMax = 5;
constexpr milliseconds kRenewalPauseMin{100};
constexpr milliseconds kLeaveTimeoutMax{1000};
constexpr milliseconds kLeaveTimeoutUnreachable{50};

TimePoint Now() { return Clock::Steady().Now(); }

int64_t ToMs(Duration duration) {
  return std::chrono::duration_cast<milliseconds>(duration).count();
}

TimePoint ValidUntil(TimePoint sent, seconds ttl) {
  return sent + ttl - std::max<milliseconds>(milliseconds(ttl) / kMarginDivisor, kMarginMin);
}

Status CheckInterval(milliseconds interval, seconds lease_ttl) {
  if (interval > milliseconds(0) && interval < lease_ttl) return Status::OK();
  return errors::Invalid(
      "membership: the renewal interval of {} ms is not between 0 and the lease of {} s",
      interval.count(), lease_ttl.count());
}

Status Check(const MembershipOptions& options) {
  if (options.prefix.size() < 2 || options.prefix.back() != '/') {
    return errors::Invalid("membership: prefix '{}' does not end in '/'", options.prefix);
  }
  RETURN_IF_ERROR(CheckInterval(options.renew_interval, options.lease_ttl));
  if (options.store_timeout <= milliseconds(0)) {
    return errors::Invalid("membership: the store's timeout is {} ms",
                           options.store_timeout.count());
  }
  return Status::OK();
}

// A registration that was put, and the members at its revision.
struct Registration {
  Lease lease;
  std::string key;
  std::string value;
};

class LeasedMembership final : public Membership {
 public:
  LeasedMembership(LeaseStore& store, MembershipOptions options, MembershipEvents events)
      : store_(store),
        options_(std::move(options)),
        events_(std::move(events)),
        renew_interval_(options_.renew_interval),
        roster_(options_.prefix),
        events_thread_([this] { RunEvents(); }),
        control_thread_([this] { RunControl(); }) {}
  ~LeasedMembership() override { Leave().IsOk(); }

  Status Join(Member self);
  Status Rejoin(Member self) override;
  Status SetRenewInterval(milliseconds interval) override;
  Status Leave() override;

 private:
  // Control thread.
  void RunControl();
  Status Register(const Member& self);
  Status PublishAndRead(const CallLimits& limits);
  void Renew();
  Status ReadAnew();
  void Watch(uint64_t from_revision);
  void OutageBegins(const Status& cause);
  void OutageEnds();
  CallLimits Limits() const { return {Now() + options_.store_timeout, stop_.get_token()}; }

  // Watch thread. `life` tells whose watch it is: what comes from an older one is ignored.
  void OnChanges(uint64_t life, const std::vector<StoreChange>& changes);
  void OnConnection(uint64_t life, const Status& status);

  // Any thread.
  void Lost(Status why);
  void LostLocked(Status why);
  Status RequestRegistration(Member self);
  static void Complain(const std::vector<std::string>& complaints) {
    for (const std::string& complaint : complaints) LOG_WARNING("{}", complaint);
  }

  void RunEvents();

  LeaseStore& store_;
  const MembershipOptions options_;
  const MembershipEvents events_;
  std::atomic<milliseconds> renew_interval_;
  std::stop_source stop_;  // of calls to the store
  std::once_flag left_once_;
  Status left_;

  // Of the control thread alone; of Leave once that has ended.
  Registration registration_;
  std::unique_ptr<cluster::Watch> watch_;
  TimePoint next_renewal_;
  bool must_read_anew_ = false;
  std::optional<TimePoint> outage_since_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool stopping_ = false;
  bool renew_at_once_ = false;
  bool registered_ = false;
  uint64_t life_ = 0;  // grows with each put of the own registration
  std::string own_key_;
  LeaseId own_lease_ = kNoLease;
  Roster roster_;
  TimePoint valid_until_;
  bool compacted_ = false;
  bool store_suspect_ = false;  // the last we heard of it was a failure
  std::optional<TimePoint> watch_down_since_;
  std::optional<Member> registration_request_;
  bool registering_ = false;
  std::optional<Status> registration_result_;
  // For the events thread, in the order in which it tells them.
  std::optional<Status> tell_lost_;
  std::optional<TimePoint> tell_valid_until_;
  std::optional<View> tell_view_;
  uint64_t told_ = 0;  // rounds of callbacks that have ended

  std::thread events_thread_;
  std::thread control_thread_;
};

Status LeasedMembership::Join(Member self) {
  RETURN_IF_ERROR(RequestRegistration(std::move(self)));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return told_ > 0; });
  return Status::OK();
}

Status LeasedMembership::Rejoin(Member self) { return RequestRegistration(std::move(self)); }

Status LeasedMembership::RequestRegistration(Member self) {
  std::unique_lock lock(mutex_);
  if (registered_) return errors::Invalid("this worker is registered in the cluster already");
  if (registering_) return errors::TryAgain("this worker is being registered in the cluster");
  if (stopping_) return errors::ShuttingDown("this worker has left the cluster");
  registering_ = true;
  registration_request_ = std::move(self);
  changed_.notify_all();
  // The control thread always answers, stopped calls included.
  changed_.wait(lock, [this] { return registration_result_.has_value(); });
  registering_ = false;
  return *std::exchange(registration_result_, std::nullopt);
}

void LeasedMembership::RunControl() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto has_work = [this] {
      return stopping_ || registration_request_ || compacted_ || renew_at_once_;
    };
    if (registered_) {
      changed_.wait_until(lock, next_renewal_, has_work);
    } else {
      changed_.wait(lock, has_work);
    }
    if (registration_request_) {
      const Member self = *std::exchange(registration_request_, std::nullopt);
      lock.unlock();
      Status result = Register(self);
      lock.lock();
      registration_result_ = std::move(result);
      changed_.notify_all();
    }
    if (stopping_) return;
    const bool compacted = std::exchange(compacted_, false);
    const bool at_once = std::exchange(renew_at_once_, false);
    if (!registered_) continue;
    lock.unlock();
    must_read_anew_ |= compacted;
    const bool renewal_due = at_once || Now() >= next_renewal_;
    if (renewal_due) Renew();
    // What failed is tried again with the next renewal.
    if (must_read_anew_ && (renewal_due || compacted)) must_read_anew_ = ReadAnew().IsError();
    lock.lock();
  }
}

Status LeasedMembership::SetRenewInterval(milliseconds interval) {
  RETURN_IF_ERROR(CheckInterval(interval, options_.lease_ttl));
  const std::lock_guard lock(mutex_);
  renew_interval_ = interval;
  renew_at_once_ = true;
  changed_.notify_all();
  return Status::OK();
}

Status LeasedMembership::Register(const Member& self) {
  ASSIGN_OR_RETURN(std::string value, EncodeRegistration(self));
  const CallLimits limits = Limits();
  watch_.reset();
  must_read_anew_ = false;
  const TimePoint sent = Now();
  ASSIGN_OR_RETURN(const Lease lease, store_.Grant(options_.lease_ttl, limits));
  registration_ = {lease, options_.prefix + self.address, std::move(value)};
  {
    const std::lock_guard lock(mutex_);
    valid_until_ = ValidUntil(sent, lease.ttl);
  }
  const Status published = PublishAndRead(limits);
  if (published.IsError()) {
    // The put may have happened all the same.
    store_.Revoke(lease.id, {Now() + kLeaveTimeoutUnreachable, stop_.get_token()}).IsOk();
    return published;
  }
  next_renewal_ = Now() + renew_interval_.load();
  OutageEnds();
  return Status::OK();
}

Status LeasedMembership::PublishAndRead(const CallLimits& limits) {
  for (int attempt = 1;; ++attempt) {
    ASSIGN_OR_RETURN(const uint64_t revision, store_.Put(registration_.key, registration_.value,
                                                         registration_.lease.id, limits));
    Result<StoreSnapshot> snapshot = store_.RangePrefix(options_.prefix, revision, limits);
    if (!snapshot.ok()) {
      if (snapshot.status().GetCode() == K_OUT_OF_RANGE && attempt < kPublishAttemptsMax) continue;
      return snapshot.status();
    }
    std::vector<std::string> complaints;
    {
      const std::lock_guard lock(mutex_);
      if (revision <= roster_.epoch()) {
        return errors::Runtime(
            "{} is at revision {} but was at {}: it lost its data; restart this worker",
            store_.name(), revision, roster_.epoch());
      }
      complaints = roster_.Reset(*snapshot);
      registered_ = true;
      ++life_;
      own_key_ = registration_.key;
      own_lease_ = registration_.lease.id;
      tell_view_ = roster_.ToView();
      tell_valid_until_ = valid_until_;
      store_suspect_ = false;
      changed_.notify_all();
    }
    Complain(complaints);
    Watch(revision + 1);
    return Status::OK();
  }
}

void LeasedMembership::Watch(uint64_t from_revision) {
  watch_.reset();
  uint64_t life = 0;
  {
    const std::lock_guard lock(mutex_);
    life = life_;
    compacted_ = false;
    watch_down_since_.reset();
  }
  WatchEvents events;
  events.on_changes = [this, life](const std::vector<StoreChange>& changes) {
    OnChanges(life, changes);
  };
  events.on_compacted = [this] {
    const std::lock_guard lock(mutex_);
    compacted_ = true;
    changed_.notify_all();
  };
  events.on_connection = [this, life](const Status& status) { OnConnection(life, status); };
  watch_ = store_.WatchPrefix(options_.prefix, from_revision, std::move(events));
}

void LeasedMembership::Renew() {
  const TimePoint sent = Now();
  const Result<seconds> ttl = store_.KeepAlive(registration_.lease.id, Limits());
  // A call that took its time to fail has waited long enough.
  next_renewal_ = std::max(sent + renew_interval_.load(), Now() + kRenewalPauseMin);
  if (ttl.ok()) {
    bool watching = false;
    {
      const std::lock_guard lock(mutex_);
      if (!registered_) return;
      valid_until_ = ValidUntil(sent, *ttl);
      tell_valid_until_ = valid_until_;
      watching = !watch_down_since_ || Now() - *watch_down_since_ < options_.store_timeout;
      store_suspect_ = watch_down_since_.has_value();
      changed_.notify_all();
    }
    if (watching) {
      OutageEnds();
    } else {
      OutageBegins(errors::StoreError("{} renews the lease but the watch of the members is broken",
                                      store_.name()));
    }
  } else if (ttl.status().GetCode() == K_NOT_FOUND) {
    Lost(
        errors::StoreError("{} ended the lease of this worker: it was not renewed within {} s, or "
                           "somebody revoked it",
                           store_.name(), registration_.lease.ttl.count()));
  } else if (ttl.status().GetCode() != K_INTERRUPTED) {
    OutageBegins(ttl.status());
  }
}

Status LeasedMembership::ReadAnew() {
  const CallLimits limits = Limits();
  // Whoever registered the same address meanwhile has it: putting ours again must not take it back.
  ASSIGN_OR_RETURN(const StoreSnapshot now, store_.RangePrefix(options_.prefix, 0, limits));
  const StoreEntry* own = nullptr;
  for (const StoreEntry& entry : now.entries) {
    if (entry.key == registration_.key) own = &entry;
  }
  if (own == nullptr) {
    Lost(errors::StoreError("the registration of this worker was removed key={}",
                            registration_.key));
    return Status::OK();
  }
  if (own->lease != registration_.lease.id) {
    Lost(errors::Make(K_DUPLICATED, "another worker registered the address of this one key={}",
                      registration_.key));
    return Status::OK();
  }
  return PublishAndRead(limits);
}

void LeasedMembership::OnChanges(uint64_t life, const std::vector<StoreChange>& changes) {
  std::vector<std::string> complaints;
  {
    const std::lock_guard lock(mutex_);
    if (life != life_ || !registered_) return;
    complaints = roster_.Apply(changes);
    tell_view_ = roster_.ToView();
    for (const StoreChange& change : changes) {
      if (change.entry.key != own_key_) continue;
      if (change.deleted) {
        LostLocked(
            errors::StoreError("the registration of this worker was removed: its lease ended, or "
                               "somebody deleted it key={}",
                               own_key_));
      } else if (change.entry.lease != own_lease_) {
        LostLocked(errors::Make(K_DUPLICATED,
                                "another worker registered the address of this one; give each its "
                                "own worker_address key={}",
                                own_key_));
      }
    }
    changed_.notify_all();
  }
  Complain(complaints);
}

void LeasedMembership::OnConnection(uint64_t life, const Status& status) {
  const std::lock_guard lock(mutex_);
  if (life != life_) return;
  if (status.IsOk()) {
    watch_down_since_.reset();
  } else if (!watch_down_since_) {
    watch_down_since_ = Now();
    store_suspect_ = true;
  }
}

void LeasedMembership::Lost(Status why) {
  const std::lock_guard lock(mutex_);
  LostLocked(std::move(why));
}

void LeasedMembership::LostLocked(Status why) {
  if (!registered_) return;
  registered_ = false;
  tell_view_.reset();
  tell_valid_until_.reset();
  tell_lost_ = std::move(why);
  changed_.notify_all();
}

void LeasedMembership::OutageBegins(const Status& cause) {
  if (outage_since_) return;
  outage_since_ = Now();
  TimePoint valid_until;
  {
    const std::lock_guard lock(mutex_);
    store_suspect_ = true;
    valid_until = valid_until_;
  }
  LOG_WARNING(
      "cluster store is unreachable: no joins or leaves are seen, and this worker stops serving "
      "unless "
      "it is back in time serves_for_ms={} cause='{}'",
      std::max<int64_t>(0, ToMs(valid_until - Now())), cause.GetMsg());
}

void LeasedMembership::OutageEnds() {
  if (!outage_since_) return;
  LOG_INFO("cluster store is back after_ms={}", ToMs(Now() - *outage_since_));
  outage_since_.reset();
}

void LeasedMembership::RunEvents() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock,
                  [this] { return stopping_ || tell_lost_ || tell_valid_until_ || tell_view_; });
    if (stopping_) {
      ++told_;
      changed_.notify_all();
      return;
    }
    const auto lost = std::exchange(tell_lost_, std::nullopt);
    const auto valid_until = std::exchange(tell_valid_until_, std::nullopt);
    auto view = std::exchange(tell_view_, std::nullopt);
    lock.unlock();
    if (lost) {
      LOG_WARNING("lost the registration in the cluster cause='{}'", lost->GetMsg());
      if (events_.on_lost) events_.on_lost(*lost);
    }
    if (valid_until && events_.on_valid_until) events_.on_valid_until(*valid_until);
    if (view && events_.on_view) events_.on_view(*std::move(view));
    lock.lock();
    ++told_;
    changed_.notify_all();
  }
}

Status LeasedMembership::Leave() {
  std::call_once(left_once_, [this] {
    bool registered = false, suspect = false;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    stop_.request_stop();
    control_thread_.join();
    events_thread_.join();
    watch_.reset();
    {
      const std::lock_guard lock(mutex_);
      registered = std::exchange(registered_, false);
      suspect = store_suspect_;
    }
    if (!registered) return;
    const milliseconds timeout =
        suspect ? kLeaveTimeoutUnreachable : std::min(options_.store_timeout, kLeaveTimeoutMax);
    // Only the lease: a plain deletion could hit the registration of who took the address over.
    const Status revoked = store_.Revoke(registration_.lease.id, {Now() + timeout, {}});
    if (revoked.GetCode() != K_NOT_FOUND) left_ = revoked;
  });
  return left_;
}

}  // namespace

Result<std::unique_ptr<Membership>> Membership::Join(LeaseStore& store, Member self,
                                                     MembershipOptions options,
                                                     MembershipEvents events) {
  RETURN_IF_ERROR(Check(options));
  auto membership =
      std::make_unique<LeasedMembership>(store, std::move(options), std::move(events));
  RETURN_IF_ERROR(membership->Join(std::move(self)));
  return std::unique_ptr<Membership>(std::move(membership));
}

}  // namespace datasystem::cluster
