// Eviction policies over objects that are numbers with a size, without the objects. For comparison
// only: the store has its own SIEVE (src/store/sieve.h).
//
// Each is asked with Hit() whether it has the object, and told with Add() to take it in. Add()
// evicts.
#pragma once

#include <cstdint>
#include <vector>

namespace datasystem::bench {

constexpr uint32_t kNone = ~uint32_t{0};

// Doubly linked queues through arrays: an object is in one queue at most.
struct Links {
  explicit Links(uint32_t objects) : newer(objects, kNone), older(objects, kNone) {}
  std::vector<uint32_t> newer;
  std::vector<uint32_t> older;
};

class Queue {
 public:
  explicit Queue(Links& links) : links_(links) {}
  uint32_t oldest() const { return oldest_; }
  void Push(uint32_t object) {
    links_.newer[object] = kNone;
    links_.older[object] = newest_;
    (newest_ == kNone ? oldest_ : links_.newer[newest_]) = object;
    newest_ = object;
  }
  void Remove(uint32_t object) {
    const uint32_t newer = links_.newer[object];
    const uint32_t older = links_.older[object];
    (newer == kNone ? newest_ : links_.older[newer]) = older;
    (older == kNone ? oldest_ : links_.newer[older]) = newer;
  }

 private:
  Links& links_;
  uint32_t newest_ = kNone;
  uint32_t oldest_ = kNone;
};

// What all of them keep. `sizes` must outlive it.
class Policy {
 protected:
  Policy(const std::vector<uint32_t>& sizes, uint64_t capacity)
      : sizes_(sizes),
        capacity_(capacity),
        links_(static_cast<uint32_t>(sizes.size())),
        state_(sizes.size(), 0) {}

  const std::vector<uint32_t>& sizes_;
  const uint64_t capacity_;
  uint64_t used_ = 0;
  Links links_;
  std::vector<uint8_t> state_;  // 0: absent
};

// First in, first out; with kMoves, least recently used.
template <bool kMoves>
class QueuePolicy : Policy {
 public:
  QueuePolicy(const std::vector<uint32_t>& sizes, uint64_t capacity)
      : Policy(sizes, capacity), queue_(links_) {}
  bool Hit(uint32_t object) {
    if (state_[object] == 0) return false;
    if (kMoves) {
      queue_.Remove(object);
      queue_.Push(object);
    }
    return true;
  }
  void Add(uint32_t object) {
    while (used_ + sizes_[object] > capacity_) {
      const uint32_t victim = queue_.oldest();
      queue_.Remove(victim);
      state_[victim] = 0;
      used_ -= sizes_[victim];
    }
    queue_.Push(object);
    state_[object] = 1;
    used_ += sizes_[object];
  }

 private:
  Queue queue_;
};
using Fifo = QueuePolicy<false>;
using Lru = QueuePolicy<true>;

class Sieve : Policy {
 public:
  Sieve(const std::vector<uint32_t>& sizes, uint64_t capacity)
      : Policy(sizes, capacity), queue_(links_) {}
  bool Hit(uint32_t object) {
    if (state_[object] == 0) return false;
    state_[object] = kMarked;
    return true;
  }
  void Add(uint32_t object) {
    while (used_ + sizes_[object] > capacity_) Evict();
    Insert(object);
  }
  // For who measures the memory, not the sum of sizes.
  void Insert(uint32_t object) {
    queue_.Push(object);
    state_[object] = kThere;
    used_ += sizes_[object];
  }
  uint32_t Evict() {
    for (;;) {
      if (hand_ == kNone) hand_ = queue_.oldest();
      const uint32_t object = hand_;
      if (object == kNone) return kNone;
      hand_ = links_.newer[object];
      if (state_[object] == kMarked) {
        state_[object] = kThere;
        continue;
      }
      queue_.Remove(object);
      state_[object] = 0;
      used_ -= sizes_[object];
      return object;
    }
  }

 private:
  enum : uint8_t { kThere = 1, kMarked = 2 };
  Queue queue_;
  uint32_t hand_ = kNone;
};

// A tenth of the memory is a probation queue. Who is asked for there again moves to the main queue,
// which gives as many further rounds as there were hits (at most 3); the others leave only their
// name, in a ghost queue, and go straight to the main queue if they come back soon (Yang et al.,
// SOSP '23).
class S3Fifo : Policy {
 public:
  S3Fifo(const std::vector<uint32_t>& sizes, uint64_t capacity)
      : Policy(sizes, capacity), small_(links_), main_(links_), ghost_until_(sizes.size(), 0) {}
  bool Hit(uint32_t object) {
    uint8_t& state = state_[object];
    if (state == 0) return false;
    if ((state & kHits) < 3) ++state;
    return true;
  }
  void Add(uint32_t object) {
    while (used_ + sizes_[object] > capacity_) {
      if (small_used_ > capacity_ / 10 || main_.oldest() == kNone) {
        EvictSmall();
      } else {
        EvictMain();
      }
    }
    used_ += sizes_[object];
    // As many names as the main queue has objects.
    if (ghost_until_[object] > ghosts_) {
      ToMain(object);
    } else {
      small_.Push(object);
      state_[object] = kSmall;
      small_used_ += sizes_[object];
    }
  }

 private:
  enum : uint8_t { kHits = 3, kSmall = 4, kMain = 8 };
  void ToMain(uint32_t object) {
    main_.Push(object);
    state_[object] = kMain;
    ++main_count_;
  }
  void EvictSmall() {
    const uint32_t object = small_.oldest();
    if (object == kNone) return EvictMain();
    small_.Remove(object);
    small_used_ -= sizes_[object];
    if ((state_[object] & kHits) > 1) return ToMain(object);
    state_[object] = 0;
    used_ -= sizes_[object];
    ghost_until_[object] = ++ghosts_ + main_count_;
  }
  void EvictMain() {
    const uint32_t object = main_.oldest();
    main_.Remove(object);
    if ((state_[object] & kHits) > 0) {
      --state_[object];
      return main_.Push(object);
    }
    --main_count_;
    state_[object] = 0;
    used_ -= sizes_[object];
  }

  Queue small_;
  Queue main_;
  uint64_t small_used_ = 0;
  uint64_t main_count_ = 0;
  uint64_t ghosts_ = 0;  // ever
  std::vector<uint64_t> ghost_until_;
};

}  // namespace datasystem::bench
