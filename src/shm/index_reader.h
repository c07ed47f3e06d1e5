// How a client reads what is on its node: a lookup in shared memory, without a system call or a message.
//
// A lookup finds a word of the table that names a record, pins the record, and looks at the word again: if it still
// names the record, the record was linked after the pin could be seen, so the worker finds the pin before it reuses
// the memory (hazard pointers: M. Michael, "Hazard Pointers: Safe Memory Reclamation for Lock-Free Objects", 2004).
// Then the key is compared, and last of all the deadlines are checked: what was found was true at a time when the
// worker was a member, and no other worker can have changed it before that.
//
// A hit is right; a miss proves nothing: the object may be elsewhere, just be moving in the table, or the index may
// not be readable now. Then the worker has to be asked.
//
// Ownership: maps the segments; pins must be gone before it is destroyed.
// Threads:   any.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "shm/control_segment.h"
#include "shm/index_layout.h"
#include "shm/mapped_segment.h"

namespace datasystem::shm {

// What keeps a record and its value from being reused; given up on destruction. Move-only.
class Pin {
 public:
  Pin() = default;
  explicit Pin(std::atomic<RecordId>* slot) : slot_(slot) {}
  Pin(Pin&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  Pin& operator=(Pin&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~Pin() {
    if (slot_ != nullptr) slot_->store(0, std::memory_order_release);
  }
  bool valid() const { return slot_ != nullptr; }

 private:
  std::atomic<RecordId>* slot_ = nullptr;
};

struct PinnedValue {
  std::span<const std::byte> bytes;  // does not change while `pin` lives
  Pin pin;
};

class IndexReader {
 public:
  struct Segments {
    MappedSegment index;    // mapped for reading
    MappedSegment marks;
    MappedSegment control;
    // Segment id and memory of the values. Must outlive the reader.
    std::vector<std::pair<uint32_t, std::span<const std::byte>>> data;
  };
  // kInvalid when the index has another layout, or its header does not fit the segment.
  static Result<std::unique_ptr<IndexReader>> Attach(Segments segments);

  // A value that is here. Nothing: ask the worker.
  std::optional<PinnedValue> Find(std::string_view key);
  // The size of a value that is here. Nothing: ask the worker.
  std::optional<uint64_t> SizeOf(std::string_view key);

  std::atomic<uint64_t>& lease(uint32_t slot) { return control_->leases[slot]; }
  ChannelLayout& channel(uint32_t slot) { return control_->channels[slot]; }

 private:
  explicit IndexReader(Segments segments);
  std::optional<std::pair<Pin, const Record*>> Pinned(std::string_view key);
  std::atomic<RecordId>* TakeSlot(RecordId id);
  void Mark(RecordId id);

  const Segments segments_;
  const IndexHeader& header_;
  const LineTableView table_;
  const std::span<const std::byte> records_;
  const std::span<std::atomic<uint64_t>> marks_;
  ControlLayout* const control_;
  std::atomic<uint32_t> next_slot_{0};  // where to look when a thread's own slots are taken
};

}  // namespace datasystem::shm
