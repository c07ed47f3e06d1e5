#include "store/sieve.h"

#include "store/object_store.h"

namespace datasystem::store {

void SieveQueue::Add(Object* object) {
  object->visited_ = 0;
  object->newer_ = nullptr;
  object->older_ = newest_;
  (newest_ != nullptr ? newest_->newer_ : oldest_) = object;
  newest_ = object;
}

void SieveQueue::Remove(Object* object) {
  if (hand_ == object) hand_ = object->newer_;
  (object->newer_ != nullptr ? object->newer_->older_ : newest_) = object->older_;
  (object->older_ != nullptr ? object->older_->newer_ : oldest_) = object->newer_;
  object->newer_ = object->older_ = nullptr;
}

Object* SieveQueue::Victim() {
  // What is left of this round, then one that clears the marks of all, then one that finds none marked.
  for (int wraps = 0; wraps < 3; ++wraps) {
    if (hand_ == nullptr) hand_ = oldest_;
    for (; hand_ != nullptr; hand_ = hand_->newer_) {
      if (hand_->references_ > 1) continue;  // 1 is the table's own
      if (hand_->visited_ == 0) return hand_;
      hand_->visited_ = 0;
    }
  }
  return nullptr;
}

}  // namespace datasystem::store
