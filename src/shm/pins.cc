#include "shm/pins.h"

#include <algorithm>

#include "base/check.h"

namespace datasystem::shm {
namespace {

size_t SlotsInUse(const ControlLayout& control) {
  return std::min(control.pins_used.load(std::memory_order_seq_cst), kPinSlots);
}

}  // namespace

PinnedRecords::PinnedRecords(std::vector<RecordId> ids) : ids_(std::move(ids)) {
  std::sort(ids_.begin(), ids_.end());
}

bool PinnedRecords::Contains(RecordId id) const { return std::binary_search(ids_.begin(), ids_.end(), id); }

void PinTables::Add(const ControlLayout* control) { tables_.push_back(control); }

void PinTables::Remove(const ControlLayout* control) {
  const auto place = std::find(tables_.begin(), tables_.end(), control);
  CHECK(place != tables_.end());
  tables_.erase(place);
}

PinnedRecords PinTables::Collect() const {
  // Pairs with the pin that a reader stores before it looks at the table's word again: either this sees the pin,
  // or the reader sees that the record was unlinked.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::vector<RecordId> ids;
  for (const ControlLayout* control : tables_) {
    const size_t slots = SlotsInUse(*control);
    for (size_t i = 0; i < slots; ++i) {
      const RecordId id = control->pins[i].load(std::memory_order_seq_cst);
      if (id != 0) ids.push_back(id);
    }
  }
  return PinnedRecords(std::move(ids));
}

size_t PinTables::slots_in_use() const {
  size_t slots = 0;
  for (const ControlLayout* control : tables_) slots += SlotsInUse(*control);
  return slots;
}

}  // namespace datasystem::shm
