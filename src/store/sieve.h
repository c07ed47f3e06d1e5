// SIEVE (Zhang et al., "SIEVE is Simpler than LRU", NSDI '24): which object to evict next.
//
// Objects queue up by age and stay where they are; a hit only sets a mark. A hand walks from the oldest to
// the newest: marked objects lose the mark and stay, the first unmarked one goes. New objects that nobody
// asks for thus leave soon, old ones that are asked for stay. Objects that someone reads are passed over.
//
// Ownership: links objects, owns none. Threads: the store's.
#pragma once

namespace datasystem::store {

class Object;

class SieveQueue {
 public:
  void Add(Object* object);     // as the newest, unmarked
  void Remove(Object* object);  // must be in the queue
  // Null when every object is being read. Stays in the queue.
  Object* Victim();

 private:
  Object* newest_ = nullptr;
  Object* oldest_ = nullptr;
  Object* hand_ = nullptr;  // null: starts at the oldest
};

}  // namespace datasystem::store
