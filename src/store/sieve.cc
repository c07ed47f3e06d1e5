#include "store/sieve.h"

namespace datasystem::store {

void SieveQueue::Add(shm::Record* record) {
  const shm::RecordId id = index_.IdOf(record);
  record->newer = 0;
  record->older = newest_;
  if (newest_ != 0) {
    At(newest_)->newer = id;
  } else {
    oldest_ = id;
  }
  newest_ = id;
}

void SieveQueue::Remove(shm::Record* record) {
  if (hand_ == index_.IdOf(record)) hand_ = record->newer;
  if (record->newer != 0) {
    At(record->newer)->older = record->older;
  } else {
    newest_ = record->older;
  }
  if (record->older != 0) {
    At(record->older)->newer = record->newer;
  } else {
    oldest_ = record->newer;
  }
  record->newer = record->older = 0;
}

}  // namespace datasystem::store
