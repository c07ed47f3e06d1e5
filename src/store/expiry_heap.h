// The objects that have an end, the next one first. A binary heap; each record knows its place in it.
#pragma once

#include <cstdint>
#include <vector>

#include "shm/index.h"

namespace datasystem::store {

class ExpiryHeap {
 public:
  explicit ExpiryHeap(const shm::Index& index) : index_(index) {}

  // By record.expires_at_ns, which must not change while it is in here. Nothing happens with one that never ends.
  void Add(shm::Record* record);
  // Nothing happens with one that is not in here.
  void Remove(shm::Record* record);
  bool empty() const { return heap_.empty(); }
  shm::Record* first() const { return index_.At(heap_.front().id); }

 private:
  struct Entry {
    int64_t at = 0;
    shm::RecordId id = 0;
  };
  void Put(size_t place, const Entry& entry);
  void Up(size_t place, Entry entry);
  void Down(size_t place, Entry entry);

  const shm::Index& index_;
  std::vector<Entry> heap_;
};

}  // namespace datasystem::store
