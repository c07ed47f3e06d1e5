// How a set and a get travel is told in ARCHITECTURE.md. What must hold here:
//  - A version that was granted in an epoch counts only in that epoch: if the ring changed before the
//    answer came, the new shard does not know of it, and it must be asked for again.
//  - A fetched copy may be kept only if the shard has listed this worker for just this version, in the
//    epoch that still is, and if no invalidation came in between.
#include "worker/object_service.h"

#include <map>

namespace datasystem::worker {
namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(1);
constexpr auto kLongestPause = std::chrono::milliseconds(50);
// A worker that stops leaves the cluster before it closes its connections, so the view without it is at most
// moments away. One that crashed stays a member until its lease ends: the caller is told instead.
constexpr auto kNewsOfLeaving = std::chrono::milliseconds(100);

uint16_t Type(proto::PeerMessage message) { return static_cast<uint16_t>(message); }

// Allocates when the size is known, so that a value lands where it will stay.
class FetchTarget final : public transport::PayloadTarget {
 public:
  explicit FetchTarget(store::ObjectStore& store) : store_(store) {}

  Result<std::span<std::byte>> Prepare(std::string_view, uint64_t size) override {
    auto extent = store_.Allocate(size);
    if (!extent.ok()) return extent.status();
    extent_ = std::move(extent).value();
    return extent_.bytes();
  }

  shm::Extent Take() { return std::move(extent_); }

 private:
  store::ObjectStore& store_;
  shm::Extent extent_;
};

}  // namespace

asio::awaitable<Status> ObjectService::BeforeRetry(Status reason, uint64_t epoch, int attempt,
                                                   TimePoint deadline) {
  const bool unreachable =
      reason.GetCode() == K_RPC_PEER_DEAD || reason.GetCode() == K_RPC_UNAVAILABLE;
  if (reason.GetCode() != K_TRY_AGAIN && !unreachable) co_return reason;
  if (node_.clock.Now() >= deadline) {
    if (unreachable) co_return reason;
    co_return errors::DeadlineExceeded("gave up after {} attempts: {}", attempt + 1, reason.GetMsg());
  }
  Duration pause = kFirstPause * (1 << std::min(attempt, 6));
  pause = unreachable ? Duration(kNewsOfLeaving) : std::min<Duration>(pause, kLongestPause);
  const TimePoint until = std::min(deadline, node_.clock.Now() + pause);
  if (!unreachable || node_.view.epoch() == epoch) co_await node_.view.WaitForChange(until);
  if (unreachable && node_.view.epoch() == epoch) co_return reason;
  co_return Status::OK();
}

asio::awaitable<Status> ObjectService::Set(std::string key, shm::Extent& extent, SetOptions options,
                                           TimePoint deadline) {
  ++counters_.sets;
  const PendingKeys::Operation operation(node_.pending, key, PendingKeys::Kind::kUpdate);
  uint64_t discarded = 0;
  for (int attempt = 0;; ++attempt) {
    const uint64_t epoch = node_.view.epoch();
    Status serving = node_.view.Serving();
    if (serving.IsError()) co_return serving;
    auto version = co_await RequestVersion(key, extent.size(), options, discarded, deadline);
    if (version.ok() && node_.view.epoch() != epoch) {
      // The new shard does not know of this grant.
      discarded = *version;
      version = errors::TryAgain("the ring changed during the set");
    }
    if (version.ok()) {
      // Already overwritten by a set that the shard ordered after this one: nothing to publish.
      if (*version <= operation.invalidated_up_to()) co_return Status::OK();
      const store::ObjectRef current = node_.store.Find(key);
      if (current && current->meta().version > *version) co_return Status::OK();
      store::ObjectMeta meta;
      meta.version = *version;
      meta.role = store::Role::kPrimary;
      meta.evictable = options.evictable;
      meta.expires_at = ExpiryOf(node_.clock, options.ttl_ms);
      node_.store.Publish(key, meta, std::move(extent));
      co_return Status::OK();
    }
    Status failure = version.status();
    failure = co_await BeforeRetry(failure, epoch, attempt, deadline);
    if (failure.IsError()) {
      if (failure.GetCode() != K_OC_KEY_ALREADY_EXIST) ++counters_.failures;
      co_return failure;
    }
  }
}

asio::awaitable<Result<uint64_t>> ObjectService::RequestVersion(std::string key, uint64_t size,
                                                                SetOptions options, uint64_t discarded,
                                                                TimePoint deadline) {
  const transport::PeerId shard = node_.view.ShardOf(key);
  uint64_t version = 0;
  if (node_.view.IsSelf(shard)) {
    directory::UpdateRequest request;
    request.key = std::move(key);
    request.holder = shard.incarnation;
    request.size = size;
    request.only_if_absent = options.only_if_absent;
    request.discarded = discarded;
    request.expires_at = ExpiryOf(node_.clock, options.ttl_ms);
    request.deadline = deadline;
    auto granted = co_await node_.directory.Update(std::move(request));
    if (!granted.ok()) co_return granted;
    version = *granted;
  } else {
    proto::PeerUpdate message;
    message.epoch = node_.view.epoch();
    message.key = std::move(key);
    message.size = size;
    message.only_if_absent = options.only_if_absent;
    message.discarded = discarded;
    message.ttl_ms = options.ttl_ms;
    message.timeout_ms = RemainingMs(node_.clock, deadline);
    std::string body = message.Encode();
    auto answer = co_await node_.transport.Call(shard, Type(proto::PeerMessage::kUpdate), std::move(body),
                                                deadline);
    if (!answer.ok()) co_return answer.status();
    auto update = proto::PeerUpdateAnswer::Decode(answer->body);
    if (!update.ok()) co_return update.status();
    version = update->version;
  }
  co_return version;
}

Result<store::ObjectRef> ObjectService::GetHere(std::string_view key) {
  RETURN_IF_ERROR(node_.view.Serving());
  store::ObjectRef object = node_.store.Find(key);
  if (object) ++counters_.local_hits;
  return object;
}

asio::awaitable<Result<store::ObjectRef>> ObjectService::Get(std::string key, TimePoint wait_until,
                                                             TimePoint deadline) {
  for (int attempt = 0;; ++attempt) {
    const uint64_t epoch = node_.view.epoch();
    auto here = GetHere(key);
    if (!here.ok() || *here) co_return here;
    auto fetched = co_await Fetch(key, wait_until, deadline);
    if (fetched.ok()) {
      ++counters_.remote_hits;
      co_return fetched;
    }
    Status failure = fetched.status();
    failure = co_await BeforeRetry(failure, epoch, attempt, deadline);
    if (failure.IsError()) {
      ++(failure.GetCode() == K_NOT_FOUND ? counters_.misses : counters_.failures);
      co_return failure;
    }
  }
}

asio::awaitable<Result<store::ObjectRef>> ObjectService::Fetch(std::string key, TimePoint wait_until,
                                                               TimePoint deadline) {
  const PendingKeys::Operation operation(node_.pending, key, PendingKeys::Kind::kFetch);
  const bool may_keep = options_.keep_copies && !holder_.Untold(key);
  const uint64_t epoch = node_.view.epoch();
  const transport::PeerId shard = node_.view.ShardOf(key);
  transport::PeerId asked = shard;
  proto::PeerMessage type = proto::PeerMessage::kGet;
  std::string body;
  if (node_.view.IsSelf(shard)) {
    directory::LookupRequest lookup;
    lookup.key = key;
    lookup.reader = shard.incarnation;
    lookup.keep_copy = may_keep;
    lookup.wait_until = wait_until;
    lookup.deadline = deadline;
    auto found = co_await node_.directory.Lookup(std::move(lookup));
    if (!found.ok()) co_return found.status();
    if (found->owner == shard.incarnation) {
      co_return co_await ResolveOwnGrant(key, found->version, deadline);
    }
    asked = {node_.view.AddressOf(found->owner), found->owner};
    if (asked.address.empty()) co_return errors::TryAgain("the owner just left the cluster");
    proto::PeerFetch message;
    message.epoch = node_.view.epoch();
    message.key = key;
    message.version = found->version;
    message.keep_copy = may_keep;
    message.timeout_ms = RemainingMs(node_.clock, deadline);
    type = proto::PeerMessage::kFetch;
    body = message.Encode();
  } else {
    proto::PeerGet message;
    message.epoch = epoch;
    message.key = key;
    message.wait_ms = wait_until > node_.clock.Now() ? RemainingMs(node_.clock, wait_until) : 0;
    message.keep_copy = may_keep;
    message.timeout_ms = RemainingMs(node_.clock, deadline);
    body = message.Encode();
  }

  auto target = std::make_shared<FetchTarget>(node_.store);
  auto answer = co_await node_.transport.Call(asked, Type(type), std::move(body), deadline, target);
  if (!answer.ok()) co_return answer.status();
  auto got = proto::PeerGetAnswer::Decode(answer->body);
  if (!got.ok()) co_return got.status();
  if (got->yours) co_return co_await ResolveOwnGrant(key, got->version, deadline);
  shm::Extent extent = target->Take();
  if (!extent.valid()) {
    co_return errors::Runtime("worker {} answered a get without a value", answer->from.address);
  }

  store::ObjectMeta meta;
  meta.version = got->version;
  meta.role = store::Role::kReplica;
  meta.evictable = got->evictable;  // as a replica it may go anyway
  meta.expires_at = ExpiryOf(node_.clock, got->ttl_remaining_ms);
  const store::ObjectRef current = node_.store.Find(key);
  const bool keep = may_keep && got->listed && node_.view.epoch() == epoch &&
                    got->version > operation.invalidated_up_to() &&
                    (!current || current->meta().version < got->version);
  if (keep) co_return node_.store.Publish(key, meta, std::move(extent));
  co_return store::ObjectRef(new store::Object(std::move(key), meta, std::move(extent)));
}

// The shard granted this version to a set of this worker. Either that set is about to publish it, or its
// answer was lost: then nobody has the value, and the shard must forget it.
asio::awaitable<Status> ObjectService::ResolveOwnGrant(std::string key, uint64_t version,
                                                       TimePoint deadline) {
  if (node_.pending.HasUpdate(key)) {
    co_await node_.pending.WaitForEnd(key, std::min(deadline, node_.clock.Now() + kLongestPause));
  } else {
    const store::ObjectRef object = node_.store.Find(key);
    if (!object || object->meta().version < version) {
      node_.store.Erase(key, version);
      holder_.NoteDropped(key, version);
    }
  }
  co_return errors::TryAgain("the latest set of the key has just ended on this worker");
}

asio::awaitable<Status> ObjectService::Delete(std::string key, TimePoint deadline) {
  for (int attempt = 0;; ++attempt) {
    const uint64_t epoch = node_.view.epoch();
    Status serving = node_.view.Serving();
    if (serving.IsError()) co_return serving;
    auto existed = co_await DeleteOnce(key, deadline);
    if (existed.ok()) co_return Status::OK();
    Status failure = existed.status();
    failure = co_await BeforeRetry(failure, epoch, attempt, deadline);
    if (failure.IsError()) {
      ++counters_.failures;
      co_return failure;
    }
  }
}

asio::awaitable<Result<bool>> ObjectService::DeleteOnce(std::string key, TimePoint deadline) {
  const transport::PeerId shard = node_.view.ShardOf(key);
  if (node_.view.IsSelf(shard)) co_return co_await node_.directory.Delete(std::move(key), deadline);
  proto::PeerDelete message;
  message.epoch = node_.view.epoch();
  message.key = std::move(key);
  message.timeout_ms = RemainingMs(node_.clock, deadline);
  std::string body = message.Encode();
  auto answer =
      co_await node_.transport.Call(shard, Type(proto::PeerMessage::kDelete), std::move(body), deadline);
  if (!answer.ok()) co_return answer.status();
  auto deleted = proto::PeerDeleteAnswer::Decode(answer->body);
  if (!deleted.ok()) co_return deleted.status();
  co_return deleted->existed;
}

asio::awaitable<Result<std::vector<bool>>> ObjectService::Exist(std::vector<std::string> keys,
                                                                TimePoint deadline) {
  for (int attempt = 0;; ++attempt) {
    const uint64_t epoch = node_.view.epoch();
    Status serving = node_.view.Serving();
    if (serving.IsError()) co_return serving;
    auto exists = co_await ExistOnce(keys, deadline);
    if (exists.ok()) co_return exists;
    Status failure = exists.status();
    failure = co_await BeforeRetry(failure, epoch, attempt, deadline);
    if (failure.IsError()) {
      ++counters_.failures;
      co_return failure;
    }
  }
}

asio::awaitable<Result<std::vector<bool>>> ObjectService::ExistOnce(std::vector<std::string> keys,
                                                                    TimePoint deadline) {
  std::vector<bool> exists(keys.size());
  std::map<std::string, std::vector<size_t>> elsewhere;  // shard's address -> places in `keys`
  for (size_t i = 0; i < keys.size(); ++i) {
    if (node_.store.Find(keys[i])) {
      exists[i] = true;
      continue;
    }
    const transport::PeerId shard = node_.view.ShardOf(keys[i]);
    if (!node_.view.IsSelf(shard)) {
      elsewhere[shard.address].push_back(i);
      continue;
    }
    auto found = co_await node_.directory.Exists(keys[i], deadline);
    if (!found.ok()) co_return found.status();
    exists[i] = *found;
  }
  for (const auto& [address, places] : elsewhere) {
    const cluster::Member* member = node_.view.view().Find(address);
    if (member == nullptr) co_return errors::TryAgain("worker {} just left the cluster", address);
    const transport::PeerId shard{member->address, member->incarnation};
    proto::PeerExist message;
    message.epoch = node_.view.epoch();
    message.timeout_ms = RemainingMs(node_.clock, deadline);
    for (const size_t place : places) message.keys.push_back(keys[place]);
    std::string body = message.Encode();
    auto answer = co_await node_.transport.Call(shard, Type(proto::PeerMessage::kExist), std::move(body),
                                                deadline);
    if (!answer.ok()) co_return answer.status();
    auto found = proto::PeerExistAnswer::Decode(answer->body);
    if (!found.ok()) co_return found.status();
    if (found->exists.size() != places.size()) {
      co_return errors::Runtime("worker {} answered {} of {} keys", address, found->exists.size(),
                                places.size());
    }
    for (size_t i = 0; i < places.size(); ++i) exists[places[i]] = found->exists[i];
  }
  co_return exists;
}

}  // namespace datasystem::worker
