// Which pages of a segment are slabs: who frees a value learns from its address how it was
// allocated.
//
// The value's size cannot tell, since a large value may have been trimmed to a small one.
// Threads: any. Says nothing of pages that another thread takes or gives back at this moment.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace datasystem::shm {

class SlabPages {
 public:
  // Sizes and offsets in bytes; ranges are whole pages.
  SlabPages(uint64_t size_bytes, uint64_t page_bytes)
      : page_bytes_(page_bytes), bits_(size_bytes / page_bytes / kBits + 1) {}

  bool Contains(uint64_t offset) const {
    const uint64_t page = offset / page_bytes_;
    // Relaxed, here and below: whoever frees a value was given it by a thread that saw the bit set.
    return (bits_[page / kBits].load(std::memory_order_relaxed) & Bit(page)) != 0;
  }
  void Add(uint64_t offset, uint64_t size) {
    for (uint64_t page = offset / page_bytes_; page < (offset + size) / page_bytes_; ++page) {
      bits_[page / kBits].fetch_or(Bit(page), std::memory_order_relaxed);
    }
  }
  void Remove(uint64_t offset, uint64_t size) {
    for (uint64_t page = offset / page_bytes_; page < (offset + size) / page_bytes_; ++page) {
      bits_[page / kBits].fetch_and(~Bit(page), std::memory_order_relaxed);
    }
  }

 private:
  static constexpr uint64_t kBits = 64;
  static uint64_t Bit(uint64_t page) { return uint64_t{1} << page % kBits; }

  const uint64_t page_bytes_;
  std::vector<std::atomic<uint64_t>> bits_;
};

}  // namespace datasystem::shm
