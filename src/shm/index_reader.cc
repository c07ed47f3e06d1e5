#include "shm/index_reader.h"

#include "base/hash.h"

namespace datasystem::shm {
namespace {

constexpr uint32_t kSlotsPerThread = 16;  // a cache line of them
constexpr int kAttemptsMax = 16;

// Threads of a process begin at cache lines of their own.
uint32_t FirstSlot() {
  static std::atomic<uint32_t> next{0};
  thread_local const uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number * kSlotsPerThread % kPinSlots;
}

bool Fits(uint64_t offset, uint64_t bytes, uint64_t total) {
  return offset % 64 == 0 && offset <= total && bytes <= total - offset;
}

template <typename T>
std::span<T> Part(const MappedSegment& segment, uint64_t offset, uint64_t bytes) {
  return {reinterpret_cast<T*>(segment.bytes().data() + offset), bytes / sizeof(T)};
}

const IndexHeader& HeaderOf(const MappedSegment& index) {
  return *reinterpret_cast<const IndexHeader*>(index.bytes().data());
}

int64_t Now() { return ToMonotonicNs(Clock::Steady().Now()); }

}  // namespace

Result<std::unique_ptr<IndexReader>> IndexReader::Attach(Segments segments) {
  const uint64_t total = segments.index.bytes().size();
  if (total < sizeof(IndexHeader)) return errors::Invalid("an index of {} bytes has no header", total);
  const IndexHeader& header = HeaderOf(segments.index);
  if (header.magic != kIndexMagic || header.layout != kIndexLayout || header.record_unit != kRecordUnit) {
    return errors::Invalid("the worker's index has layout {}, this client reads {}: update the older one",
                           header.layout, kIndexLayout);
  }
  if (!Fits(header.lines_offset, header.lines_bytes, total) ||
      !Fits(header.overflow_offset, header.overflow_bytes, total) ||
      !Fits(header.records_offset, header.records_bytes, total) ||
      segments.marks.bytes().size() < header.records_bytes / kRecordUnit / 8 ||
      segments.control.bytes().size() < sizeof(ControlLayout)) {
    return errors::Invalid("the header of the worker's index does not fit its {} bytes", total);
  }
  const auto& control = *reinterpret_cast<const ControlLayout*>(segments.control.bytes().data());
  if (control.magic != ControlLayout::kMagic) return errors::Invalid("the control segment is none");
  return std::unique_ptr<IndexReader>(new IndexReader(std::move(segments)));
}

IndexReader::IndexReader(Segments segments)
    : segments_(std::move(segments)),
      header_(HeaderOf(segments_.index)),
      table_(Part<const TableLine>(segments_.index, header_.lines_offset, header_.lines_bytes),
             Part<const TableLine>(segments_.index, header_.overflow_offset, header_.overflow_bytes),
             &header_.line_count),
      records_(Part<const std::byte>(segments_.index, header_.records_offset, header_.records_bytes)),
      marks_(Part<std::atomic<uint64_t>>(segments_.marks, 0, segments_.marks.bytes().size())),
      control_(reinterpret_cast<ControlLayout*>(segments_.control.bytes().data())) {}

// A slot that holds `id`; null when all are taken.
std::atomic<RecordId>* IndexReader::TakeSlot(RecordId id) {
  const auto take = [&](uint32_t i) -> std::atomic<RecordId>* {
    std::atomic<RecordId>& slot = control_->pins[i];
    if (slot.load(std::memory_order_relaxed) != 0) return nullptr;
    // The worker must look as far as this before the pin counts.
    uint32_t used = control_->pins_used.load(std::memory_order_relaxed);
    while (used <= i && !control_->pins_used.compare_exchange_weak(used, i + 1, std::memory_order_seq_cst)) {
    }
    RecordId expected = 0;
    return slot.compare_exchange_strong(expected, id, std::memory_order_seq_cst) ? &slot : nullptr;
  };
  const uint32_t first = FirstSlot();
  for (uint32_t i = 0; i < kSlotsPerThread; ++i) {
    if (auto* slot = take(first + i)) return slot;
  }
  // Many values are held: wherever the last one found a place there may be another.
  const uint32_t start = next_slot_.load(std::memory_order_relaxed);
  for (uint32_t n = 0; n < kPinSlots; ++n) {
    const uint32_t i = (start + n) % kPinSlots;
    if (auto* slot = take(i)) {
      next_slot_.store(i + 1, std::memory_order_relaxed);
      return slot;
    }
  }
  return nullptr;
}

void IndexReader::Mark(RecordId id) {
  std::atomic<uint64_t>& word = marks_[id / 64];
  const uint64_t bit = uint64_t{1} << (id % 64);
  if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit, std::memory_order_relaxed);
}

std::optional<std::pair<Pin, const Record*>> IndexReader::Pinned(std::string_view key) {
  const uint64_t hash = HashKey(key);
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    Pin pin;
    const Record* record = nullptr;
    bool changed = false;
    bool full = false;
    table_.Find(hash, [&](const LineTableView::Place& place) {
      const uint64_t offset = uint64_t{place.id()} * kRecordUnit;
      if (offset + sizeof(Record) > records_.size()) return false;
      std::atomic<RecordId>* slot = TakeSlot(place.id());
      if (slot == nullptr) return full = true;
      pin = Pin(slot);
      if (!place.Holds()) return changed = true;
      segments_.index.Touch(records_.subspan(offset, sizeof(Record)));
      const auto* candidate = reinterpret_cast<const Record*>(records_.data() + offset);
      const uint64_t key_size = candidate->sizes >> 48;
      if (key_size != key.size() || key_size > records_.size() - offset - sizeof(Record) || candidate->key() != key) {
        pin = Pin();
        return false;
      }
      record = candidate;
      return true;
    });
    if (record != nullptr) {
      // Last of all: see the header.
      const int64_t now = Now();
      if (now >= header_.valid_until_ns.load(std::memory_order_seq_cst) || !WorkerIsAlive(header_) ||
          now >= record->expires_at_ns.load(std::memory_order_relaxed)) {
        return std::nullopt;
      }
      Mark(static_cast<RecordId>((reinterpret_cast<const std::byte*>(record) - records_.data()) / kRecordUnit));
      return std::pair(std::move(pin), record);
    }
    if (!changed || full) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<PinnedValue> IndexReader::Find(std::string_view key) {
  auto pinned = Pinned(key);
  if (!pinned) return std::nullopt;
  const Location location = pinned->second->location();
  for (const auto& [id, bytes] : segments_.data) {
    if (id != location.segment) continue;
    if (location.offset > bytes.size() || location.size > bytes.size() - location.offset) break;
    return PinnedValue{bytes.subspan(location.offset, location.size), std::move(pinned->first)};
  }
  return std::nullopt;
}

std::optional<uint64_t> IndexReader::SizeOf(std::string_view key) {
  const auto pinned = Pinned(key);
  if (!pinned) return std::nullopt;
  return pinned->second->value_size();
}

}  // namespace datasystem::shm
