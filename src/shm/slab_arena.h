// A jemalloc arena for small values. Its slabs are pages of the segment, its records are elsewhere: nothing
// but payload lies in memory that clients map.
//
// Threads: any.
#pragma once

#include <jemalloc/jemalloc.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "shm/page_ranges.h"
#include "shm/slab_pages.h"

namespace datasystem::shm {

// Large values begin on a cache line. Small ones do not: jemalloc would give 100 bytes 128 instead of 112.
constexpr size_t kAlignment = 64;
constexpr size_t kAlignmentSmall = 16;
constexpr size_t kAlignedBytesMin = 512;  // what is smaller has kAlignmentSmall

// The slabs' page size and the largest value that jemalloc packs into them.
struct SlabLimits {
  uint64_t page_bytes = 0;
  uint64_t value_bytes_max = 0;

  static Result<SlabLimits> Read();
};

class SlabArena {
 public:
  // All must outlive it. Notes in `slabs` what it takes from `pages`. kRuntimeError if jemalloc refuses.
  static Result<std::unique_ptr<SlabArena>> Create(PageRanges& pages, SlabPages& slabs,
                                                   std::span<std::byte> segment);
  SlabArena(const SlabArena&) = delete;
  SlabArena& operator=(const SlabArena&) = delete;
  // Every value must have been freed.
  ~SlabArena();

  // 1 to SlabLimits::value_bytes_max bytes, aligned as above; null when no page is left for a slab.
  std::byte* Allocate(size_t size);
  // What any SlabArena allocated.
  static void Free(std::byte* value);
  // Empty slabs go back by themselves, except those that threads raced for: this returns the rest.
  void ReturnEmptySlabs();
  bool has_slabs() const { return hooks_.taken_bytes.load(std::memory_order_relaxed) > 0; }

 private:
  // The hooks are told only where this struct is: it must stay first and keep its address.
  struct Hooks {
    extent_hooks_t table;
    PageRanges* pages;
    SlabPages* slabs;
    std::span<std::byte> segment;
    std::atomic<uint64_t> taken_bytes{0};  // orders nothing else
  };
  static void* TakePages(extent_hooks_t* hooks, void* wanted, size_t size, size_t alignment, bool* zero,
                         bool* commit, unsigned arena);
  static bool GiveBackPages(extent_hooks_t* hooks, void* address, size_t size, bool committed,
                            unsigned arena);
  static void DestroyPages(extent_hooks_t* hooks, void* address, size_t size, bool committed,
                           unsigned arena);
  SlabArena(PageRanges& pages, SlabPages& slabs, std::span<std::byte> segment);
  Status Open();

  Hooks hooks_;
  unsigned index_ = 0;
  std::array<size_t, 3> purge_control_{};  // "arena.<index>.purge", looked up once
  bool open_ = false;
};

}  // namespace datasystem::shm
