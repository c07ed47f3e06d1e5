// How a set and a get travel is told in ARCHITECTURE.md.
#include "worker/object_service.h"

#include <map>

#include "base/concurrently.h"
#include "worker/allocate.h"
#include "worker/landing.h"
#include "worker/retry.h"

namespace datasystem::worker {
namespace {

// How long one look waits for a set of this worker that may be about to publish.
constexpr auto kPublishPause = std::chrono::milliseconds(50);
// Keys of one call that are asked for at the same time, each by itself.
constexpr size_t kKeysWindow = 64;

uint16_t Type(proto::PeerMessage message) { return static_cast<uint16_t>(message); }

// Allocates when the size is known, so that a value lands where it will stay.
class FetchTarget final : public transport::PayloadTarget {
 public:
  // `extent`: memory for it, if its size is known beforehand.
  explicit FetchTarget(store::ObjectStore& store, shm::Extent extent = {})
      : store_(store), extent_(std::move(extent)) {}

  // kTryAgain: see wanted().
  Result<transport::Places> Prepare(std::string_view, uint64_t size) override {
    if (!extent_.valid() || extent_.size() != size) {
      wanted_ = size;
      ASSIGN_OR_RETURN(extent_, AllocateAtOnce(store_, size));
      wanted_ = 0;
    }
    return transport::Places{extent_.bytes()};
  }

  // What Prepare() had no room for, at least not at once; 0: nothing.
  uint64_t wanted() const { return wanted_; }
  shm::Extent Take() { return std::move(extent_); }

 private:
  store::ObjectStore& store_;
  shm::Extent extent_;
  uint64_t wanted_ = 0;
};

}  // namespace

asio::awaitable<Status> ObjectService::Set(std::string key, shm::Extent& extent, SetOptions options,
                                           TimePoint deadline) {
  ++counters_.sets;
  Status done = co_await writer_.Set(std::move(key), extent, options, deadline);
  if (done.IsError() && done.GetCode() != K_OC_KEY_ALREADY_EXIST) ++counters_.failures;
  co_return done;
}

asio::awaitable<Status> ObjectService::SetAll(std::vector<std::string> keys, std::vector<shm::Extent>& extents,
                                              SetOptions options, TimePoint deadline) {
  counters_.sets += keys.size();
  Status done = co_await writer_.SetAll(std::move(keys), extents, options, deadline);
  if (done.IsError() && done.GetCode() != K_OC_KEY_ALREADY_EXIST) ++counters_.failures;
  co_return done;
}

Result<store::ObjectRef> ObjectService::GetHere(std::string_view key) {
  RETURN_IF_ERROR(node_.view.Serving());
  store::ObjectRef object = node_.store.Find(key);
  if (object) ++counters_.local_hits;
  return object;
}

asio::awaitable<Result<store::ObjectRef>> ObjectService::Get(std::string key, TimePoint wait_until,
                                                             TimePoint deadline) {
  const uint64_t arrived = flights_.Arrive();
  for (int attempt = 0;; ++attempt) {
    const uint64_t epoch = node_.view.epoch();
    auto got = GetHere(key);
    if (!got.ok() || *got) co_return got;
    if (const auto flight = flights_.Find(key, wait_until, node_.clock.Now())) {
      const bool ended = co_await flight->WaitForEnd(deadline);
      if (!ended) {
        ++counters_.failures;
        co_return errors::DeadlineExceeded("another get's fetch of {} took too long", key);
      }
      auto outcome = flight->OutcomeFor(arrived, wait_until, node_.clock.Now());
      if (!outcome) continue;
      got = std::move(*outcome);
    } else {
      Flights::Lead lead(flights_, key, wait_until);
      got = co_await Fetch(key, wait_until, deadline);
      lead.Land(got);
    }
    if (got.ok()) {
      ++counters_.remote_hits;
      co_return got;
    }
    Status failure = got.status();
    failure = co_await BeforeRetry(node_, failure, epoch, attempt, deadline);
    if (failure.IsError()) {
      ++(failure.GetCode() == K_NOT_FOUND ? counters_.misses : counters_.failures);
      co_return failure;
    }
  }
}

asio::awaitable<std::vector<Result<store::ObjectRef>>> ObjectService::GetMany(
    std::vector<std::string> keys, TimePoint wait_until, TimePoint deadline) {
  std::vector<Gather::Outcome> outcomes(keys.size());
  if (keys.size() > 1 && Serving().IsOk()) {
    co_await gather_.Fetch(keys, outcomes, wait_until, deadline);
  }
  std::vector<size_t> rest;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!outcomes[i]) {
      rest.push_back(i);
    } else if (outcomes[i]->ok()) {
      ++counters_.remote_hits;
    } else {
      ++(outcomes[i]->status().GetCode() == K_NOT_FOUND ? counters_.misses : counters_.failures);
    }
  }
  const auto get = [&, this](size_t n) -> asio::awaitable<void> {
    const size_t i = rest[n];
    outcomes[i] = co_await Get(std::move(keys[i]), wait_until, deadline);
  };
  if (!rest.empty()) co_await ForEachConcurrently(node_.context, rest.size(), kKeysWindow, get);
  std::vector<Result<store::ObjectRef>> results;
  results.reserve(keys.size());
  for (auto& outcome : outcomes) results.push_back(*std::move(outcome));
  co_return results;
}

asio::awaitable<Result<ObjectService::Told>> ObjectService::Ask(
    Question question, std::shared_ptr<transport::PayloadTarget> target) {
  const transport::PeerId shard = node_.view.ShardOf(question.key);
  transport::PeerId asked = shard;
  proto::PeerMessage type = proto::PeerMessage::kGet;
  std::string body;
  Told told;
  if (node_.view.IsSelf(shard)) {
    directory::LookupRequest lookup;
    lookup.key = question.key;
    lookup.reader = shard.incarnation;
    lookup.keep_copy = question.keep_copy;
    lookup.wait_until = question.wait_until;
    lookup.deadline = question.deadline;
    auto found = co_await node_.directory.Lookup(std::move(lookup));
    if (!found.ok()) co_return found.status();
    if (found->owner == shard.incarnation) {
      told.answer.version = found->version;
      told.answer.yours = true;
      co_return told;
    }
    asked = {node_.view.AddressOf(found->owner), found->owner};
    if (asked.address.empty()) co_return errors::TryAgain("the owner just left the cluster");
    proto::PeerFetch message;
    message.epoch = node_.view.epoch();
    message.key = std::move(question.key);
    message.version = found->version;
    message.keep_copy = question.keep_copy;
    message.size_only = question.size_only;
    message.timeout_ms = RemainingMs(node_.clock, question.deadline);
    type = proto::PeerMessage::kFetch;
    body = message.Encode();
  } else {
    const TimePoint now = node_.clock.Now();
    proto::PeerGet message;
    message.epoch = node_.view.epoch();
    message.key = std::move(question.key);
    message.wait_ms = question.wait_until > now ? RemainingMs(node_.clock, question.wait_until) : 0;
    message.keep_copy = question.keep_copy;
    message.size_only = question.size_only;
    message.timeout_ms = RemainingMs(node_.clock, question.deadline);
    body = message.Encode();
  }
  auto answer = co_await node_.transport.Call(asked, Type(type), std::move(body), question.deadline,
                                              std::move(target));
  if (!answer.ok()) co_return answer.status();
  auto decoded = proto::PeerGetAnswer::Decode(answer->body);
  if (!decoded.ok()) co_return decoded.status();
  told.answer = *decoded;
  told.by = answer->from.address;
  co_return told;
}

asio::awaitable<Result<store::ObjectRef>> ObjectService::Fetch(std::string key, TimePoint wait_until,
                                                               TimePoint deadline) {
  const Landing landing(node_, holder_, key, options_.keep_copies);
  Question question;
  question.key = key;
  question.wait_until = wait_until;
  question.deadline = deadline;
  question.keep_copy = landing.may_keep();
  Question once_more = question;
  auto target = std::make_shared<FetchTarget>(node_.store);
  auto told = co_await Ask(std::move(question), target);
  if (!told.ok() && target->wanted() > 0) {
    auto room = co_await AllocateInSteps(node_.context, node_.store, target->wanted());
    if (!room.ok()) co_return room.status();
    target = std::make_shared<FetchTarget>(node_.store, std::move(room).value());
    told = co_await Ask(std::move(once_more), target);
  }
  if (!told.ok()) co_return told.status();
  const proto::PeerGetAnswer& got = told->answer;
  if (got.yours) co_return co_await ResolveOwnGrant(key, got.version, deadline);
  shm::Extent extent = target->Take();
  if (!extent.valid()) co_return errors::Runtime("worker {} answered a get without a value", told->by);
  co_return landing.Take({.version = got.version,
                          .ttl_remaining_ms = got.ttl_remaining_ms,
                          .listed = got.listed,
                          .evictable = got.evictable},
                         extent);
}

asio::awaitable<Result<std::vector<Result<uint64_t>>>> ObjectService::Sizes(std::vector<std::string> keys,
                                                                            TimePoint deadline) {
  Status serving = node_.view.Serving();
  if (serving.IsError()) co_return serving;
  std::vector<Result<uint64_t>> sizes(keys.size(), Result<uint64_t>(uint64_t{0}));
  std::vector<size_t> elsewhere;
  for (size_t i = 0; i < keys.size(); ++i) {
    const store::ObjectRef object = node_.store.Find(keys[i]);
    if (object) {
      sizes[i] = object->size();
    } else {
      elsewhere.push_back(i);
    }
  }
  const auto ask = [&](size_t i) -> asio::awaitable<void> {
    sizes[elsewhere[i]] = co_await SizeOf(keys[elsewhere[i]], deadline);
  };
  if (!elsewhere.empty()) {
    co_await ForEachConcurrently(node_.context, elsewhere.size(), kKeysWindow, ask);
  }
  co_return sizes;
}

asio::awaitable<Result<uint64_t>> ObjectService::SizeOf(std::string key, TimePoint deadline) {
  for (int attempt = 0;; ++attempt) {
    const uint64_t epoch = node_.view.epoch();
    Status serving = node_.view.Serving();
    if (serving.IsError()) co_return serving;
    const store::ObjectRef object = node_.store.Find(key);
    if (object) co_return object->size();
    auto size = co_await SizeElsewhere(key, deadline);
    if (size.ok()) co_return size;
    Status failure = size.status();
    failure = co_await BeforeRetry(node_, failure, epoch, attempt, deadline);
    if (failure.IsError()) co_return failure;
  }
}

asio::awaitable<Result<uint64_t>> ObjectService::SizeElsewhere(std::string key, TimePoint deadline) {
  Question question;
  question.key = key;
  question.wait_until = TimePoint::min();
  question.deadline = deadline;
  question.size_only = true;
  auto told = co_await Ask(std::move(question), nullptr);
  if (!told.ok()) co_return told.status();
  if (told->answer.yours) co_return co_await ResolveOwnGrant(key, told->answer.version, deadline);
  co_return told->answer.size;
}

// The shard granted this version to a set of this worker. Either that set is about to publish it, or its
// answer was lost: then nobody has the value, and the shard must forget it.
asio::awaitable<Status> ObjectService::ResolveOwnGrant(std::string key, uint64_t version,
                                                       TimePoint deadline) {
  if (node_.pending.HasUpdate(key)) {
    co_await node_.pending.WaitForEnd(key, std::min(deadline, node_.clock.Now() + kPublishPause));
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
    failure = co_await BeforeRetry(node_, failure, epoch, attempt, deadline);
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

asio::awaitable<Status> ObjectService::Expire(std::string key, uint64_t ttl_ms, TimePoint deadline) {
  for (int attempt = 0;; ++attempt) {
    const uint64_t epoch = node_.view.epoch();
    Status serving = node_.view.Serving();
    if (serving.IsError()) co_return serving;
    Status done = co_await ExpireOnce(key, ttl_ms, deadline);
    if (done.IsOk() || done.GetCode() == K_NOT_FOUND) co_return done;
    done = co_await BeforeRetry(node_, done, epoch, attempt, deadline);
    if (done.IsError()) {
      ++counters_.failures;
      co_return done;
    }
  }
}

asio::awaitable<Status> ObjectService::ExpireOnce(std::string key, uint64_t ttl_ms, TimePoint deadline) {
  const transport::PeerId shard = node_.view.ShardOf(key);
  if (node_.view.IsSelf(shard)) {
    const TimePoint expires_at = ExpiryOf(node_.clock, ttl_ms);
    co_return co_await node_.directory.Expire(std::move(key), expires_at, deadline);
  }
  proto::PeerExpire message;
  message.epoch = node_.view.epoch();
  message.key = std::move(key);
  message.ttl_ms = ttl_ms;
  message.timeout_ms = RemainingMs(node_.clock, deadline);
  std::string body = message.Encode();
  auto answer =
      co_await node_.transport.Call(shard, Type(proto::PeerMessage::kExpire), std::move(body), deadline);
  co_return answer.status();
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
    failure = co_await BeforeRetry(node_, failure, epoch, attempt, deadline);
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
