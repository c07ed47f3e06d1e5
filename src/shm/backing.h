// Which pages of a segment are there. Memory is handed out only after its pages were obtained from
// the kernel in a way that can fail: touching a page that cannot be had is SIGBUS or the end of a
// process.
//
// Counted in chunks of 256 KiB, or of one huge page. A chunk that is wholly free can give its pages
// back: to the system when unused for long, to another chunk when the container leaves no more.
// Threads: Back() any; PopulateNext(), ReturnIdle() and RelievePressure() one at a time, in the
// background.
//          Nobody waits for another thread longer than PageRanges' short lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "shm/extent.h"
#include "shm/head_room.h"
#include "shm/page_ranges.h"
#include "shm/segment.h"

namespace datasystem::shm {

struct BackingOptions {
  // Obtain pages by fallocate(): quicker by 3.5, but their first user waits for their zeroing. Else
  // by MADV_POPULATE_WRITE, as the background population always does.
  bool fallocate = true;
  bool gives_back =
      true;  // false: what is there stays, as with huge pages or what a device has pinned
  // The kernel holds the address space's lock while it populates a chunk, and an idle thread may
  // lose its CPU meanwhile: small chunks keep the wait of whoever maps memory short. See
  // docs/decisions/0010.md.
  uint64_t chunk_bytes_min = kChunkBytes;
  std::function<HeadRoom()> head_room;  // empty: no limit is looked at, as with huge pages
  const Clock* clock = &Clock::Steady();
};

class Backing {
 public:
  static constexpr uint32_t kIdleLooks = 8;  // of ReturnIdle(), until an idle chunk goes back

  // All must outlive it.
  Backing(const Segment& segment, PageRanges& pages, BackingOptions options);

  // Obtains what is missing of a range that the caller took from `pages`, at most about
  // `step_bytes` of it: false says that more is missing. kOutOfMemory with cause and remedy when
  // there is no more to be had.
  Result<bool> Back(uint64_t offset, uint64_t size, uint64_t step_bytes);

  // Populates the next missing chunk, from both ends to the middle; false when all have had their
  // turn. kRuntimeError when there is no more to be had: two reserves stay free.
  Result<bool> PopulateNext();
  // One look at every chunk. What was used and is seen free at kIdleLooks + 1 looks in a row, and
  // was not used between them, goes back to the system. What was only populated stays: it is there
  // for first writes.
  void ReturnIdle(const std::atomic<bool>& stop);
  // While the container or the machine has less left than the reserve, free chunks go back, used or
  // not.
  void RelievePressure(const std::atomic<bool>& stop);

  bool gives_back() const { return options_.gives_back; }
  uint64_t backed_bytes() const { return backed_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Chunk {
    uint64_t offset;
    uint64_t size;
  };
  Chunk ChunkAt(uint64_t index) const;
  bool AllowedToTake(uint64_t bytes, uint32_t reserves);
  int Obtain(const Chunk& chunk);    // 0 or errno
  int Populate(const Chunk& chunk);  // 0 or errno
  bool ReturnIfFree(uint64_t index);
  bool ReturnAny();
  Status Refusal(const std::string& cause) const;

  const Segment& segment_;
  PageRanges& pages_;
  const BackingOptions options_;
  const uint64_t chunk_bytes_;
  std::vector<std::atomic<uint8_t>> states_;  // see backing.cc
  std::atomic<uint64_t> backed_bytes_{0};
  std::atomic<uint64_t> return_cursor_{0};
  std::optional<HeadRoomBudget> budget_;
  uint64_t populate_step_ = 0;
};

}  // namespace datasystem::shm
