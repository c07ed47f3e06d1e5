// The index segment: what the worker publishes of its objects. Clients can map it for reading only.
//
//   header | lines of the table | overflow lines | records and keys
//
// The file is sparse: its size is what the index may ever need, its pages appear as they are used.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "base/line_table.h"
#include "shm/record.h"

namespace datasystem::shm {

constexpr uint64_t kIndexMagic = 0x3158444953445959;  // "YYDSIDX1"
constexpr uint32_t kIndexLayout = 1;

struct IndexHeader {
  uint64_t magic = 0;
  uint32_t layout = 0;
  uint32_t record_unit = 0;
  uint64_t incarnation = 0;
  // Byte offsets and sizes inside the segment; all multiples of 64.
  uint64_t lines_offset = 0, lines_bytes = 0;
  uint64_t overflow_offset = 0, overflow_bytes = 0;
  uint64_t records_offset = 0, records_bytes = 0;

  // Until when the index may be read, CLOCK_MONOTONIC nanoseconds. The worker extends it with its lease, so a worker
  // that is stopped or cut off is not read when others may have taken over.
  alignas(64) std::atomic<int64_t> valid_until_ns{0};
  std::atomic<uint32_t> line_count{0};
  // Held by the worker for as long as it lives. When it dies, the kernel marks the word before it closes the
  // process' sockets: no successor can listen at its address before readers know. See WorkerIsAlive.
  alignas(64) pthread_mutex_t life;
};

// The first word of a robust mutex is its futex: the owner's thread id, and FUTEX_OWNER_DIED once the kernel has found
// that owner gone (man 2 get_robust_list). Readers cannot lock, they map the header for reading only.
inline bool WorkerIsAlive(const IndexHeader& header) {
  constexpr uint32_t kOwnerDied = 0x40000000;
  const auto* word = reinterpret_cast<const std::atomic<uint32_t>*>(&header.life);
  const uint32_t futex = word->load(std::memory_order_acquire);
  return futex != 0 && (futex & kOwnerDied) == 0;
}

}  // namespace datasystem::shm
