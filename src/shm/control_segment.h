// What one session may write besides values: its pins, its leases and its messages. A memory file of its own, which only this
// client and the worker map. See docs/memory-layout.md.
//
// Nothing in it is believed: a client that writes nonsense keeps memory from being reused until its session ends,
// or tears values that it reads itself.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "shm/memory_file.h"
#include "shm/message_ring.h"
#include "shm/record.h"

namespace datasystem::shm {

constexpr uint32_t kPinSlots = 4096;
constexpr uint32_t kLeaseSlots = 32;
// Connections of a session that have a way through memory; others use their sockets only.
constexpr uint32_t kChannels = 8;
// Smaller values need no lease: from here on a copy into leased memory is cheaper than one through the socket. 64 KiB
// take 19 us and 36 us, 256 KiB 25 us and 75 us (docs/decisions/0012.md).
constexpr uint64_t kLeaseBytesMin = 16 << 10;

struct ControlLayout {
  static constexpr uint32_t kMagic = 0x4C525443;  // "CTRL"

  uint32_t magic = kMagic;
  // Pins from here on are free and need not be looked at. Raised by the client before it uses a slot; never lowered.
  std::atomic<uint32_t> pins_used{0};
  // Hazard pointers: the records that this client reads. A slot is taken by changing it from 0.
  alignas(64) std::array<std::atomic<RecordId>, kPinSlots> pins;
  // See LeaseWord.
  alignas(64) std::array<std::atomic<uint64_t>, kLeaseSlots> leases;
  std::array<ChannelLayout, kChannels> channels;
};

// A buffer that the worker gave ahead: who changes the word first has it. 0 is a free slot.
//   worker: 0 -> leased (grant);  leased -> 0 (take back);  taken -> 0 (the buffer was set or abandoned)
//   client: leased -> taken
class LeaseWord {
 public:
  static uint64_t Leased(uint64_t buffer_id) { return buffer_id << 2 | 1; }
  static uint64_t Taken(uint64_t buffer_id) { return buffer_id << 2 | 2; }
  // True: the buffer is the caller's. False: the worker has taken it back.
  static bool Take(std::atomic<uint64_t>& word, uint64_t buffer_id) {
    uint64_t expected = Leased(buffer_id);
    return word.compare_exchange_strong(expected, Taken(buffer_id), std::memory_order_acq_rel);
  }
  static bool TakeBack(std::atomic<uint64_t>& word, uint64_t buffer_id) {
    uint64_t expected = Leased(buffer_id);
    return word.compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
  }
};

// The worker's end: creates the file. Unmapped and closed on destruction.
class ControlSegment {
 public:
  // kRuntimeError when the system has no memory file or mapping for it.
  static Result<ControlSegment> Create();

  int fd() const { return file_.fd(); }
  uint64_t size_bytes() const { return file_.bytes().size(); }
  ControlLayout& layout() const { return *reinterpret_cast<ControlLayout*>(file_.bytes().data()); }

 private:
  explicit ControlSegment(MemoryFile file) : file_(std::move(file)) {}

  MemoryFile file_;
};

}  // namespace datasystem::shm
