#include "store/object_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "store/object_table.h"
#include "store/sieve.h"

namespace datasystem::store {
namespace {

// Expired objects that one Allocate() drops at most, before it evicts what is alive.
constexpr size_t kSweepPerAllocateMax = 4096;

bool MayGo(const ObjectMeta& meta) { return meta.evictable || meta.role == Role::kReplica; }

}  // namespace

ObjectRef::ObjectRef(Object* object) : object_(object) {
  if (object_ != nullptr) ++object_->references_;
}

ObjectRef::ObjectRef(const ObjectRef& other) : ObjectRef(other.object_) {}

ObjectRef::~ObjectRef() {
  if (object_ != nullptr && --object_->references_ == 0) delete object_;
}

struct ObjectStore::Impl {
  Impl(shm::CacheMemory& cache_memory, const Clock& time, Dropped on_dropped)
      : memory(cache_memory), clock(time), dropped(std::move(on_dropped)) {}

  bool Expired(const Object& object) const { return object.meta_.expires_at <= clock.Now(); }
  Object* FindLive(std::string_view key);
  void Link(Object* object);
  void Note(Object* object);
  ObjectRef Unlink(Object* object);
  void Forget(Object* object);
  void SetExpiry(Object* object, TimePoint expires_at);
  void DropExpired(Object* object);
  bool Evict(uint64_t bytes);
  Status TooLarge(uint64_t size, uint64_t largest) const;

  shm::CacheMemory& memory;
  const Clock& clock;
  const Dropped dropped;
  ObjectTable table;
  SieveQueue may_go;                                  // the objects that eviction may take
  std::set<std::pair<TimePoint, Object*>> expiring;   // the objects that have an end
  uint64_t staying_bytes = 0;                         // of the objects not in `may_go`
  StoreStats stats;
};

// Takes the table's reference, which Unlink() hands to its caller.
void ObjectStore::Impl::Link(Object* object) {
  ++object->references_;
  table.Insert(object);
  Note(object);
}

void ObjectStore::Impl::Note(Object* object) {
  if (MayGo(object->meta_)) {
    may_go.Add(object);
  } else {
    staying_bytes += object->size();
  }
  if (object->meta_.expires_at != TimePoint::max()) {
    expiring.emplace(object->meta_.expires_at, object);
  }
  ++stats.objects;
  stats.object_bytes += object->size();
}

ObjectRef ObjectStore::Impl::Unlink(Object* object) {
  table.Remove(object);
  Forget(object);
  ObjectRef reference(object);
  --object->references_;
  return reference;
}

// The reverse of Note().
void ObjectStore::Impl::Forget(Object* object) {
  if (MayGo(object->meta_)) {
    may_go.Remove(object);
  } else {
    staying_bytes -= object->size();
  }
  expiring.erase({object->meta_.expires_at, object});
  --stats.objects;
  stats.object_bytes -= object->size();
}

void ObjectStore::Impl::SetExpiry(Object* object, TimePoint expires_at) {
  expiring.erase({object->meta_.expires_at, object});
  object->meta_.expires_at = expires_at;
  if (expires_at != TimePoint::max()) expiring.emplace(expires_at, object);
}

void ObjectStore::Impl::DropExpired(Object* object) {
  const ObjectRef gone = Unlink(object);
  ++stats.expirations;
  if (dropped) dropped(*gone);
}

Object* ObjectStore::Impl::FindLive(std::string_view key) {
  Object* object = table.Find(key);
  if (object == nullptr || !Expired(*object)) return object;
  DropExpired(object);
  return nullptr;
}

// Drops victims until they amount to `bytes`; false when nothing is left that may go.
bool ObjectStore::Impl::Evict(uint64_t bytes) {
  for (uint64_t freed = 0; freed < bytes;) {
    Object* victim = may_go.Victim();
    if (victim == nullptr) return false;
    const ObjectRef gone = Unlink(victim);
    freed += gone->size();
    ++stats.evictions;
    if (dropped) dropped(*gone);
  }
  return true;
}

Status ObjectStore::Impl::TooLarge(uint64_t size, uint64_t largest) const {
  return errors::OutOfMemory(
      "no cache memory for {} bytes: the largest value that would fit has {} bytes. {} of {} bytes are "
      "held by {} objects; what is left may not be evicted or is being read. Delete objects, or raise the "
      "size of the shared memory",
      size, largest, stats.object_bytes, memory.usage().size_bytes, stats.objects);
}

ObjectStore::ObjectStore(shm::CacheMemory& memory, const Clock& clock, Dropped dropped)
    : impl_(std::make_unique<Impl>(memory, clock, std::move(dropped))) {}

ObjectStore::~ObjectStore() { Clear(); }

Result<shm::Extent> ObjectStore::Allocate(uint64_t size) {
  if (size == 0) return errors::Invalid("a value has at least one byte");
  auto extent = impl_->memory.Allocate(size);
  if (extent.ok() || extent.status().GetCode() != K_OUT_OF_MEMORY) return extent;

  const uint64_t expirations_before = impl_->stats.expirations;
  SweepExpired(kSweepPerAllocateMax);
  if (impl_->stats.expirations > expirations_before) {
    extent = impl_->memory.Allocate(size);
    if (extent.ok()) return extent;
  }
  const uint64_t size_bytes = impl_->memory.usage().size_bytes;
  const uint64_t room = size_bytes - std::min(size_bytes, impl_->staying_bytes);
  if (size > room) return impl_->TooLarge(size, room);
  // First what is missing in bytes, then, as free memory may lie in pieces, a bit at a time.
  for (bool more = true; more;) {
    const shm::CacheMemoryUsage usage = impl_->memory.usage();
    const uint64_t free_bytes = usage.size_bytes - usage.reserved_bytes;
    more = impl_->Evict(size > free_bytes ? size - free_bytes : size / 16 + 1);
    extent = impl_->memory.Allocate(size);
    if (extent.ok()) return extent;
  }
  return impl_->TooLarge(size, impl_->memory.usage().largest_free_bytes);
}

ObjectRef ObjectStore::Publish(std::string_view key, const ObjectMeta& meta, shm::Extent extent) {
  CHECK(extent.valid());
  if (Object* old = impl_->table.Find(key)) impl_->Unlink(old);
  ObjectRef object(new Object(std::string(key), meta, std::move(extent)));
  impl_->Link(const_cast<Object*>(&*object));
  return object;
}

ObjectRef ObjectStore::Find(std::string_view key) {
  Object* object = impl_->FindLive(key);
  if (object != nullptr) object->visited_ = 1;
  return ObjectRef(object);
}

bool ObjectStore::Erase(std::string_view key, uint64_t max_version) {
  Object* object = impl_->FindLive(key);
  if (object == nullptr || object->meta_.version > max_version) return false;
  impl_->Unlink(object);
  return true;
}

bool ObjectStore::Promote(std::string_view key, uint64_t version) {
  Object* object = impl_->FindLive(key);
  if (object == nullptr || object->meta_.version != version) return false;
  if (object->meta_.role == Role::kPrimary) return true;
  impl_->Forget(object);
  object->meta_.role = Role::kPrimary;
  impl_->Note(object);
  return true;
}

bool ObjectStore::SetExpiry(std::string_view key, TimePoint expires_at) {
  Object* object = impl_->FindLive(key);
  if (object == nullptr) return false;
  impl_->SetExpiry(object, expires_at);
  return true;
}

TimePoint ObjectStore::SweepExpired(size_t limit) {
  auto& expiring = impl_->expiring;
  for (; limit > 0 && !expiring.empty() && impl_->Expired(*expiring.begin()->second); --limit) {
    impl_->DropExpired(expiring.begin()->second);
  }
  return expiring.empty() ? TimePoint::max() : expiring.begin()->first;
}

void ObjectStore::ForEach(const std::function<void(const Object&)>& visit) const {
  impl_->table.ForEach(visit);
}

size_t ObjectStore::Clear() {
  const std::vector<Object*> objects = impl_->table.RemoveAll();
  for (Object* object : objects) {
    impl_->Forget(object);
    const ObjectRef last(object);
    --object->references_;  // the table's
  }
  return objects.size();
}

StoreStats ObjectStore::stats() const { return impl_->stats; }

}  // namespace datasystem::store
