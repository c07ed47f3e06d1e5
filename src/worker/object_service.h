// What a client of this worker can do with objects, wherever they are.
//
// Every call ends by its deadline. K_TRY_AGAIN of the protocol (the ring is changing, a copy moved) is
// retried inside and never reaches a client; so is a peer that cannot be reached because it has left.
// Threads: the event loop's.
#pragma once

#include <string>
#include <vector>

#include "shm/extent.h"
#include "worker/holder.h"
#include "worker/node.h"

namespace datasystem::worker {

struct SetOptions {
  bool only_if_absent = false;
  bool evictable = false;
  uint64_t ttl_ms = 0;  // 0 = lives until deleted
};

struct ServiceCounters {
  uint64_t sets = 0;
  uint64_t local_hits = 0;
  uint64_t remote_hits = 0;
  uint64_t misses = 0;
  uint64_t failures = 0;
};

class ObjectService {
 public:
  struct Options {
    bool keep_copies = true;  // enable_data_replication
  };
  ObjectService(const Node& node, Holder& holder, Options options)
      : node_(node), holder_(holder), options_(options) {}

  // Publishes the value in `extent` and takes it. It is visible, whole, when this returns OK, and no older
  // value can be read anywhere. On an error the extent is left to the caller; whether an older value
  // survived is not known.
  asio::awaitable<Status> Set(std::string key, shm::Extent& extent, SetOptions options, TimePoint deadline);

  // A copy on this node: kept, fetched just now, or waited for until `wait_until`.
  asio::awaitable<Result<store::ObjectRef>> Get(std::string key, TimePoint wait_until, TimePoint deadline);
  // The part of Get that needs no message: null if there is no copy here.
  Result<store::ObjectRef> GetHere(std::string_view key);

  // OK if the key does not exist (any more).
  asio::awaitable<Status> Delete(std::string key, TimePoint deadline);
  asio::awaitable<Result<std::vector<bool>>> Exist(std::vector<std::string> keys, TimePoint deadline);

  // OK while this worker may serve; else kNotReady with the reason.
  Status Serving() const { return node_.view.Serving(); }
  const ServiceCounters& counters() const { return counters_; }

 private:
  asio::awaitable<Result<uint64_t>> RequestVersion(std::string key, uint64_t size, SetOptions options,
                                                   uint64_t discarded, TimePoint deadline);
  asio::awaitable<Result<store::ObjectRef>> Fetch(std::string key, TimePoint wait_until,
                                                  TimePoint deadline);
  asio::awaitable<Status> ResolveOwnGrant(std::string key, uint64_t version, TimePoint deadline);
  asio::awaitable<Result<bool>> DeleteOnce(std::string key, TimePoint deadline);
  asio::awaitable<Result<std::vector<bool>>> ExistOnce(std::vector<std::string> keys, TimePoint deadline);
  // After an attempt that began in `epoch` failed for `reason`. OK, after a wait for news: try again. Else the
  // error to report: nothing that a retry could put right, or the time is up.
  asio::awaitable<Status> BeforeRetry(Status reason, uint64_t epoch, int attempt, TimePoint deadline);

  const Node& node_;
  Holder& holder_;
  const Options options_;
  ServiceCounters counters_;
};

}  // namespace datasystem::worker
