#include "shm/record_heap.h"

#include "base/check.h"

namespace datasystem::shm {

void RecordHeap::Push(size_t size_class, uint32_t unit) {
  LinkAt(unit) = free_[size_class];
  free_[size_class] = unit;
}

uint32_t RecordHeap::Pop(size_t size_class) {
  const uint32_t unit = free_[size_class];
  if (unit != 0) free_[size_class] = LinkAt(unit);
  return unit;
}

void* RecordHeap::Allocate(size_t size) {
  CHECK(size > 0 && size <= kSizeMax);
  const size_t wanted = ClassOf(size);
  const uint64_t bytes = wanted * kRecordUnit;
  uint32_t unit = Pop(wanted);
  if (unit == 0 && region_.size() - used_ >= bytes) {
    unit = static_cast<uint32_t>(used_ / kRecordUnit);
    used_ += bytes;
  }
  // Keys of another length than before: cut a larger block.
  for (size_t larger = wanted + 1; unit == 0 && larger < kClasses; ++larger) {
    unit = Pop(larger);
    if (unit != 0) Push(larger - wanted, unit + static_cast<uint32_t>(wanted));
  }
  if (unit == 0) return nullptr;
  allocated_ += bytes;
  return region_.data() + uint64_t{unit} * kRecordUnit;
}

void RecordHeap::Free(void* block, size_t size) {
  const auto offset = static_cast<uint64_t>(static_cast<std::byte*>(block) - region_.data());
  CHECK(offset > 0 && offset < used_ && offset % kRecordUnit == 0);
  Push(ClassOf(size), static_cast<uint32_t>(offset / kRecordUnit));
  allocated_ -= ClassOf(size) * kRecordUnit;
}

}  // namespace datasystem::shm
