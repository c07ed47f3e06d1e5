// Memory for records and keys: size classes of one unit, filled from the start of the region, reused by lists.
//
// Threads: one. Sizes: bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "shm/record.h"

namespace datasystem::shm {

class RecordHeap {
 public:
  static constexpr size_t kSizeMax = 1088;  // a record with the longest key

  // `region` is zeroed. Its first unit is never given out, so that no record has the id 0.
  explicit RecordHeap(std::span<std::byte> region) : region_(region), used_(kRecordUnit) {}

  // Null when no block is left that is large enough.
  void* Allocate(size_t size);
  void Free(void* block, size_t size);
  uint64_t allocated_bytes() const { return allocated_; }
  uint64_t size_bytes() const { return region_.size(); }

 private:
  static constexpr size_t kClasses = kSizeMax / kRecordUnit + 1;
  static size_t ClassOf(size_t size) { return (size + kRecordUnit - 1) / kRecordUnit; }
  uint32_t& LinkAt(uint32_t unit) { return *reinterpret_cast<uint32_t*>(region_.data() + uint64_t{unit} * kRecordUnit); }
  void Push(size_t size_class, uint32_t unit);
  uint32_t Pop(size_t size_class);

  const std::span<std::byte> region_;
  uint64_t used_;           // from here on nothing was ever given out
  uint64_t allocated_ = 0;
  std::array<uint32_t, kClasses> free_{};  // first block of each class, in units; 0: none
};

}  // namespace datasystem::shm
