// Key to object: a hash table chained through the objects themselves, so that it costs one pointer a bucket
// and one an object.
//
// Ownership: links objects, owns none. Threads: the store's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace datasystem::store {

class Object;

class ObjectTable {
 public:
  Object* Find(std::string_view key) const;  // null if absent
  void Insert(Object* object);               // its key must be absent
  void Remove(Object* object);               // must be in the table
  // Empties the table.
  std::vector<Object*> RemoveAll();
  size_t size() const { return size_; }

  // `visit` must not change the table.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (Object* object : buckets_) {
      for (; object != nullptr; object = Next(object)) visit(*object);
    }
  }

 private:
  static Object* Next(const Object* object);
  Object** Bucket(uint32_t hash) { return &buckets_[hash & (buckets_.size() - 1)]; }
  void Grow();

  std::vector<Object*> buckets_;  // a power of two of them, or none yet
  size_t size_ = 0;
};

}  // namespace datasystem::store
