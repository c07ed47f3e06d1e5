#include "worker/writer.h"

#include <algorithm>

#include "base/concurrently.h"
#include "worker/retry.h"

namespace datasystem::worker {
namespace {

constexpr size_t kGroupMax = 8;
// For a shard to acknowledge that a version is taken back; then it is told in the background.
constexpr auto kTakeBackTimeout = std::chrono::seconds(2);

uint16_t Type(proto::PeerMessage message) { return static_cast<uint16_t>(message); }

// Of the keys in their order.
Status CheckGroup(const std::vector<std::string>& sorted, size_t values,
                  const SetOptions& options) {
  if (!options.only_if_absent) {
    return errors::Invalid(
        "several keys can only be set all or nothing if none of them may exist (NX)");
  }
  if (sorted.empty() || sorted.size() > kGroupMax) {
    return errors::Invalid("1 to {} keys can be set all or nothing, not {}", kGroupMax,
                           sorted.size());
  }
  if (values != sorted.size())
    return errors::Invalid("{} values for {} keys", values, sorted.size());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) return errors::Invalid("key {} is there twice", *twice);
  return Status::OK();
}

}  // namespace

asio::awaitable<Status> Writer::Set(std::string key, shm::Extent& extent, SetOptions options,
                                    TimePoint deadline) {
  const PendingKeys::Operation operation(node_.pending, key, PendingKeys::Kind::kUpdate);
  uint64_t discarded = 0;
  for (int attempt = 0;; ++attempt) {
    const uint64_t epoch = node_.view.epoch();
    Status serving = node_.view.Serving();
    if (serving.IsError()) co_return serving;
    auto version = co_await RequestVersion(key, options, discarded, deadline);
    if (version.ok() && node_.view.epoch() != epoch) {
      // The new shard does not know of this grant.
      discarded = *version;
      version = errors::TryAgain("the ring changed during the set");
    }
    if (version.ok()) {
      Status published = Publish(key, *version, options, operation, extent);
      if (published.IsError()) co_await TakeBack(key, *version, deadline);
      co_return published;
    }
    Status failure = version.status();
    failure = co_await BeforeRetry(node_, failure, epoch, attempt, deadline);
    if (failure.IsError()) co_return failure;
  }
}

// In two steps: versions for all keys, then all values without a pause in between.
//
// Versions are asked for in the order of the keys. Were two calls to refuse each other, one would
// hold x and lack y, the other hold y and lack x: but then x is before y and y before x.
asio::awaitable<Status> Writer::SetAll(std::vector<std::string> keys,
                                       std::vector<shm::Extent>& extents, SetOptions options,
                                       TimePoint deadline) {
  std::vector<std::string> sorted = keys;
  std::sort(sorted.begin(), sorted.end());
  Status legal = CheckGroup(sorted, extents.size(), options);
  if (legal.IsError()) co_return legal;
  // From now on readers of these keys who are sent here wait for the outcome.
  std::vector<Part> parts(keys.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].key = sorted[i];
    const auto place = std::find(keys.begin(), keys.end(), sorted[i]) - keys.begin();
    parts[i].extent = &extents[static_cast<size_t>(place)];
    parts[i].operation = std::make_unique<PendingKeys::Operation>(node_.pending, sorted[i],
                                                                  PendingKeys::Kind::kUpdate);
  }
  for (int attempt = 0;; ++attempt) {
    const uint64_t epoch = node_.view.epoch();
    Status done = node_.view.Serving();
    if (done.IsOk()) done = co_await RequestVersions(parts, options, deadline);
    if (done.IsOk() && node_.view.epoch() != epoch) {
      done = errors::TryAgain("the ring changed during the set of {} keys", parts.size());
    }
    if (done.IsOk()) {
      done = PublishAll(parts, options);
      if (done.IsOk()) co_return done;
    }
    done = co_await BeforeRetry(node_, done, epoch, attempt, deadline);
    if (done.IsError()) {
      co_await TakeBackAll(parts, deadline);
      co_return done;
    }
  }
}

asio::awaitable<Status> Writer::RequestVersions(std::vector<Part>& parts, SetOptions options,
                                                TimePoint deadline) {
  for (Part& part : parts) {
    // What an earlier attempt was granted does not make the key exist.
    auto version = co_await RequestVersion(part.key, options, part.version, deadline);
    if (!version.ok()) co_return version.status();
    part.version = *version;
  }
  co_return Status::OK();
}

asio::awaitable<Result<uint64_t>> Writer::RequestVersion(std::string key, SetOptions options,
                                                         uint64_t discarded, TimePoint deadline) {
  const transport::PeerId shard = node_.view.ShardOf(key);
  if (node_.view.IsSelf(shard)) {
    directory::UpdateRequest request;
    request.key = std::move(key);
    request.holder = shard.incarnation;
    request.only_if_absent = options.only_if_absent;
    request.discarded = discarded;
    request.expires_at = ExpiryOf(node_.clock, options.ttl_ms);
    request.deadline = deadline;
    co_return co_await node_.directory.Update(std::move(request));
  }
  proto::PeerUpdate message;
  message.epoch = node_.view.epoch();
  message.key = std::move(key);
  message.only_if_absent = options.only_if_absent;
  message.discarded = discarded;
  message.ttl_ms = options.ttl_ms;
  message.timeout_ms = RemainingMs(node_.clock, deadline);
  std::string body = message.Encode();
  auto answer = co_await node_.transport.Call(shard, Type(proto::PeerMessage::kUpdate),
                                              std::move(body), deadline);
  if (!answer.ok()) co_return answer.status();
  auto update = proto::PeerUpdateAnswer::Decode(answer->body);
  if (!update.ok()) co_return update.status();
  co_return update->version;
}

Status Writer::Publish(const std::string& key, uint64_t version, const SetOptions& options,
                       const PendingKeys::Operation& operation, shm::Extent& extent) {
  // Already overwritten by a set that the shard ordered after this one: nothing to publish.
  if (version <= operation.invalidated_up_to()) return Status::OK();
  const store::ObjectRef current = node_.store.Find(key);
  if (current && current->meta().version > version) return Status::OK();
  store::ObjectMeta meta;
  meta.version = version;
  meta.role = store::Role::kPrimary;
  meta.evictable = options.evictable;
  meta.expires_at = ExpiryOf(node_.clock, options.ttl_ms);
  const Status published = node_.store.Publish(key, meta, extent).status();
  // What is older must not be read any more. That nobody has the version, the caller tells the
  // shard.
  if (published.IsError()) node_.store.Erase(key, version);
  return published;
}

Status Writer::PublishAll(std::vector<Part>& parts, const SetOptions& options) {
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    Status published = Publish(part.key, part.version, options, *part.operation, *part.extent);
    if (published.IsOk()) continue;
    for (size_t undo = 0; undo < i; ++undo) node_.store.Erase(parts[undo].key, parts[undo].version);
    return published;
  }
  return Status::OK();
}

asio::awaitable<void> Writer::TakeBackAll(std::vector<Part>& parts, TimePoint deadline) {
  const auto take_back = [&](size_t i) -> asio::awaitable<void> {
    if (parts[i].version != 0) co_await TakeBack(parts[i].key, parts[i].version, deadline);
  };
  co_await ForEachConcurrently(node_.context, parts.size(), kGroupMax, take_back);
}

asio::awaitable<void> Writer::TakeBack(std::string key, uint64_t version, TimePoint deadline) {
  const TimePoint until = std::min(deadline, node_.clock.Now() + kTakeBackTimeout);
  for (int attempt = 0;; ++attempt) {
    const uint64_t epoch = node_.view.epoch();
    Status done = node_.view.Serving();
    if (done.IsOk()) done = co_await Withdraw(key, version, until);
    if (done.IsOk()) co_return;
    done = co_await BeforeRetry(node_, done, epoch, attempt, until);
    if (done.IsError()) break;
  }
  holder_.NoteDropped(key, version);  // later, and again until it is acknowledged
}

asio::awaitable<Status> Writer::Withdraw(std::string key, uint64_t version, TimePoint deadline) {
  const transport::PeerId shard = node_.view.ShardOf(key);
  if (node_.view.IsSelf(shard)) co_return co_await node_.directory.Withdraw(key, version, deadline);
  proto::PeerEntries notice;
  notice.epoch = node_.view.epoch();
  notice.entries.resize(1);
  notice.entries[0].key = std::move(key);
  notice.entries[0].version = version;
  notice.entries[0].withdrawn = true;
  std::string body = notice.Encode();
  auto answer = co_await node_.transport.Call(shard, Type(proto::PeerMessage::kDropped),
                                              std::move(body), deadline);
  co_return answer.status();
}

}  // namespace datasystem::worker
