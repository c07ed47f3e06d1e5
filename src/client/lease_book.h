// Buffers that the worker has given ahead (session.proto, Lease), and when to ask for one.
//
// A client that has set two values of about the same size within a second will likely set another.
// Threads: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "proto/session_messages.h"

namespace datasystem::client {

class LeaseBook {
 public:
  static constexpr size_t kHeldMax = 8;

  // Sizes of a class share leases: the size rounded up to an eighth of its power of two.
  static uint64_t ClassOf(uint64_t size);

  // A lease for a value of this size, out of the book. The worker may have taken it back by now.
  std::optional<proto::Lease> Take(uint64_t size);
  // A value of this size is being set: what to ask for as lease_size; 0: nothing.
  uint64_t Wish(uint64_t size, TimePoint now);
  void Add(const proto::Lease& lease);

 private:
  std::mutex mutex_;
  // All below: under mutex_.
  uint64_t last_class_ = 0;
  TimePoint last_set_{};
  std::vector<proto::Lease> held_;
};

}  // namespace datasystem::client
