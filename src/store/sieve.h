// SIEVE (Zhang et al., "SIEVE is Simpler than LRU", NSDI '24): which object to evict next.
//
// Objects queue up by age and stay where they are; a hit only sets a mark (shm/index.h), which clients do
// themselves. A hand walks from the oldest to the newest: marked objects lose the mark and stay, the first unmarked
// one goes. New objects that nobody asks for thus leave soon, old ones that are asked for stay. Why not another
// policy: docs/decisions/0011.md.
//
// Marks can only ask for time: clients write them, and one may set all of them again and again. So a hand that has
// taken many marks, or all of them twice, takes the next object in spite of its mark; the walk stays short, too, when
// millions are marked.
//
// Ownership: links records, owns none. Threads: the store's.
#pragma once

#include "shm/index.h"

namespace datasystem::store {

class SieveQueue {
 public:
  // Marks that one call of Victim() takes at most: about a tenth of a millisecond.
  static constexpr int kMarksTakenMax = 1024;

  explicit SieveQueue(shm::Index& index) : index_(index) {}

  void Add(shm::Record* record);     // as the newest, unmarked
  void Remove(shm::Record* record);  // must be in the queue
  // The next to go, of which `busy(record)` is false; null when there is none. Stays in the queue.
  template <typename Busy>
  shm::Record* Victim(Busy busy);

 private:
  shm::Record* At(shm::RecordId id) const { return id == 0 ? nullptr : index_.At(id); }

  shm::Index& index_;
  shm::RecordId newest_ = 0;
  shm::RecordId oldest_ = 0;
  shm::RecordId hand_ = 0;  // 0: starts at the oldest
};

template <typename Busy>
shm::Record* SieveQueue::Victim(Busy busy) {
  int marks_taken = 0;
  // What is left of this round, then one that clears the marks of all, then one that finds none marked, unless they
  // are set again meanwhile: the last does not look at them.
  for (int wraps = 0; wraps < 4; ++wraps) {
    if (hand_ == 0) hand_ = oldest_;
    while (hand_ != 0) {
      shm::Record* const record = index_.At(hand_);
      if (!busy(*record)) {
        if (!index_.TakeMark(record) || wraps == 3 || ++marks_taken > kMarksTakenMax) return record;
      }
      hand_ = record->newer;
    }
  }
  return nullptr;
}

}  // namespace datasystem::store
