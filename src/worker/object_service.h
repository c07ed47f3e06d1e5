// What a client of this worker can do with objects, wherever they are.
//
// Every call ends by its deadline. K_TRY_AGAIN of the protocol (the ring is changing, a copy moved) is
// retried inside and never reaches a client; so is a peer that cannot be reached because it has left.
// Threads: the event loop's.
#pragma once

#include <string>
#include <vector>

#include "shm/extent.h"
#include "worker/flights.h"
#include "worker/gather.h"
#include "worker/holder.h"
#include "worker/node.h"
#include "worker/writer.h"

namespace datasystem::worker {

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
      : node_(node), holder_(holder), options_(options), writer_(node, holder), flights_(node.context),
        gather_(node, holder, flights_, options.keep_copies) {}

  // Publishes the value in `extent` and takes it. It is visible, whole, when this returns OK, and no older
  // value can be read anywhere. On an error the extent is left to the caller; whether an older value
  // survived is not known.
  asio::awaitable<Status> Set(std::string key, shm::Extent& extent, SetOptions options, TimePoint deadline);

  // Publishes a value for each of 1 to 8 distinct keys, or none: K_OC_KEY_ALREADY_EXIST names the key that exists,
  // and needs only_if_absent to be set (K_INVALID). Takes the extents on success; after an error no value of
  // this call is visible and those of other keys are untouched.
  // Of two calls that share keys, which do not exist, exactly one succeeds: versions are asked for in the order of
  // the keys, so that two calls cannot each hold what the other lacks. Until the outcome is known, readers of
  // the keys wait; Exist says that they exist, and others' only_if_absent is refused.
  asio::awaitable<Status> SetAll(std::vector<std::string> keys, std::vector<shm::Extent>& extents,
                                 SetOptions options, TimePoint deadline);

  // A copy on this node: kept, fetched just now, or waited for until `wait_until`.
  asio::awaitable<Result<store::ObjectRef>> Get(std::string key, TimePoint wait_until, TimePoint deadline);
  // The same for many keys, of which none is here, with few messages (worker/gather.h).
  asio::awaitable<std::vector<Result<store::ObjectRef>>> GetMany(std::vector<std::string> keys,
                                                                 TimePoint wait_until, TimePoint deadline);
  // The part of Get that needs no message: null if there is no copy here.
  Result<store::ObjectRef> GetHere(std::string_view key);

  // OK if the key does not exist (any more).
  asio::awaitable<Status> Delete(std::string key, TimePoint deadline);
  asio::awaitable<Result<std::vector<bool>>> Exist(std::vector<std::string> keys, TimePoint deadline);

  // The key lives for `ttl_ms` from now on (0 = until deleted), in every copy: when this returns OK, nobody can
  // read it by the old time. K_NOT_FOUND if it does not exist. After another error both times are possible.
  asio::awaitable<Status> Expire(std::string key, uint64_t ttl_ms, TimePoint deadline);
  // The size of each value, in order, which stays where it is. Each key has its own error, like K_NOT_FOUND; the
  // whole fails only if this worker may not serve.
  asio::awaitable<Result<std::vector<Result<uint64_t>>>> Sizes(std::vector<std::string> keys, TimePoint deadline);

  // OK while this worker may serve; else kNotReady with the reason.
  Status Serving() const { return node_.view.Serving(); }
  const ServiceCounters& counters() const { return counters_; }

 private:
  struct Question {
    std::string key;
    TimePoint wait_until;
    TimePoint deadline;
    bool keep_copy = false;
    bool size_only = false;
  };
  // What a shard or an owner said about a value that is elsewhere.
  struct Told {
    proto::PeerGetAnswer answer;
    std::string by;  // the worker that answered; empty if this one's own shard did
  };
  asio::awaitable<Result<Told>> Ask(Question question, std::shared_ptr<transport::PayloadTarget> target);
  asio::awaitable<Result<store::ObjectRef>> Fetch(std::string key, TimePoint wait_until, TimePoint deadline);
  asio::awaitable<Result<uint64_t>> SizeOf(std::string key, TimePoint deadline);
  asio::awaitable<Result<uint64_t>> SizeElsewhere(std::string key, TimePoint deadline);
  asio::awaitable<Status> ResolveOwnGrant(std::string key, uint64_t version, TimePoint deadline);
  asio::awaitable<Result<bool>> DeleteOnce(std::string key, TimePoint deadline);
  asio::awaitable<Status> ExpireOnce(std::string key, uint64_t ttl_ms, TimePoint deadline);
  asio::awaitable<Result<std::vector<bool>>> ExistOnce(std::vector<std::string> keys, TimePoint deadline);

  const Node& node_;
  Holder& holder_;
  const Options options_;
  Writer writer_;
  Flights flights_;
  Gather gather_;
  ServiceCounters counters_;
};

}  // namespace datasystem::worker
