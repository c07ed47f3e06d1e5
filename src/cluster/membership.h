// A worker's place in the cluster: registers it under a lease, renews the lease, watches the
// others.
//
// Runs its own control threads, which may block on the cluster store; nothing of the data path
// waits for them. Callbacks come on one of those threads, one at a time, and must be short: a slow
// one delays the next, on_valid_until included, but not the renewals. How it works: membership.cc.
//
// A registration that somebody removes from the cluster store by hand (etcdctl del) is lost like
// one whose lease expired, but without the fence of on_valid_until: others may see it go first.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/lease_store.h"
#include "cluster/view.h"

namespace datasystem::cluster {

struct MembershipOptions {
  std::string prefix;  // of the registrations, e.g. "/datasystem/<cluster_name>/workers/"
  std::chrono::seconds lease_ttl{60};
  std::chrono::milliseconds renew_interval{1000};
  std::chrono::milliseconds store_timeout{3000};  // of one call to the store
};

struct MembershipEvents {
  // The set of members changed. Epochs only grow; views in between may be left out. The first call
  // comes before Join returns.
  std::function<void(View)> on_view;
  // Until when this worker may act as a member: counted from before the renewal was sent and kept
  // below the lease by a margin for clock rates, so that it ends before the store lets anyone take
  // over.
  std::function<void(TimePoint)> on_valid_until;
  // The registration is gone: kKvStoreError (lease expired, or removed) or kDuplicated (another
  // worker registered the same address). Called once for each registration; no view follows until
  // Rejoin. The worker must drop what it holds and call Rejoin with a new incarnation, until that
  // succeeds.
  std::function<void(Status)> on_lost;
};

class Membership {
 public:
  // Registers `self` and reads the members. Replaces a registration with the same address: whoever
  // holds the address's port is the living one. Errors: kKvStoreError when the store cannot be
  // reached within store_timeout, naming it and the remedy; kInvalid for options or a member that
  // make no sense. `store` must outlive the Membership.
  static Result<std::unique_ptr<Membership>> Join(LeaseStore& store, Member self,
                                                  MembershipOptions options,
                                                  MembershipEvents events);
  // Leaves.
  virtual ~Membership() = default;

  // After on_lost, from any thread, callbacks included: a new lease and registration. Its first
  // view follows as a callback. kInvalid if the registration is not lost; kRuntimeError if the
  // cluster store lost its data (its revisions went back): only a restart of the worker helps.
  virtual Status Rejoin(Member self) = 0;
  // From any thread, callbacks included: renews at once, and from then on at this interval. kInvalid,
  // and nothing changes, if it is not between 0 and the lease.
  virtual Status SetRenewInterval(std::chrono::milliseconds interval) = 0;
  // Removes the registration (so that others need not wait for the lease) and stops the threads.
  // Takes 50 ms at most when the store was unreachable before, 1 s otherwise. An error: the
  // registration stays until its lease ends. Callable twice, but not from a callback; no callback
  // comes after it returned.
  virtual Status Leave() = 0;
};

}  // namespace datasystem::cluster
