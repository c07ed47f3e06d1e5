// Keys for which this worker has an operation under way whose outcome is ordered elsewhere: a set that
// waits for its version, a fetch of a copy that it may keep.
//
// An invalidation that overtakes such an operation must not be forgotten: what then arrives is older than
// what the cluster already knows, and must not be published here.
// Threads: the event loop's.
#pragma once

#include <asio/awaitable.hpp>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/hash.h"
#include "base/wait_list.h"

namespace datasystem::worker {

class PendingKeys {
 public:
  enum class Kind { kUpdate, kFetch };

  explicit PendingKeys(asio::io_context& context) : context_(context) {}

  // One operation; ends with the object.
  class Operation {
   public:
    Operation(PendingKeys& pending, std::string key, Kind kind);
    Operation(const Operation&) = delete;
    ~Operation();

    // Versions up to this one were invalidated while the operation ran.
    uint64_t invalidated_up_to() const { return invalidated_up_to_; }

   private:
    friend class PendingKeys;
    PendingKeys& pending_;
    const std::string key_;
    const Kind kind_;
    uint64_t invalidated_up_to_ = 0;
  };

  void Invalidate(std::string_view key, uint64_t version);
  bool HasUpdate(std::string_view key) const;
  // Until an operation on the key has ended, or the deadline.
  asio::awaitable<void> WaitForEnd(std::string key, TimePoint deadline);

 private:
  struct Slot {
    explicit Slot(asio::io_context& context) : ended(context) {}
    std::list<Operation*> operations;
    WaitList ended;
  };

  asio::io_context& context_;
  std::unordered_map<std::string, std::shared_ptr<Slot>, KeyHash, std::equal_to<>> slots_;
};

}  // namespace datasystem::worker
