#include "store/object_store.h"

#include <algorithm>
#include <new>
#include <utility>

namespace datasystem::store {
namespace {

// Expired objects that one Allocate() drops at most, before it evicts what is alive.
constexpr size_t kSweepPerAllocateMax = 4096;
// Pin slots that one retired object pays for looking at.
constexpr size_t kSlotsPerRetired = 16;
// Objects that are evicted at most for the record of a new one, whose key may be longer than theirs.
constexpr int kEvictedForRecordMax = 64;

bool MayGo(const ObjectMeta& meta) { return meta.evictable || meta.role == Role::kReplica; }

}  // namespace

ObjectRef::ObjectRef(Object* object, ObjectStore* store) : object_(object), store_(store) {
  if (object_ != nullptr) ++object_->references;
}

ObjectRef::ObjectRef(const ObjectRef& other) : ObjectRef(other.object_, other.store_) {}

ObjectRef::~ObjectRef() {
  if (object_ == nullptr) return;
  --object_->references;
  if (object_->count() == 0) store_->Retire(object_);
}

std::span<const std::byte> ObjectRef::bytes() const {
  // A place of our own: it is there.
  return store_->memory_.Resolve(object_->location()).value();
}

Object::Object(std::string_view key, const ObjectMeta& meta, const shm::Location& value) : shm::Record(key, value) {
  version = meta.version;
  expires_at_ns.store(shm::ToMonotonicNs(meta.expires_at), std::memory_order_relaxed);
  Set(kEvictable, meta.evictable);
  Set(kReplica, meta.role == Role::kReplica);
}

ObjectMeta Object::meta() const {
  const int64_t end = expires_at_ns.load(std::memory_order_relaxed);
  return {.version = version,
          .role = Is(kReplica) ? Role::kReplica : Role::kPrimary,
          .evictable = Is(kEvictable),
          .expires_at = end == shm::kNeverExpires ? TimePoint::max() : TimePoint(std::chrono::nanoseconds(end))};
}

ObjectStore::ObjectStore(shm::CacheMemory& memory, shm::Index& index, const Clock& clock, Dropped dropped)
    : memory_(memory), index_(index), clock_(clock), dropped_(std::move(dropped)), may_go_(index), expiring_(index) {}

ObjectStore::~ObjectStore() {
  Clear();
  // Their readers keep the mapping, and nobody will reuse it any more.
  for (const shm::RecordId id : std::exchange(retired_, {})) Free(static_cast<Object*>(index_.At(id)));
}

void ObjectStore::set_take_back(std::function<bool()> take_back) { take_back_ = std::move(take_back); }

bool ObjectStore::Expired(const Object& object) const { return object.meta().expires_at <= clock_.Now(); }

Object* ObjectStore::FindLinked(std::string_view key) const { return static_cast<Object*>(index_.Find(key)); }

Object* ObjectStore::FindLive(std::string_view key) {
  Object* object = FindLinked(key);
  if (object == nullptr || !Expired(*object)) return object;
  DropExpired(object);
  return nullptr;
}

void ObjectStore::Note(Object* object) {
  if (MayGo(object->meta())) {
    may_go_.Add(object);
  } else {
    staying_bytes_ += object->size();
  }
  expiring_.Add(object);
  ++stats_.objects;
  stats_.object_bytes += object->size();
}

// The reverse of Note().
void ObjectStore::Forget(Object* object) {
  if (MayGo(object->meta())) {
    may_go_.Remove(object);
  } else {
    staying_bytes_ -= object->size();
  }
  expiring_.Remove(object);
  --stats_.objects;
  stats_.object_bytes -= object->size();
}

// Hands the table's reference to the caller.
ObjectRef ObjectStore::Unlink(Object* object) {
  index_.Unlink(object);
  Forget(object);
  ObjectRef reference(object, this);
  --object->references;
  return reference;
}

void ObjectStore::DropExpired(Object* object) {
  const ObjectRef gone = Unlink(object);
  ++stats_.expirations;
  if (dropped_) dropped_(*gone);
}

void ObjectStore::Retire(Object* object) {
  if (!object->Is(Object::kWasLinked)) return Free(object);
  retired_.push_back(index_.IdOf(object));
  if (++retired_since_look_ * kSlotsPerRetired >= cost_of_look_) Reclaim();
}

void ObjectStore::Reclaim() {
  if (retired_.empty()) return;
  const shm::PinnedRecords pinned = index_.pins().Collect();
  std::erase_if(retired_, [&](shm::RecordId id) {
    if (pinned.Contains(id)) return false;
    Free(static_cast<Object*>(index_.At(id)));
    return true;
  });
  retired_since_look_ = 0;
  cost_of_look_ = index_.pins().slots_in_use() + retired_.size() * kSlotsPerRetired;
}

void ObjectStore::Free(Object* object) {
  memory_.Adopt(object->location());  // and lets go of it
  index_.Free(object);
}

// Drops victims until they amount to `bytes`, at most `limit`; false when nothing is left that may go.
bool ObjectStore::Evict(uint64_t bytes, size_t limit) {
  const size_t objects_before = stats_.objects;
  const uint64_t bytes_before = stats_.object_bytes;
  const size_t evicted = EvictSome(bytes, limit);
  Reclaim();
  return evicted == limit || (stats_.objects < objects_before && bytes_before - stats_.object_bytes >= bytes);
}

size_t ObjectStore::EvictSome(uint64_t bytes, size_t limit) {
  const shm::PinnedRecords pinned = index_.pins().Collect();
  const auto busy = [&](const shm::Record& record) {
    const auto& object = static_cast<const Object&>(record);
    return object.count() > 1 || pinned.Contains(index_.IdOf(&record));  // 1 is the table's own
  };
  size_t evicted = 0;
  for (uint64_t freed = 0; freed < bytes && evicted < limit; ++evicted) {
    auto* victim = static_cast<Object*>(may_go_.Victim(busy));
    if (victim == nullptr) break;
    const ObjectRef gone = Unlink(victim);
    freed += gone->size();
    ++stats_.evictions;
    if (dropped_) dropped_(*gone);
  }
  return evicted;
}

Status ObjectStore::TooLarge(uint64_t size, uint64_t largest) const {
  return errors::OutOfMemory(
      "no cache memory for {} bytes: the largest value that would fit has {} bytes. {} of {} bytes are "
      "held by {} objects; what is left may not be evicted or is being read. Delete objects, or raise the "
      "size of the shared memory",
      size, largest, stats_.object_bytes, memory_.usage().size_bytes, stats_.objects);
}

Result<shm::Extent> ObjectStore::Allocate(uint64_t size) {
  return MakeRoom(size, [&] { return memory_.Allocate(size); }, SIZE_MAX);
}

Result<shm::Extent> ObjectStore::Reserve(uint64_t size) {
  return MakeRoom(size, [&] { return memory_.Reserve(size); }, kEvictedPerStepMax);
}

template <typename Take>
Result<shm::Extent> ObjectStore::MakeRoom(uint64_t size, Take take, size_t evicted_max) {
  if (size == 0) return errors::Invalid("a value has at least one byte");
  auto extent = take();
  if (extent.ok() || extent.status().GetCode() != K_OUT_OF_MEMORY) return extent;

  const uint64_t expirations_before = stats_.expirations;
  SweepExpired(std::min(kSweepPerAllocateMax, evicted_max));
  const bool taken_back = take_back_ && take_back_();
  if (stats_.expirations > expirations_before || taken_back || !retired_.empty()) {
    Reclaim();
    extent = take();
    if (extent.ok()) return extent;
  }
  const uint64_t expirations = stats_.expirations - expirations_before;
  if (expirations >= evicted_max) return errors::TryAgain("{} expired objects were dropped so far", expirations);
  const uint64_t size_bytes = memory_.usage().size_bytes;
  const uint64_t room = size_bytes - std::min(size_bytes, staying_bytes_);
  if (size > room) return TooLarge(size, room);
  // First what is missing in bytes, then, as free memory may lie in pieces, a bit at a time.
  const uint64_t evictions_before = stats_.evictions;
  for (bool more = true; more;) {
    const uint64_t evicted = stats_.evictions - evictions_before;
    if (evicted >= evicted_max) return errors::TryAgain("{} objects were evicted for {} bytes so far", evicted, size);
    const shm::CacheMemoryUsage usage = memory_.usage();
    const uint64_t free_bytes = usage.size_bytes - usage.reserved_bytes;
    more = Evict(size > free_bytes ? size - free_bytes : size / 16 + 1, evicted_max - evicted);
    extent = take();
    if (extent.ok()) return extent;
  }
  const uint64_t largest = memory_.usage().largest_free_bytes;
  if (largest < size) return TooLarge(size, largest);
  // The machine has no pages for it, or what is free is too little for a slab.
  return errors::OutOfMemory("{}. {} bytes are held by {} objects that may not be evicted or are being read",
                             extent.status().GetMsg(), stats_.object_bytes, stats_.objects);
}

Result<Object*> ObjectStore::Make(std::string_view key, const ObjectMeta& meta, shm::Extent& extent) {
  CHECK(extent.valid());
  void* place = index_.Allocate(key.size());
  for (int i = 0; place == nullptr && i < kEvictedForRecordMax; ++i) {
    if (EvictSome(1, 1) == 0) i = kEvictedForRecordMax;
    Reclaim();
    place = index_.Allocate(key.size());
  }
  if (place == nullptr) {
    const shm::IndexUsage usage = index_.usage();
    return errors::OutOfMemory(
        "the index is full: {} objects take {} of {} bytes for keys and records, and none of them may go. Delete "
        "objects, store fewer and larger ones, or raise the size of the shared memory, of which the index is a share",
        stats_.objects, usage.record_bytes, usage.bytes_max);
  }
  return new (place) Object(key, meta, extent.location());
}

Result<ObjectRef> ObjectStore::Publish(std::string_view key, const ObjectMeta& meta, shm::Extent& extent) {
  ASSIGN_OR_RETURN(Object* const object, Make(key, meta, extent));
  Object* const old = FindLinked(key);  // only now: making room may have evicted it
  object->Set(Object::kWasLinked, true);
  ++object->references;  // the table's
  if (!index_.Link(object, old)) {
    index_.Free(object);
    return errors::OutOfMemory(
        "the index is full: its table has no line left for this key. Delete objects, raise the size of the shared "
        "memory, of which the index is a share, or choose another key, if hundreds have the same hash as this one");
  }
  (void)extent.Release();  // now the object's
  if (old != nullptr) {
    Forget(old);
    const ObjectRef replaced(old, this);
    --old->references;  // the table's
  }
  Note(object);
  return ObjectRef(object, this);
}

Result<ObjectRef> ObjectStore::MakeUnlinked(std::string_view key, const ObjectMeta& meta, shm::Extent& extent) {
  ASSIGN_OR_RETURN(Object* const object, Make(key, meta, extent));
  (void)extent.Release();
  return ObjectRef(object, this);
}

ObjectRef ObjectStore::Find(std::string_view key) {
  Object* object = FindLive(key);
  if (object == nullptr) return ObjectRef();
  index_.Mark(object);
  return ObjectRef(object, this);
}

bool ObjectStore::Erase(std::string_view key, uint64_t max_version) {
  Object* object = FindLive(key);
  if (object == nullptr || object->meta().version > max_version) return false;
  Unlink(object);
  return true;
}

bool ObjectStore::Promote(std::string_view key, uint64_t version) {
  Object* object = FindLive(key);
  if (object == nullptr || object->meta().version != version) return false;
  if (object->meta().role == Role::kPrimary) return true;
  Forget(object);
  object->Set(Object::kReplica, false);
  Note(object);
  return true;
}

bool ObjectStore::SetExpiry(std::string_view key, TimePoint expires_at) {
  Object* object = FindLive(key);
  if (object == nullptr) return false;
  expiring_.Remove(object);
  object->expires_at_ns.store(shm::ToMonotonicNs(expires_at), std::memory_order_relaxed);
  expiring_.Add(object);
  return true;
}

TimePoint ObjectStore::SweepExpired(size_t limit) {
  const auto first = [this] { return static_cast<Object*>(expiring_.first()); };
  for (; limit > 0 && !expiring_.empty() && Expired(*first()); --limit) DropExpired(first());
  return expiring_.empty() ? TimePoint::max() : first()->meta().expires_at;
}

void ObjectStore::ForEach(const std::function<void(const Object&)>& visit) const {
  index_.ForEach([&](const shm::Record& record) { visit(static_cast<const Object&>(record)); });
}

size_t ObjectStore::Clear() {
  std::vector<shm::Record*> all;
  all.reserve(index_.size());
  index_.ForEach([&](shm::Record& record) { all.push_back(&record); });
  for (shm::Record* record : all) Unlink(static_cast<Object*>(record));
  Reclaim();
  return all.size();
}

StoreStats ObjectStore::stats() const {
  StoreStats stats = stats_;
  stats.retired = retired_.size();
  return stats;
}

}  // namespace datasystem::store
