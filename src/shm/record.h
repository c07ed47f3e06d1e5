// The record of one object, as it lies in the index segment: the worker writes it, clients read it.
//
// What clients read never changes while the record is linked (but for the expiry), so who has pinned a record may
// read all of it without a lock. The layout is part of the session protocol: kIndexLayout counts its changes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/clock.h"
#include "shm/extent.h"

namespace datasystem::shm {

// A record's place in the index segment, in units of kRecordUnit; 0 is none.
using RecordId = uint32_t;
constexpr uint64_t kRecordUnit = 16;

constexpr int64_t kNeverExpires = std::numeric_limits<int64_t>::max();

// As nanoseconds of CLOCK_MONOTONIC, which all processes of a node agree on.
inline int64_t ToMonotonicNs(TimePoint at) {
  return at == TimePoint::max() ? kNeverExpires
                                : std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

struct Record {
  uint64_t place = 0;   // segment in the upper 16 bits, offset in the lower 48
  uint64_t sizes = 0;   // of the key in the upper 16 bits, of the value in the lower 48
  std::atomic<int64_t> expires_at_ns{kNeverExpires};  // readers look themselves
  // The rest is for the store alone.
  uint64_t version = 0;
  RecordId newer = 0;   // in SIEVE's queue
  RecordId older = 0;
  uint32_t references = 0;
  uint32_t expiry_position = 0;  // in the heap of those that expire, counted from 1
  // The key follows.

  static constexpr uint64_t kLowMask = (uint64_t{1} << 48) - 1;

  Record() = default;
  Record(std::string_view key, const Location& value)
      : place(uint64_t{value.segment} << 48 | value.offset), sizes(uint64_t{key.size()} << 48 | value.size) {
    key.copy(reinterpret_cast<char*>(this + 1), key.size());
  }

  uint64_t value_size() const { return sizes & kLowMask; }
  Location location() const {
    return {.segment = static_cast<uint32_t>(place >> 48), .offset = place & kLowMask, .size = value_size()};
  }
  std::string_view key() const { return {reinterpret_cast<const char*>(this + 1), sizes >> 48}; }
};
static_assert(sizeof(Record) == 48, "counts once per object; part of the layout");

}  // namespace datasystem::shm
