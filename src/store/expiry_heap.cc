#include "store/expiry_heap.h"

namespace datasystem::store {

void ExpiryHeap::Put(size_t place, const Entry& entry) {
  heap_[place] = entry;
  index_.At(entry.id)->expiry_position = static_cast<uint32_t>(place + 1);
}

void ExpiryHeap::Up(size_t place, Entry entry) {
  for (; place > 0 && entry.at < heap_[(place - 1) / 2].at; place = (place - 1) / 2) {
    Put(place, heap_[(place - 1) / 2]);
  }
  Put(place, entry);
}

void ExpiryHeap::Down(size_t place, Entry entry) {
  for (;;) {
    size_t child = 2 * place + 1;
    if (child + 1 < heap_.size() && heap_[child + 1].at < heap_[child].at) ++child;
    if (child >= heap_.size() || entry.at <= heap_[child].at) break;
    Put(place, heap_[child]);
    place = child;
  }
  Put(place, entry);
}

void ExpiryHeap::Add(shm::Record* record) {
  const int64_t at = record->expires_at_ns.load(std::memory_order_relaxed);
  if (at == shm::kNeverExpires) return;
  heap_.emplace_back();
  Up(heap_.size() - 1, {at, index_.IdOf(record)});
}

void ExpiryHeap::Remove(shm::Record* record) {
  if (record->expiry_position == 0) return;
  const size_t place = record->expiry_position - 1;
  record->expiry_position = 0;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (place == heap_.size()) return;
  if (place > 0 && last.at < heap_[(place - 1) / 2].at) {
    Up(place, last);
  } else {
    Down(place, last);
  }
}

}  // namespace datasystem::store
