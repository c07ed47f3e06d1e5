// A worker's place in the cluster: registers it under a lease, renews the lease, watches the others.
//
// Runs its own control threads, which may block on the cluster store; nothing of the data path waits for
// them. Callbacks come on those threads, one at a time.
#pragma once

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
  // The set of members changed. Epochs only grow. The first call comes before Join returns.
  std::function<void(View)> on_view;
  // Until when this worker may act as a member: counted from before the renewal was sent and kept below
  // the lease by a margin for clock rates, so that it ends before the store lets anyone take over.
  std::function<void(TimePoint)> on_valid_until;
  // The registration is gone (lease expired, or removed). The worker must drop what it holds and call
  // Rejoin with a new incarnation, until that succeeds.
  std::function<void(Status)> on_lost;
};

class Membership {
 public:
  // Registers `self` and reads the members. Replaces a registration with the same address: whoever holds
  // the address's port is the living one. Errors: kKvStoreError when the store cannot be reached within
  // store_timeout, naming it and the remedy.
  // `store` must outlive the Membership.
  static Result<std::unique_ptr<Membership>> Join(LeaseStore& store, Member self,
                                                  MembershipOptions options, MembershipEvents events);
  virtual ~Membership() = default;

  // After on_lost: a new lease and registration.
  virtual Status Rejoin(Member self) = 0;
  // Removes the registration (so that others need not wait for the lease) and stops the threads.
  // Callable twice; no callback comes after it returned.
  virtual Status Leave() = 0;
};

}  // namespace datasystem::cluster
