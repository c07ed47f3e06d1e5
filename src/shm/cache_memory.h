// The cache memory of one worker: memfd segments, and jemalloc arenas that carve extents out of them.
//
// Ownership: owns segments and arenas; every Extent must be gone before it is destroyed (checked).
// Threads:   Allocate and the release of extents are safe from any thread and never block on I/O.
// Bound:     the sum of all extents and of what the arenas need around them never exceeds size_bytes.
#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "shm/extent.h"

namespace datasystem::shm {

struct CacheMemoryOptions {
  uint64_t size_bytes = 0;
  uint32_t arenas = 1;         // independent allocators over the one bound
  bool huge_pages = false;     // MFD_HUGETLB of the machine's default huge page size
  bool transparent_huge_pages = false;
  bool populate_at_start = false;  // else in the background, at idle priority
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
  uint64_t populated_bytes = 0;
};

class CacheMemory {
 public:
  // kRuntimeError with cause and remedy when the machine cannot back it (huge pages free and needed).
  static Result<std::unique_ptr<CacheMemory>> Create(const CacheMemoryOptions& options);
  ~CacheMemory();

  // Aligned to 64 bytes; the content is undefined. kOutOfMemory means "evict, then retry": nothing has
  // changed; the message has the bytes asked for and the largest piece that is free.
  Result<Extent> Allocate(uint64_t size);

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
