// Brings many small values from other workers with few messages: one to each shard that has to be asked where
// they are, which sends what its own node has, then one to each owner.
//
// What cannot come that way (large values, keys that are being changed, peers that fail) is left to
// ObjectService::Get, which waits, retries and says what is wrong.
// Threads: the event loop's.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker/flights.h"
#include "worker/holder.h"
#include "worker/node.h"

namespace datasystem::worker {

class Gather {
 public:
  using Outcome = std::optional<Result<store::ObjectRef>>;

  Gather(const Node& node, const Holder& holder, Flights& flights, bool keep_copies)
      : node_(node), holder_(holder), flights_(flights), keep_copies_(keep_copies) {}

  // `outcomes` has a place for each key, all empty; those that it could not bring stay so. Keys that do not
  // exist are told only if `wait_until` has passed. The arguments must stay valid until it returns.
  asio::awaitable<void> Fetch(std::span<const std::string> keys, std::span<Outcome> outcomes,
                              TimePoint wait_until, TimePoint deadline);

 private:
  struct Wanted;
  class Target;
  class Call;

  const Node& node_;
  const Holder& holder_;
  Flights& flights_;
  const bool keep_copies_;
};

}  // namespace datasystem::worker
