// The cluster store: a small, strongly consistent key-value store with revisions, leases and
// watches. etcd (ConnectEtcd), or the embedded one of a single node (CreateEmbeddedStore).
//
// Every change gives the store a new, larger revision. A lease is a promise with an end: keys put
// under it are deleted, as one change, when it is revoked or not kept alive for its TTL.
//
// Errors of all calls: kInterrupted once `limits.stop` is requested; kKvStoreError when the store
// cannot be reached before the deadline or refuses, with endpoint, cause and remedy. Others are
// named below. A call that failed may still have taken effect. Threads: all calls from any thread;
// they block until the deadline at most.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace datasystem::cluster {

using LeaseId = int64_t;
inline constexpr LeaseId kNoLease = 0;

struct Lease {
  LeaseId id = kNoLease;
  std::chrono::seconds ttl{0};  // as the store gave it: it may be more than was asked for
};

struct StoreEntry {
  std::string key;
  std::string value;
  uint64_t mod_revision = 0;  // of the last change of this key
  LeaseId lease = kNoLease;
};

struct StoreSnapshot {
  std::vector<StoreEntry> entries;  // sorted by key
  uint64_t revision = 0;            // at which they were read
};

struct StoreCreation {
  bool created = false;
  StoreEntry entry;  // what the key holds now
};

struct StoreChange {
  bool deleted = false;
  StoreEntry entry;  // of a deletion only key and mod_revision
};

struct CallLimits {
  TimePoint deadline;
  std::stop_token stop;  // ends the call at once
};

// Called on the watch's own thread, one at a time.
struct WatchEvents {
  // All changes of one or several revisions, in order: a revision is never split over two calls.
  std::function<void(const std::vector<StoreChange>&)> on_changes;
  // The changes since the last call are no longer kept. The watch has ended; read, then watch anew.
  std::function<void()> on_compacted;
  // OK: watching (the first time too). An error: connection lost, once an outage; it is restored
  // without a gap by itself. Optional.
  std::function<void(Status)> on_connection;
};

// Destroying it ends the watch and waits for a callback that runs; never do so in a callback.
class Watch {
 public:
  virtual ~Watch() = default;
};

class LeaseStore {
 public:
  virtual ~LeaseStore() = default;

  // For messages, e.g. "etcd at 10.0.0.1:2379".
  virtual std::string name() const = 0;

  virtual Result<Lease> Grant(std::chrono::seconds ttl, CallLimits limits) = 0;
  // The time from now for which the lease is good. kNotFound: the lease has ended.
  virtual Result<std::chrono::seconds> KeepAlive(LeaseId lease, CallLimits limits) = 0;
  // Deletes what was put under the lease and not put under another since. kNotFound: it has ended.
  virtual Status Revoke(LeaseId lease, CallLimits limits) = 0;

  // The revision of the change. kNotFound: no such lease.
  virtual Result<uint64_t> Put(std::string_view key, std::string_view value, LeaseId lease,
                               CallLimits limits) = 0;
  // kNotFound: no such lease.
  virtual Result<StoreCreation> CreateIfAbsent(std::string_view key, std::string_view value,
                                               LeaseId lease, CallLimits limits) = 0;
  // Whether there was one.
  virtual Result<bool> Delete(std::string_view key, CallLimits limits) = 0;
  // The keys that start with `prefix` (not empty) as they were at a revision; 0 means now.
  // kOutOfRange: that revision is no longer kept, or still to come.
  virtual Result<StoreSnapshot> RangePrefix(std::string_view prefix, uint64_t at_revision,
                                            CallLimits limits) = 0;
  // Reports changes of keys that start with `prefix` (not empty), from `from_revision` (at least 1)
  // on. Never blocks. The store must outlive the watch.
  virtual std::unique_ptr<Watch> WatchPrefix(std::string prefix, uint64_t from_revision,
                                             WatchEvents events) = 0;
};

}  // namespace datasystem::cluster
