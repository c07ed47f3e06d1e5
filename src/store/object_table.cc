#include "store/object_table.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "store/object_store.h"

namespace datasystem::store {
namespace {

constexpr size_t kBucketsMin = 64;

uint32_t TableHash(std::string_view key) { return static_cast<uint32_t>(HashKey(key)); }

}  // namespace

Object* ObjectTable::Next(const Object* object) { return object->next_; }

Object* ObjectTable::Find(std::string_view key) const {
  if (buckets_.empty()) return nullptr;
  const uint32_t hash = TableHash(key);
  Object* object = buckets_[hash & (buckets_.size() - 1)];
  while (object != nullptr && (object->hash_ != hash || object->key_ != key)) object = object->next_;
  return object;
}

void ObjectTable::Insert(Object* object) {
  if (size_ == buckets_.size()) Grow();
  object->hash_ = TableHash(object->key_);
  Object** bucket = Bucket(object->hash_);
  object->next_ = *bucket;
  *bucket = object;
  ++size_;
}

void ObjectTable::Remove(Object* object) {
  CHECK(size_ > 0);
  Object** link = Bucket(object->hash_);
  while (*link != object) {
    CHECK(*link != nullptr);
    link = &(*link)->next_;
  }
  *link = object->next_;
  object->next_ = nullptr;
  --size_;
}

std::vector<Object*> ObjectTable::RemoveAll() {
  std::vector<Object*> objects;
  objects.reserve(size_);
  ForEach([&](Object& object) { objects.push_back(&object); });
  for (Object* object : objects) object->next_ = nullptr;
  buckets_.clear();
  size_ = 0;
  return objects;
}

void ObjectTable::Grow() {
  std::vector<Object*> old(std::max(kBucketsMin, buckets_.size() * 2));
  old.swap(buckets_);
  for (Object* object : old) {
    while (object != nullptr) {
      Object* next = object->next_;
      Object** bucket = Bucket(object->hash_);
      object->next_ = *bucket;
      *bucket = object;
      object = next;
    }
  }
}

}  // namespace datasystem::store
