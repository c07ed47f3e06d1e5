// The objects that this node holds: key to object, pins, expiry, eviction. Knows no network.
//
// An object is a record of the index (shm/index.h), so what is linked here is what clients find without asking.
// Eviction: SIEVE, over the objects that may go and that nobody reads at the moment: dropping one that is
// read would free nothing.
// Ownership: objects are reference counted. The table holds one reference; every reader inside the worker (a
// transfer, a pin for a client) holds an ObjectRef. Unlinking makes an object invisible at once. Without
// references it is retired, and its memory goes back to the arena when no client's pin names it any more: who
// reads it keeps it intact.
// Threads: the event loop's thread only.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "shm/cache_memory.h"
#include "shm/index.h"
#include "store/expiry_heap.h"
#include "store/sieve.h"

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
class ObjectStore;

// Counted reference; copy = pin. Threads: the loop's. The store must outlive it.
class ObjectRef {
 public:
  ObjectRef() = default;
  ObjectRef(const ObjectRef& other);
  ObjectRef(ObjectRef&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), store_(other.store_) {}
  ObjectRef& operator=(ObjectRef other) noexcept {
    std::swap(object_, other.object_);
    std::swap(store_, other.store_);
    return *this;
  }
  ~ObjectRef();

  explicit operator bool() const { return object_ != nullptr; }
  const Object* operator->() const { return object_; }
  const Object& operator*() const { return *object_; }
  std::span<const std::byte> bytes() const;

 private:
  friend class ObjectStore;
  ObjectRef(Object* object, ObjectStore* store);

  Object* object_ = nullptr;
  ObjectStore* store_ = nullptr;
};

// A record with what the store knows of it. Lies in the index segment.
class Object : private shm::Record {
 public:
  std::string_view key() const { return Record::key(); }
  ObjectMeta meta() const;
  uint64_t size() const { return value_size(); }
  shm::Location location() const { return Record::location(); }
  // It was once in the index, and so perhaps still is.
  bool was_linked() const { return Is(kWasLinked); }

 private:
  friend class ObjectRef;
  friend class ObjectStore;
  Object(std::string_view key, const ObjectMeta& meta, const shm::Location& value);

  // The word `references` holds what is said of the object beside the count.
  static constexpr uint32_t kEvictable = 1u << 31;
  static constexpr uint32_t kReplica = 1u << 30;
  static constexpr uint32_t kWasLinked = 1u << 29;  // a client may have seen it
  static constexpr uint32_t kCount = kWasLinked - 1;
  bool Is(uint32_t flag) const { return (references & flag) != 0; }
  void Set(uint32_t flag, bool value) { references = value ? references | flag : references & ~flag; }
  uint32_t count() const { return references & kCount; }
};
static_assert(sizeof(Object) == sizeof(shm::Record));

struct StoreStats {
  uint64_t objects = 0;
  uint64_t object_bytes = 0;
  uint64_t evictions = 0;
  uint64_t expirations = 0;
  uint64_t retired = 0;  // unlinked, and still read by a client or not looked at yet
};

class ObjectStore {
 public:
  // Objects that one Reserve() evicts at most: about two milliseconds.
  static constexpr size_t kEvictedPerStepMax = 1024;

  // `dropped` tells of objects that the store removed by itself (evicted, expired): the directory must
  // learn it. It is called after the object has been unlinked and must not call back into the store.
  using Dropped = std::function<void(const Object&)>;

  ObjectStore(shm::CacheMemory& memory, shm::Index& index, const Clock& clock, Dropped dropped);
  ~ObjectStore();

  // Called when memory is short, before anything is evicted: gives back what is held for later use (buffers
  // that clients leased and do not use). True if there was something.
  void set_take_back(std::function<bool()> take_back);

  // Memory for a new value; drops what is expired, then evicts what may go, until it fits. kOutOfMemory
  // names the bytes needed and the largest that would fit; nothing is evicted in vain for a size that the
  // objects that must stay leave no room for. kInvalid for size 0.
  Result<shm::Extent> Allocate(uint64_t size);
  // The same for callers that may not stall for long: evicts no more than kEvictedPerStepMax objects, and does not
  // wait for pages that were never used (see CacheMemory::Reserve()). kTryAgain: it has evicted some; call again.
  Result<shm::Extent> Reserve(uint64_t size);
  // One step of obtaining the pages of what Reserve() gave: see CacheMemory::Back().
  Result<bool> Back(const shm::Extent& extent) { return memory_.Back(extent); }

  // Makes the object visible, replacing one of the same key (whose readers keep it). Takes the extent; after
  // kOutOfMemory, which says that the index is full, it is the caller's and nothing has changed.
  Result<ObjectRef> Publish(std::string_view key, const ObjectMeta& meta, shm::Extent& extent);
  // An object that nobody can find: a copy that may not be kept. Errors as Publish.
  Result<ObjectRef> MakeUnlinked(std::string_view key, const ObjectMeta& meta, shm::Extent& extent);

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

  // Evicts until `bytes` are freed, or nothing is left that may go, at most `limit` objects. Returns how many.
  size_t EvictSome(uint64_t bytes, size_t limit);
  // Frees the memory of retired objects that nobody reads any more.
  void Reclaim();

  // Every linked object, those that expired since the last sweep included.
  void ForEach(const std::function<void(const Object&)>& visit) const;
  // Unlinks everything. Returns how many objects that were.
  size_t Clear();
  StoreStats stats() const;

 private:
  friend class ObjectRef;

  template <typename Take>
  Result<shm::Extent> MakeRoom(uint64_t size, Take take, size_t evicted_max);
  bool Expired(const Object& object) const;
  Object* FindLinked(std::string_view key) const;
  Object* FindLive(std::string_view key);
  Result<Object*> Make(std::string_view key, const ObjectMeta& meta, shm::Extent& extent);
  void Note(Object* object);
  void Forget(Object* object);
  ObjectRef Unlink(Object* object);
  void DropExpired(Object* object);
  void Retire(Object* object);
  void Free(Object* object);
  bool Evict(uint64_t bytes, size_t limit);
  Status TooLarge(uint64_t size, uint64_t largest) const;

  shm::CacheMemory& memory_;
  shm::Index& index_;
  const Clock& clock_;
  const Dropped dropped_;
  std::function<bool()> take_back_;
  SieveQueue may_go_;           // the objects that eviction may take
  ExpiryHeap expiring_;
  uint64_t staying_bytes_ = 0;  // of the objects not in `may_go_`
  std::vector<shm::RecordId> retired_;
  // Looking through the pins costs a little for each slot: it is put off until enough is to be gained.
  size_t retired_since_look_ = 0;
  size_t cost_of_look_ = 0;
  StoreStats stats_;
};

}  // namespace datasystem::store
