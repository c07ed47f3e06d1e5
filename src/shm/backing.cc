// One byte a chunk. Only two things make a chunk missing again: it was missing before, or its whole
// range was taken from PageRanges first, so that nobody uses it. Every other change may race:
// - Back() stores kUsed after it has the pages, whatever was there: two of them do the same twice.
// - PopulateNext() claims a missing chunk as kPopulating and makes it kPopulated only if it still
// is that. A
//   chunk that was used and returned meanwhile is kMissing, and stays so.
// - ReturnIdle() counts looks by compare-and-swap: a chunk that is used meanwhile starts anew.
#include "shm/backing.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; older C libraries do not name it
#endif

namespace datasystem::shm {
namespace {

constexpr uint64_t kReturnLooksMax = 4096;  // chunks that one attempt to find a free one looks at
constexpr uint64_t kReturnTriesMax = 256;   // and of which it asks PageRanges
constexpr int kPressureReturnsMax = 1024;   // chunks a call
constexpr uint64_t kMib = 1024 * 1024;

enum State : uint8_t {
  kMissing = 0,
  kPopulating = 1,  // as good as missing to all but the populating thread
  kPopulated = 2,   // there, and never used
  kUsed =
      3,  // there, and used since ReturnIdle() looked last; from here on: + looks that saw it free
};

bool IsBacked(uint8_t state) { return state >= kPopulated; }

template <typename Call>
int ErrnoOf(Call call) {
  int result = 0;
  do {
    result = call();
  } while (result != 0 && errno == EINTR);
  return result == 0 ? 0 : errno;
}

}  // namespace

Backing::Backing(const Segment& segment, PageRanges& pages, BackingOptions options)
    : segment_(segment),
      pages_(pages),
      options_(std::move(options)),
      chunk_bytes_(std::max(options_.chunk_bytes_min, segment.page_bytes())),
      states_((segment.bytes().size() + chunk_bytes_ - 1) / chunk_bytes_) {
  if (options_.head_room) budget_.emplace(options_.head_room, *options_.clock);
}

Backing::Chunk Backing::ChunkAt(uint64_t index) const {
  const uint64_t offset = index * chunk_bytes_;
  return {.offset = offset,
          .size = std::min<uint64_t>(chunk_bytes_, segment_.bytes().size() - offset)};
}

bool Backing::AllowedToTake(uint64_t bytes, uint32_t reserves) {
  return !budget_ || budget_->Take(bytes, reserves);
}

int Backing::Populate(const Chunk& chunk) {
  std::byte* address = segment_.bytes().data() + chunk.offset;
  return ErrnoOf([&] { return ::madvise(address, chunk.size, MADV_POPULATE_WRITE); });
}

int Backing::Obtain(const Chunk& chunk) {
  if (!options_.fallocate) {
    const int error = Populate(chunk);
    if (error != EINVAL) return error;  // EINVAL: Linux before 5.14
  }
  return ErrnoOf([&] {
    return ::fallocate(segment_.fd(), 0, static_cast<off_t>(chunk.offset),
                       static_cast<off_t>(chunk.size));
  });
}

Result<bool> Backing::Back(uint64_t offset, uint64_t size, uint64_t step_bytes) {
  uint64_t done_bytes = 0;
  for (uint64_t i = offset / chunk_bytes_; i * chunk_bytes_ < offset + size; ++i) {
    const uint8_t state = states_[i].load(std::memory_order_relaxed);
    if (state == kUsed) continue;
    if (!IsBacked(state)) {
      if (done_bytes >= step_bytes) return false;
      const Chunk chunk = ChunkAt(i);
      while (!AllowedToTake(chunk.size, 1)) {
        if (!ReturnAny()) return Refusal(budget_->Shortage());
        done_bytes += chunk.size;
        if (done_bytes >= step_bytes) return false;
      }
      if (const int error = Obtain(chunk)) return Refusal(std::strerror(error));
      done_bytes += chunk.size;
    }
    const uint8_t before = states_[i].exchange(kUsed, std::memory_order_relaxed);
    if (!IsBacked(before)) backed_bytes_.fetch_add(ChunkAt(i).size, std::memory_order_relaxed);
  }
  return true;
}

Status Backing::Refusal(const std::string& cause) const {
  const uint64_t size_bytes = segment_.bytes().size();
  return errors::OutOfMemory(
      "no memory behind the cache: it is configured for {} MiB, {} MiB are there, and {}. Raise "
      "the memory "
      "limit or lower the size of the shared memory",
      size_bytes / kMib, backed_bytes() / kMib, cause);
}

Result<bool> Backing::PopulateNext() {
  const uint64_t chunks = states_.size();
  for (; populate_step_ < chunks; ++populate_step_) {
    // Large extents are taken from the low end, slabs from the high one.
    const uint64_t i =
        populate_step_ % 2 == 0 ? populate_step_ / 2 : chunks - 1 - populate_step_ / 2;
    uint8_t expected = kMissing;
    if (!states_[i].compare_exchange_strong(expected, kPopulating, std::memory_order_relaxed))
      continue;
    const Chunk chunk = ChunkAt(i);
    const bool allowed = AllowedToTake(chunk.size, 2);
    const int error = allowed ? Populate(chunk) : 0;
    expected = kPopulating;
    const bool there = allowed && error == 0;
    if (states_[i].compare_exchange_strong(expected, there ? kPopulated : kMissing,
                                           std::memory_order_relaxed) &&
        there) {
      backed_bytes_.fetch_add(chunk.size, std::memory_order_relaxed);
    }
    if (!there) {
      return errors::Runtime(
          "only {} of {} bytes of shared memory could be populated: {}. Lower the size of the "
          "shared memory, "
          "raise the memory limit, or do without population (it needs Linux 5.14)",
          backed_bytes(), segment_.bytes().size(),
          allowed ? std::strerror(error) : budget_->Shortage());
    }
    ++populate_step_;
    return true;
  }
  return false;
}

// While the chunk is ours, an allocation may find one free piece less than there is. Small chunks
// keep that short, and they are looked for where memory has long been free.
bool Backing::ReturnIfFree(uint64_t index) {
  const Chunk chunk = ChunkAt(index);
  if (!pages_.TakeAt(chunk.offset, chunk.size)) return false;
  bool returned = false;
  if (IsBacked(states_[index].load(std::memory_order_relaxed))) {
    const int error = ErrnoOf([&] {
      return ::fallocate(segment_.fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                         static_cast<off_t>(chunk.offset), static_cast<off_t>(chunk.size));
    });
    returned = error == 0;
  }
  if (returned) {
    states_[index].store(kMissing, std::memory_order_relaxed);
    backed_bytes_.fetch_sub(chunk.size, std::memory_order_relaxed);
    if (budget_) budget_->GiveBack(chunk.size);
  }
  pages_.GiveBack(chunk.offset, chunk.size);
  return returned;
}

bool Backing::ReturnAny() {
  if (!options_.gives_back) return false;
  const uint64_t looks = std::min<uint64_t>(states_.size(), kReturnLooksMax);
  uint64_t tries = 0;
  for (uint64_t look = 0; look < looks && tries < kReturnTriesMax; ++look) {
    const uint64_t i = return_cursor_.fetch_add(1, std::memory_order_relaxed) % states_.size();
    if (!IsBacked(states_[i].load(std::memory_order_relaxed))) continue;
    ++tries;
    if (ReturnIfFree(i)) return true;
  }
  return false;
}

void Backing::ReturnIdle(const std::atomic<bool>& stop) {
  for (uint64_t i = 0; i < states_.size() && !stop.load(std::memory_order_relaxed); ++i) {
    uint8_t state = states_[i].load(std::memory_order_relaxed);
    if (state < kUsed) continue;
    const Chunk chunk = ChunkAt(i);
    if (state >= kUsed + kIdleLooks) {
      ReturnIfFree(i);
    } else if (pages_.IsFree(chunk.offset, chunk.size)) {
      states_[i].compare_exchange_strong(state, state + 1, std::memory_order_relaxed);
    }
  }
}

void Backing::RelievePressure(const std::atomic<bool>& stop) {
  for (int n = 0; n < kPressureReturnsMax && !stop.load(std::memory_order_relaxed); ++n) {
    if (!budget_ || budget_->HasReserve() || !ReturnAny()) return;
  }
}

}  // namespace datasystem::shm
