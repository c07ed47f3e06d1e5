// One segment, two ways to carve it. Small values (to 14 KiB with pages of 4 KiB) come out of jemalloc's
// slabs, which pack them tightly. Larger ones get whole pages from PageRanges directly: jemalloc would round
// them up to its size classes, a quarter more at worst (513 MiB would take 640), plus a page. Slabs and large
// extents share the pages, so the segment's size is the one bound of all arenas.
#include "shm/cache_memory.h"

#include <atomic>

#include "base/check.h"
#include "base/log.h"
#include "shm/backing.h"
#include "shm/backing_thread.h"
#include "shm/page_ranges.h"
#include "shm/segment.h"
#include "shm/slab_arena.h"
#include "shm/slab_pages.h"

namespace datasystem::shm {
namespace {

constexpr uint32_t kSegmentId = 0;
constexpr uint64_t kBackingStepBytes = 4 << 20;  // see docs/decisions/0010.md
constexpr uint64_t kMib = 1 << 20;
constexpr uint64_t kTransparentHugePageBytes = 2 * kMib;  // what x86-64 and arm64 with small pages have

// Spreads threads over arenas: each takes the next number when it first allocates.
uint32_t ThreadNumber() {
  static std::atomic<uint32_t> next{0};
  thread_local const uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

// Not a refusal: the limit may be raised while the worker runs, and the cache may never fill.
void WarnIfContainerIsSmaller(const HeadRoomSource& source, uint64_t size_bytes) {
  const auto limit = source.ContainerLimit();
  if (!limit || *limit >= size_bytes) return;
  LOG_WARNING(
      "shared memory is configured for {} MiB, but this container's memory limit is {} MiB: the cache will "
      "be full before. Raise the limit or lower shared_memory_size_mb",
      size_bytes / kMib, *limit / kMib);
}

BackingOptions BackingFrom(const CacheMemoryOptions& options, uint64_t size_bytes) {
  BackingOptions backing{.fallocate = options.fallocate,
                         .gives_back = !options.huge_pages && !options.populate_at_start && !options.pinned,
                         .head_room = options.head_room};
  if (options.transparent_huge_pages) backing.chunk_bytes_min = kTransparentHugePageBytes;
  if (options.huge_pages) {
    backing.head_room = nullptr;  // reserved when they were mapped, and no part of the limits
  } else if (!backing.head_room) {
    const HeadRoomSource source;
    WarnIfContainerIsSmaller(source, size_bytes);
    backing.head_room = [source] { return source.Read(); };
  }
  return backing;
}

}  // namespace

struct CacheMemory::Impl {
  Impl(Segment memory, const SlabLimits& slab_limits, const CacheMemoryOptions& options)
      : segment(std::move(memory)),
        limits(slab_limits),
        pages(segment.bytes().size() / limits.page_bytes * limits.page_bytes, limits.page_bytes),
        slabs(segment.bytes().size(), limits.page_bytes),
        backing(segment, pages, BackingFrom(options, segment.bytes().size())),
        backing_thread(backing, options.return_idle_after) {}

  uint64_t PagesFor(uint64_t size) const {
    return (size + limits.page_bytes - 1) / limits.page_bytes * limits.page_bytes;
  }
  std::byte* Take(uint64_t size);
  std::byte* TakeSmall(uint64_t size);
  std::byte* TakePages(uint64_t size);
  void ReturnEmptySlabs() {
    for (const auto& arena : arenas) arena->ReturnEmptySlabs();
  }

  Segment segment;
  SlabLimits limits;
  PageRanges pages;
  SlabPages slabs;
  std::vector<std::unique_ptr<SlabArena>> arenas;
  Backing backing;
  BackingThread backing_thread;
  std::atomic<uint64_t> allocated_bytes{0};
  std::atomic<uint64_t> extents{0};
};

std::byte* CacheMemory::Impl::TakeSmall(uint64_t size) {
  const uint32_t own = ThreadNumber() % arenas.size();
  if (std::byte* data = arenas[own]->Allocate(size)) return data;
  // No page is left for a new slab, but the slabs of the other arenas may still have room.
  for (uint32_t i = 0; i < arenas.size(); ++i) {
    if (i == own || !arenas[i]->has_slabs()) continue;
    if (std::byte* data = arenas[i]->Allocate(size)) return data;
  }
  return nullptr;
}

std::byte* CacheMemory::Impl::TakePages(uint64_t size) {
  const auto offset = pages.Take(PagesFor(size), PageRanges::End::kLow);
  return offset ? segment.bytes().data() + *offset : nullptr;
}

std::byte* CacheMemory::Impl::Take(uint64_t size) {
  const auto take = [&] { return size <= limits.value_bytes_max ? TakeSmall(size) : TakePages(size); };
  if (std::byte* data = take()) return data;
  const uint64_t free_before = pages.free_bytes();
  ReturnEmptySlabs();
  return pages.free_bytes() > free_before ? take() : nullptr;
}

Result<std::unique_ptr<CacheMemory>> CacheMemory::Create(const CacheMemoryOptions& options) {
  if (options.arenas == 0) return errors::Invalid("cache memory needs at least one arena");
  ASSIGN_OR_RETURN(const SlabLimits limits, SlabLimits::Read());
  ASSIGN_OR_RETURN(Segment segment,
                   Segment::Create({.size_bytes = options.size_bytes,
                                    .huge_pages = options.huge_pages,
                                    .transparent_huge_pages = options.transparent_huge_pages}));
  auto impl = std::make_unique<Impl>(std::move(segment), limits, options);
  for (uint32_t i = 0; i < options.arenas; ++i) {
    ASSIGN_OR_RETURN(auto arena, SlabArena::Create(impl->pages, impl->slabs, impl->segment.bytes()));
    impl->arenas.push_back(std::move(arena));
  }
  if (options.populate_at_start) {
    RETURN_IF_ERROR(impl->backing_thread.PopulateNow());
  } else {
    impl->backing_thread.Start();
  }
  return std::unique_ptr<CacheMemory>(new CacheMemory(std::move(impl)));
}

CacheMemory::CacheMemory(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CacheMemory::~CacheMemory() { CHECK(impl_->extents.load() == 0); }

Result<Extent> CacheMemory::Reserve(uint64_t size) {
  if (size == 0) return errors::Invalid("an extent has at least one byte");
  // Beyond this, rounding up to pages could overflow.
  std::byte* data = size <= impl_->segment.bytes().size() ? impl_->Take(size) : nullptr;
  if (data == nullptr) {
    return errors::OutOfMemory("no cache memory for {} bytes: the largest free piece has {} of {} bytes{}", size,
                               impl_->pages.largest_bytes(), impl_->segment.bytes().size(),
                               size <= impl_->limits.value_bytes_max ? ", and values this small come in slabs of many" : "");
  }
  impl_->allocated_bytes.fetch_add(size, std::memory_order_relaxed);
  impl_->extents.fetch_add(1, std::memory_order_relaxed);
  const auto offset = static_cast<uint64_t>(data - impl_->segment.bytes().data());
  return Extent(this, {.segment = kSegmentId, .offset = offset, .size = size}, data);
}

Result<bool> CacheMemory::Back(const Extent& extent) {
  CHECK(extent.memory_ == this);
  const Location& location = extent.location();
  return impl_->backing.Back(location.offset, location.size, kBackingStepBytes);
}

Result<Extent> CacheMemory::Allocate(uint64_t size) {
  ASSIGN_OR_RETURN(Extent extent, Reserve(size));
  for (bool backed = false; !backed;) {
    ASSIGN_OR_RETURN(backed, Back(extent));
  }
  return extent;
}

Extent CacheMemory::Adopt(const Location& location) {
  const auto bytes = Resolve(location);
  CHECK(bytes.ok() && location.size > 0);
  return Extent(this, location, bytes->data());
}

void CacheMemory::Trim(Extent& extent, uint64_t size) {
  const Location before = extent.location();
  CHECK(extent.memory_ == this && size >= 1 && size <= before.size);
  const uint64_t kept = impl_->PagesFor(size);
  const uint64_t held = impl_->PagesFor(before.size);
  if (kept < held && !impl_->slabs.Contains(before.offset)) {
    impl_->pages.GiveBack(before.offset + kept, held - kept);
  }
  impl_->allocated_bytes.fetch_sub(before.size - size, std::memory_order_relaxed);
  extent.location_.size = size;
}

void CacheMemory::Free(const Location& location, std::byte* data) {
  if (impl_->slabs.Contains(location.offset)) {
    SlabArena::Free(data);
  } else {
    impl_->pages.GiveBack(location.offset, impl_->PagesFor(location.size));
  }
  impl_->allocated_bytes.fetch_sub(location.size, std::memory_order_relaxed);
  impl_->extents.fetch_sub(1, std::memory_order_relaxed);
}

std::vector<SegmentHandle> CacheMemory::segments() const {
  return {{.id = kSegmentId, .fd = impl_->segment.fd(), .size_bytes = impl_->segment.bytes().size()}};
}

Result<std::span<std::byte>> CacheMemory::Resolve(const Location& location) const {
  const std::span<std::byte> bytes = impl_->segment.bytes();
  if (location.segment != kSegmentId || location.offset > bytes.size() ||
      location.size > bytes.size() - location.offset) {
    return errors::OutOfRange("segment {} offset {} size {} is outside the cache memory of {} bytes",
                              location.segment, location.offset, location.size, bytes.size());
  }
  return bytes.subspan(location.offset, location.size);
}

CacheMemoryUsage CacheMemory::usage() const {
  impl_->ReturnEmptySlabs();
  const uint64_t size_bytes = impl_->segment.bytes().size();
  // A free page serves a small value as well as a large one; room inside partly used slabs does not count.
  return {.size_bytes = size_bytes,
          .allocated_bytes = impl_->allocated_bytes.load(std::memory_order_relaxed),
          .reserved_bytes = size_bytes - impl_->pages.free_bytes(),
          .largest_free_bytes = impl_->pages.largest_bytes(),
          .populated_bytes = impl_->backing.backed_bytes()};
}

Extent::~Extent() {
  if (memory_ != nullptr) memory_->Free(location_, data_);
}

}  // namespace datasystem::shm
