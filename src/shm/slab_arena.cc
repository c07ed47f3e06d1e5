// What makes jemalloc fit a bounded segment:
// - Decay of 0: pages that become free come back to us at once, where they join their neighbours. Held back
//   by the arena they would be lost to larger values.
// - No thread caches: a cached value keeps a slab alive, and the bound is shared by all arenas.
// - With its default `retain` jemalloc grows an arena by 2 MiB and more at a time and keeps the rest. It
//   falls back to exactly the slab it needs when that is refused, so TakePages() refuses what is larger
//   than a slab. This spares us the process-wide option, which would change the heap as well.
#include "shm/slab_arena.h"

#include <cstring>
#include <string>

namespace datasystem::shm {
namespace {

constexpr uint64_t kSlabPagesMax = 8;  // jemalloc's own are at most 7 pages: size classes are 4 to 7 × 2^n

// jemalloc's arena_config_t, which its public header does not declare (5.3).
struct ArenaConfig {
  extent_hooks_t* hooks;
  bool metadata_use_hooks;
};

template <typename T>
Result<T> ReadControl(const std::string& name) {
  T value{};
  size_t size = sizeof(value);
  const int error = ::mallctl(name.c_str(), &value, &size, nullptr, 0);
  if (error != 0) return errors::Runtime("jemalloc does not know {}: {}", name, std::strerror(error));
  return value;
}

template <typename T>
Status WriteControl(const std::string& name, T value) {
  const int error = ::mallctl(name.c_str(), nullptr, nullptr, &value, sizeof(value));
  if (error != 0) return errors::Runtime("jemalloc refuses {}: {}", name, std::strerror(error));
  return Status::OK();
}

// Any pages of ours may be cut and joined: PageRanges does not remember what was taken as one.
bool AllowSplit(extent_hooks_t*, void*, size_t, size_t, size_t, bool, unsigned) { return false; }
bool AllowMerge(extent_hooks_t*, void*, size_t, void*, size_t, bool, unsigned) { return false; }

}  // namespace

Result<SlabLimits> SlabLimits::Read() {
  ASSIGN_OR_RETURN(const size_t page_bytes, ReadControl<size_t>("arenas.page"));
  ASSIGN_OR_RETURN(const unsigned bins, ReadControl<unsigned>("arenas.nbins"));
  ASSIGN_OR_RETURN(const size_t value_bytes_max,
                   ReadControl<size_t>("arenas.bin." + std::to_string(bins - 1) + ".size"));
  return SlabLimits{.page_bytes = page_bytes, .value_bytes_max = value_bytes_max};
}

SlabArena::SlabArena(PageRanges& pages, SlabPages& slabs, std::span<std::byte> segment)
    : hooks_{.table = {}, .pages = &pages, .slabs = &slabs, .segment = segment} {
  hooks_.table.alloc = &TakePages;
  hooks_.table.dalloc = &GiveBackPages;
  hooks_.table.destroy = &DestroyPages;
  hooks_.table.split = &AllowSplit;
  hooks_.table.merge = &AllowMerge;
}

Result<std::unique_ptr<SlabArena>> SlabArena::Create(PageRanges& pages, SlabPages& slabs,
                                                     std::span<std::byte> segment) {
  std::unique_ptr<SlabArena> arena(new SlabArena(pages, slabs, segment));
  RETURN_IF_ERROR(arena->Open());
  return arena;
}

Status SlabArena::Open() {
  ArenaConfig config{.hooks = &hooks_.table, .metadata_use_hooks = false};
  size_t size = sizeof(index_);
  const int error =
      ::mallctl("experimental.arenas_create_ext", &index_, &size, &config, sizeof(config));
  if (error != 0) {
    return errors::Runtime("jemalloc creates no arena for cache memory (5.3 is needed): {}",
                           std::strerror(error));
  }
  open_ = true;
  const std::string name = "arena." + std::to_string(index_);
  RETURN_IF_ERROR(WriteControl<ssize_t>(name + ".dirty_decay_ms", 0));
  RETURN_IF_ERROR(WriteControl<ssize_t>(name + ".muzzy_decay_ms", 0));
  size_t depth = purge_control_.size();
  const int unknown =
      ::mallctlnametomib((name + ".purge").c_str(), purge_control_.data(), &depth);
  if (unknown != 0) return errors::Runtime("jemalloc does not purge arenas: {}", std::strerror(unknown));
  return Status::OK();
}

SlabArena::~SlabArena() {
  if (!open_) return;
  const std::string name = "arena." + std::to_string(index_) + ".destroy";
  CHECK(::mallctl(name.c_str(), nullptr, nullptr, nullptr, 0) == 0);
}

std::byte* SlabArena::Allocate(size_t size) {
  const size_t alignment = size < kAlignedBytesMin ? kAlignmentSmall : kAlignment;
  return static_cast<std::byte*>(
      ::mallocx(size, MALLOCX_ALIGN(alignment) | MALLOCX_ARENA(index_) | MALLOCX_TCACHE_NONE));
}

void SlabArena::Free(std::byte* value) { ::dallocx(value, MALLOCX_TCACHE_NONE); }

void SlabArena::ReturnEmptySlabs() {
  if (!has_slabs()) return;
  CHECK(::mallctlbymib(purge_control_.data(), purge_control_.size(), nullptr, nullptr, nullptr, 0) == 0);
}

void* SlabArena::TakePages(extent_hooks_t* hooks, void* wanted, size_t size, size_t alignment, bool* zero,
                           bool* commit, unsigned) {
  auto* self = reinterpret_cast<Hooks*>(hooks);
  const uint64_t page_bytes = self->pages->page_bytes();
  // Nothing touches the pages here: whether there is memory behind them is seen to later.
  if (wanted != nullptr || *zero || alignment > page_bytes || size > kSlabPagesMax * page_bytes) return nullptr;
  const auto offset = self->pages->Take(size, PageRanges::End::kHigh);
  if (!offset) return nullptr;
  self->slabs->Add(*offset, size);
  self->taken_bytes.fetch_add(size, std::memory_order_relaxed);
  std::byte* address = self->segment.data() + *offset;
  *commit = true;
  return address;
}

bool SlabArena::GiveBackPages(extent_hooks_t* hooks, void* address, size_t size, bool, unsigned) {
  auto* self = reinterpret_cast<Hooks*>(hooks);
  const auto offset = static_cast<uint64_t>(static_cast<std::byte*>(address) - self->segment.data());
  self->taken_bytes.fetch_sub(size, std::memory_order_relaxed);
  self->slabs->Remove(offset, size);
  self->pages->GiveBack(offset, size);
  return false;  // taken
}

void SlabArena::DestroyPages(extent_hooks_t* hooks, void* address, size_t size, bool committed,
                             unsigned arena) {
  GiveBackPages(hooks, address, size, committed, arena);
}

}  // namespace datasystem::shm
