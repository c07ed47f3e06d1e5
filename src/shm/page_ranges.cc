// Best fit: the smallest range that is large enough, the lowest of these. Two trees hold the same ranges,
// one by offset to find neighbours, one by size to find fits; every operation is O(log ranges).
#include "shm/page_ranges.h"

#include <iterator>

#include "base/check.h"

namespace datasystem::shm {

PageRanges::PageRanges(uint64_t size_bytes, uint64_t page_bytes)
    : size_bytes_(size_bytes), page_bytes_(page_bytes) {
  CHECK(page_bytes > 0 && size_bytes % page_bytes == 0);
  if (size_bytes > 0) Insert(0, size_bytes);
  free_bytes_ = size_bytes;
}

std::optional<uint64_t> PageRanges::Take(uint64_t size, End end) {
  CHECK(size > 0 && size % page_bytes_ == 0);
  std::lock_guard lock(mutex_);
  const auto fit = by_size_.lower_bound({size, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto [range_size, range_offset] = *fit;
  Remove(by_offset_.find(range_offset));
  const uint64_t rest = range_size - size;
  const uint64_t taken = end == End::kLow ? range_offset : range_offset + rest;
  if (rest > 0) Insert(end == End::kLow ? range_offset + size : range_offset, rest);
  free_bytes_ -= size;
  return taken;
}

std::map<uint64_t, uint64_t>::const_iterator PageRanges::Around(uint64_t offset, uint64_t size) const {
  auto range = by_offset_.upper_bound(offset);
  if (range == by_offset_.begin()) return by_offset_.end();
  --range;
  return offset + size <= range->first + range->second ? range : by_offset_.end();
}

bool PageRanges::TakeAt(uint64_t offset, uint64_t size) {
  std::lock_guard lock(mutex_);
  const auto range = Around(offset, size);
  if (range == by_offset_.end()) return false;
  const auto [range_offset, range_size] = *range;
  Remove(range);
  const uint64_t end = offset + size;
  if (offset > range_offset) Insert(range_offset, offset - range_offset);
  if (end < range_offset + range_size) Insert(end, range_offset + range_size - end);
  free_bytes_ -= size;
  return true;
}

bool PageRanges::IsFree(uint64_t offset, uint64_t size) const {
  std::lock_guard lock(mutex_);
  return Around(offset, size) != by_offset_.end();
}

void PageRanges::GiveBack(uint64_t offset, uint64_t size) {
  CHECK(size > 0 && size % page_bytes_ == 0 && offset % page_bytes_ == 0);
  CHECK(offset <= size_bytes_ && size <= size_bytes_ - offset);
  std::lock_guard lock(mutex_);
  free_bytes_ += size;
  auto next = by_offset_.lower_bound(offset);
  if (next != by_offset_.begin()) {
    const auto previous = std::prev(next);
    const uint64_t previous_end = previous->first + previous->second;
    CHECK(previous_end <= offset);
    if (previous_end == offset) {
      offset = previous->first;
      size += previous->second;
      Remove(previous);
    }
  }
  if (next != by_offset_.end()) {
    CHECK(offset + size <= next->first);
    if (offset + size == next->first) {
      size += next->second;
      Remove(next);
    }
  }
  Insert(offset, size);
}

uint64_t PageRanges::free_bytes() const {
  std::lock_guard lock(mutex_);
  return free_bytes_;
}

uint64_t PageRanges::largest_bytes() const {
  std::lock_guard lock(mutex_);
  return by_size_.empty() ? 0 : by_size_.rbegin()->first;
}

void PageRanges::Insert(uint64_t offset, uint64_t size) {
  by_offset_.emplace(offset, size);
  by_size_.emplace(size, offset);
}

void PageRanges::Remove(std::map<uint64_t, uint64_t>::const_iterator range) {
  by_size_.erase({range->second, range->first});
  by_offset_.erase(range);
}

}  // namespace datasystem::shm
