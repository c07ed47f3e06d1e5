// The free pages of a segment: ranges that grow together again when what lies between them comes back.
//
// Threads: any; one short critical section a call.
// Sizes:   bytes, offsets from the start of the segment; all multiples of the page size.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

namespace datasystem::shm {

class PageRanges {
 public:
  // Which end of a free range is used. Short-lived small pieces at one end and large ones at the other
  // keep the middle in one piece.
  enum class End { kLow, kHigh };

  PageRanges(uint64_t size_bytes, uint64_t page_bytes);

  // The offset of `size` bytes that are the caller's until GiveBack(); nothing if no range is that large.
  std::optional<uint64_t> Take(uint64_t size, End end);
  // Takes exactly this piece if all of it is free.
  bool TakeAt(uint64_t offset, uint64_t size);
  // Any part of what was taken. Giving back what is free is our own bug (checked).
  void GiveBack(uint64_t offset, uint64_t size);

  uint64_t page_bytes() const { return page_bytes_; }
  bool IsFree(uint64_t offset, uint64_t size) const;
  uint64_t free_bytes() const;
  uint64_t largest_bytes() const;

 private:
  // The free range that holds all of the piece, or end().
  std::map<uint64_t, uint64_t>::const_iterator Around(uint64_t offset, uint64_t size) const;
  void Insert(uint64_t offset, uint64_t size);
  void Remove(std::map<uint64_t, uint64_t>::const_iterator range);

  const uint64_t size_bytes_;
  const uint64_t page_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  uint64_t free_bytes_ = 0;
  std::map<uint64_t, uint64_t> by_offset_;             // offset to size; no two ranges touch
  std::set<std::pair<uint64_t, uint64_t>> by_size_;    // the same as (size, offset)
};

}  // namespace datasystem::shm
