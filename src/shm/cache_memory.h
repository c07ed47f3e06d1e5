// The cache memory of one worker: memfd segments, and jemalloc arenas that carve extents out of them.
//
// Ownership: owns segments and arenas; every Extent and released Location must have come back before it is
//            destroyed (checked).
// Threads:   any. Nothing blocks on I/O or waits for another thread longer than the arenas' short locks.
// Bound:     the sum of all extents and of what the arenas need around them never exceeds size_bytes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "shm/extent.h"
#include "shm/head_room.h"

namespace datasystem::shm {

struct CacheMemoryOptions {
  uint64_t size_bytes = 0;
  uint32_t arenas = 1;         // independent allocators over the one bound
  bool huge_pages = false;     // MFD_HUGETLB of the machine's default huge page size
  bool transparent_huge_pages = false;
  bool populate_at_start = false;  // else in the background, bit by bit; and nothing goes back then
  bool fallocate = true;           // how missing pages are obtained: see BackingOptions
  // A device will have pinned the pages: they must stay the same.
  bool pinned = false;
  std::chrono::seconds return_idle_after{600};  // what was used and then free for this long
  std::function<HeadRoom()> head_room;          // empty: this machine's and its control groups'
};

// What another process needs to map a segment.
struct SegmentHandle {
  uint32_t id = 0;
  int fd = -1;  // borrowed from CacheMemory
  uint64_t size_bytes = 0;
};

struct CacheMemoryUsage {
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = 0;   // in extents, as asked for
  uint64_t reserved_bytes = 0;    // taken from segments by the arenas
  uint64_t largest_free_bytes = 0;  // the largest Allocate() that could succeed now
  uint64_t populated_bytes = 0;   // whose pages are there
};

class CacheMemory {
 public:
  // kRuntimeError with cause and remedy when the machine cannot back it (huge pages free and needed).
  static Result<std::unique_ptr<CacheMemory>> Create(const CacheMemoryOptions& options);
  ~CacheMemory();

  // With its pages there, so that touching it cannot fail. Aligned to 64 bytes, below 512 bytes to 16; the content is undefined. kOutOfMemory means "evict, then retry": nothing has
  // changed; the message has the bytes asked for and the largest piece that is free, or says that the
  // container or the machine has no more memory.
  // Obtaining pages that nobody used before takes time, 6 to 30 ms for 64 MiB. A thread that must not
  // stall that long calls Reserve(), then Back() until it is true, and does something else in between.
  Result<Extent> Allocate(uint64_t size);
  // An extent whose pages may be missing: its bytes are not to be touched before Back() said true.
  Result<Extent> Reserve(uint64_t size);
  // One step: about 4 MiB, 1 to 2 ms. kOutOfMemory as above; the extent stays the caller's.
  Result<bool> Back(const Extent& extent);
  // Takes back what Extent::Release() gave up, once. The location is the caller's own (checked): what came
  // from elsewhere goes to Resolve().
  Extent Adopt(const Location& location);
  // Keeps the first `size` bytes, 1 to extent.size() (checked). Whole pages of a large extent become free;
  // a small one keeps its place in the slab.
  void Trim(Extent& extent, uint64_t size);

  std::vector<SegmentHandle> segments() const;
  // The bytes of a location that came from elsewhere. kOutOfRange if it is not inside one segment.
  Result<std::span<std::byte>> Resolve(const Location& location) const;
  CacheMemoryUsage usage() const;

 private:
  friend class Extent;
  struct Impl;
  explicit CacheMemory(std::unique_ptr<Impl> impl);
  void Free(const Location& location, std::byte* data);

  std::unique_ptr<Impl> impl_;
};

}  // namespace datasystem::shm
