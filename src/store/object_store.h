// The objects that this node holds: key to extent, pins, expiry, eviction. Knows no network.
//
// Eviction: SIEVE, over the objects that may go and that nobody reads at the moment: dropping one that is
// read would free nothing.
// Ownership: objects are reference counted. The table holds one reference; every reader (a client's pin,
// a transfer) holds an ObjectRef. Unlinking makes an object invisible at once, its memory goes back to
// the arena with the last reference: who reads it keeps it intact.
// Threads: the event loop's thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "shm/cache_memory.h"

namespace datasystem::store {

enum class Role : uint8_t {
  kPrimary,  // must not be dropped without the directory's leave, unless `evictable`
  kReplica,  // a hot copy of another node's object; may go at any time
};

struct ObjectMeta {
  uint64_t version = 0;  // given by the directory; grows with each change of the key
  Role role = Role::kPrimary;
  bool evictable = false;                     // may be dropped under pressure (NONE_L2_CACHE_EVICT, replicas)
  TimePoint expires_at = TimePoint::max();    // max() = never
};

class Object;

// Intrusive reference; copy = pin. Threads: the loop's.
class ObjectRef {
 public:
  ObjectRef() = default;
  explicit ObjectRef(Object* object);
  ObjectRef(const ObjectRef& other);
  ObjectRef(ObjectRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ObjectRef& operator=(ObjectRef other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~ObjectRef();

  explicit operator bool() const { return object_ != nullptr; }
  const Object* operator->() const { return object_; }
  const Object& operator*() const { return *object_; }

 private:
  Object* object_ = nullptr;
};

class Object {
 public:
  Object(std::string key, ObjectMeta meta, shm::Extent extent)
      : key_(std::move(key)), meta_(meta), extent_(std::move(extent)) {}

  const std::string& key() const { return key_; }
  const ObjectMeta& meta() const { return meta_; }
  uint64_t size() const { return extent_.size(); }
  const shm::Location& location() const { return extent_.location(); }
  std::span<const std::byte> bytes() const { return extent_.bytes(); }

 private:
  friend class ObjectRef;
  friend class ObjectStore;
  friend class ObjectTable;
  friend class SieveQueue;

  // What a lookup needs shares the first cache line.
  std::string key_;
  Object* next_ = nullptr;     // in its bucket of ObjectTable
  uint32_t hash_ = 0;          // ObjectTable's
  uint32_t references_ : 31 = 0;
  uint32_t visited_ : 1 = 0;   // SIEVE's mark
  ObjectMeta meta_;
  shm::Extent extent_;
  Object* newer_ = nullptr;    // SIEVE's queue
  Object* older_ = nullptr;
};
static_assert(sizeof(Object) <= 128, "counts once per object on the node");

struct StoreStats {
  uint64_t objects = 0;
  uint64_t object_bytes = 0;
  uint64_t evictions = 0;
  uint64_t expirations = 0;
};

class ObjectStore {
 public:
  // `dropped` tells of objects that the store removed by itself (evicted, expired): the directory must
  // learn it. It is called after the object has been unlinked and must not call back into the store.
  using Dropped = std::function<void(const Object&)>;

  ObjectStore(shm::CacheMemory& memory, const Clock& clock, Dropped dropped);
  ~ObjectStore();

  // Memory for a new value; drops what is expired, then evicts what may go, until it fits. kOutOfMemory
  // names the bytes needed and the largest that would fit; nothing is evicted in vain for a size that the
  // objects that must stay leave no room for. kInvalid for size 0.
  Result<shm::Extent> Allocate(uint64_t size);

  // Makes the object visible, replacing one of the same key (whose readers keep it).
  ObjectRef Publish(std::string_view key, const ObjectMeta& meta, shm::Extent extent);

  // Null if absent or expired. Marks the object as visited. An object is expired from `expires_at` on and
  // is then as absent for every call that takes a key.
  ObjectRef Find(std::string_view key);
  // Unlinks the key if its version is at most `max_version`. True if something was removed.
  bool Erase(std::string_view key, uint64_t max_version);
  // Makes a replica of this version the primary copy, which must stay unless it is evictable. False if there
  // is none.
  bool Promote(std::string_view key, uint64_t version);
  // New expiry of an object; false if absent.
  bool SetExpiry(std::string_view key, TimePoint expires_at);

  // Drops expired objects, at most `limit` of them; returns when to call again (max() = nothing expires).
  TimePoint SweepExpired(size_t limit);

  // Every linked object, those that expired since the last sweep included.
  void ForEach(const std::function<void(const Object&)>& visit) const;
  // Unlinks everything. Returns how many objects that were.
  size_t Clear();
  StoreStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace datasystem::store
