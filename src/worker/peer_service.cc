#include "worker/peer_service.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include "session/key_rules.h"

namespace datasystem::worker {
namespace {

using proto::PeerMessage;
using transport::ReturnAddress;

// A peer's deadline, which is not to be believed beyond this.
constexpr uint32_t kTimeoutMaxMs = 24 * 3600 * 1000;
// Entries in one report of a collection: about 4 MiB with the longest keys.
constexpr size_t kReportEntriesMax = 4096;
// For another change of the key to end before a version of it is withdrawn.
constexpr auto kWithdrawTimeout = std::chrono::seconds(2);
constexpr auto kReportTimeout = std::chrono::seconds(30);

TimePoint DeadlineOf(const Clock& clock, uint32_t timeout_ms) {
  return clock.Now() + std::chrono::milliseconds(std::min(timeout_ms, kTimeoutMaxMs));
}

}  // namespace

void PeerService::Handle(transport::Request request) {
  asio::co_spawn(node_.context, Serve(std::move(request)), asio::detached);
}

Status PeerService::Admit(uint64_t epoch) const {
  RETURN_IF_ERROR(node_.view.CheckEpoch(epoch));
  return node_.view.Serving();
}

asio::awaitable<void> PeerService::Serve(transport::Request request) {
  const ReturnAddress from = request.from;
  Status status;
  switch (static_cast<PeerMessage>(request.type)) {
    case PeerMessage::kGet: status = co_await ServeGet(from, std::move(request.body)); break;
    case PeerMessage::kFetch: status = co_await ServeFetch(from, std::move(request.body)); break;
    case PeerMessage::kUpdate: status = co_await ServeUpdate(from, std::move(request.body)); break;
    case PeerMessage::kExpire: status = co_await ServeExpire(from, std::move(request.body)); break;
    case PeerMessage::kSetExpiry: status = co_await ServeSetExpiry(from, std::move(request.body)); break;
    case PeerMessage::kDelete: status = co_await ServeDelete(from, std::move(request.body)); break;
    case PeerMessage::kExist: status = co_await ServeExist(from, std::move(request.body)); break;
    case PeerMessage::kDropped: status = co_await ServeDropped(from, std::move(request.body)); break;
    case PeerMessage::kCollect: status = co_await ServeCollect(from, std::move(request.body)); break;
    case PeerMessage::kEntries: status = co_await ServeEntries(from, std::move(request.body)); break;
    case PeerMessage::kGetMany: status = ServeGetMany(from, request.body); break;
    case PeerMessage::kInvalidate: status = ServeInvalidate(from, request.body); break;
    case PeerMessage::kPromote: status = ServePromote(from, request.body); break;
    default: status = errors::NotSupported("unknown peer message type {}", request.type);
  }
  // The parts that succeed answer by themselves.
  if (status.IsError()) node_.transport.Respond(from, status, "");
}

asio::awaitable<Status> PeerService::ServeGet(ReturnAddress from, std::string body) {
  auto get = proto::PeerGet::Decode(body);
  if (!get.ok()) co_return get.status();
  Status admitted = Admit(get->epoch);
  if (admitted.IsError()) co_return admitted;
  const TimePoint deadline = DeadlineOf(node_.clock, get->timeout_ms);
  directory::LookupRequest lookup;
  lookup.key = get->key;
  lookup.reader = from.caller.incarnation;
  lookup.keep_copy = get->keep_copy;
  lookup.wait_until = DeadlineOf(node_.clock, get->wait_ms);
  lookup.deadline = deadline;
  auto found = co_await node_.directory.Lookup(std::move(lookup));
  if (!found.ok()) co_return found.status();
  if (found->owner == from.caller.incarnation) {
    proto::PeerGetAnswer answer;
    answer.version = found->version;
    answer.yours = true;
    node_.transport.Respond(from, Status::OK(), answer.Encode());
    co_return Status::OK();
  }
  proto::PeerFetch fetch;
  fetch.epoch = node_.view.epoch();
  fetch.key = std::move(get->key);
  fetch.version = found->version;
  fetch.timeout_ms = RemainingMs(node_.clock, deadline);
  fetch.keep_copy = get->keep_copy;
  fetch.size_only = get->size_only;
  if (found->owner == node_.view.self().incarnation) {
    co_return co_await SendObject(from, std::move(fetch));
  }
  const transport::PeerId owner{node_.view.AddressOf(found->owner), found->owner};
  if (owner.address.empty()) co_return errors::TryAgain("the owner just left the cluster");
  std::string forwarded = fetch.Encode();
  node_.transport.Forward(from, owner, static_cast<uint16_t>(PeerMessage::kFetch), std::move(forwarded));
  co_return Status::OK();
}

Status PeerService::ServeGetMany(const ReturnAddress& from, const std::string& body) {
  ASSIGN_OR_RETURN(const auto request, proto::PeerGetMany::Decode(body));
  RETURN_IF_ERROR(Admit(request.epoch));
  RETURN_IF_ERROR(session::CheckBatchSize(request.items.size()));
  AnswerGetMany(node_, from, request, limits_);
  return Status::OK();
}

asio::awaitable<Status> PeerService::ServeFetch(ReturnAddress from, std::string body) {
  auto fetch = proto::PeerFetch::Decode(body);
  if (!fetch.ok()) co_return fetch.status();
  Status admitted = Admit(fetch->epoch);
  if (admitted.IsError()) co_return admitted;
  co_return co_await SendObject(from, *std::move(fetch));
}

asio::awaitable<Status> PeerService::SendObject(ReturnAddress from, proto::PeerFetch fetch) {
  const TimePoint deadline = DeadlineOf(node_.clock, fetch.timeout_ms);
  const std::string key = std::move(fetch.key);
  const uint64_t version = fetch.version;
  for (;;) {
    const store::ObjectRef object = node_.store.Find(key);
    if (object && object->meta().version >= version) {
      proto::PeerGetAnswer answer;
      answer.version = object->meta().version;
      answer.ttl_remaining_ms = TtlMs(node_.clock, object->meta().expires_at);
      answer.evictable = object->meta().evictable;
      answer.listed = fetch.keep_copy && object->meta().version == version;
      answer.size = object->size();
      if (fetch.size_only) {
        node_.transport.Respond(from, Status::OK(), answer.Encode());
        co_return Status::OK();
      }
      transport::Payload payload;
      payload.parts.push_back(object.bytes());
      payload.owner = std::make_shared<store::ObjectRef>(object);  // pinned until all has left
      node_.transport.Respond(from, Status::OK(), answer.Encode(), std::move(payload));
      co_return Status::OK();
    }
    // The version may have been granted to a set of ours that has not published yet.
    if (!node_.pending.HasUpdate(key)) break;
    if (node_.clock.Now() >= deadline) {
      co_return errors::DeadlineExceeded("a set of the object is still under way at worker {}",
                                         node_.view.self().address);
    }
    co_await node_.pending.WaitForEnd(key, deadline);
  }
  // By the shard's books this worker has that version. It has not, so whatever it has is older than what
  // was granted, and the shard must forget it.
  node_.store.Erase(key, version);
  holder_.NoteDropped(key, version);
  co_return errors::TryAgain("worker {} does not hold the object any more", node_.view.self().address);
}

asio::awaitable<Status> PeerService::ServeUpdate(ReturnAddress from, std::string body) {
  auto update = proto::PeerUpdate::Decode(body);
  if (!update.ok()) co_return update.status();
  Status admitted = Admit(update->epoch);
  if (admitted.IsError()) co_return admitted;
  Status legal = session::CheckKey(update->key);
  if (legal.IsError()) co_return legal;
  directory::UpdateRequest request;
  request.key = std::move(update->key);
  request.holder = from.caller.incarnation;
  request.only_if_absent = update->only_if_absent;
  request.discarded = update->discarded;
  request.expires_at = ExpiryOf(node_.clock, update->ttl_ms);
  request.deadline = DeadlineOf(node_.clock, update->timeout_ms);
  auto version = co_await node_.directory.Update(std::move(request));
  if (!version.ok()) co_return version.status();
  proto::PeerUpdateAnswer answer;
  answer.version = *version;
  node_.transport.Respond(from, Status::OK(), answer.Encode());
  co_return Status::OK();
}

asio::awaitable<Status> PeerService::ServeExpire(ReturnAddress from, std::string body) {
  auto message = proto::PeerExpire::Decode(body);
  if (!message.ok()) co_return message.status();
  Status admitted = Admit(message->epoch);
  if (admitted.IsError()) co_return admitted;
  const TimePoint deadline = DeadlineOf(node_.clock, message->timeout_ms);
  const TimePoint expires_at = ExpiryOf(node_.clock, message->ttl_ms);
  Status done = co_await node_.directory.Expire(std::move(message->key), expires_at, deadline);
  if (done.IsOk()) node_.transport.Respond(from, Status::OK(), "");
  co_return done;
}

asio::awaitable<Status> PeerService::ServeSetExpiry(ReturnAddress from, std::string body) {
  auto message = proto::PeerSetExpiry::Decode(body);
  if (!message.ok()) co_return message.status();
  Status admitted = Admit(message->epoch);
  if (admitted.IsError()) co_return admitted;
  const TimePoint expires_at = ExpiryOf(node_.clock, message->ttl_ms);
  Status done = co_await holder_.SetExpiryHere(std::move(message->key), message->version, expires_at);
  if (done.IsOk()) node_.transport.Respond(from, Status::OK(), "");
  co_return done;
}

asio::awaitable<Status> PeerService::ServeDelete(ReturnAddress from, std::string body) {
  auto message = proto::PeerDelete::Decode(body);
  if (!message.ok()) co_return message.status();
  Status admitted = Admit(message->epoch);
  if (admitted.IsError()) co_return admitted;
  const TimePoint deadline = DeadlineOf(node_.clock, message->timeout_ms);
  auto existed = co_await node_.directory.Delete(std::move(message->key), deadline);
  if (!existed.ok()) co_return existed.status();
  proto::PeerDeleteAnswer answer;
  answer.existed = *existed;
  node_.transport.Respond(from, Status::OK(), answer.Encode());
  co_return Status::OK();
}

asio::awaitable<Status> PeerService::ServeExist(ReturnAddress from, std::string body) {
  auto message = proto::PeerExist::Decode(body);
  if (!message.ok()) co_return message.status();
  Status admitted = Admit(message->epoch);
  if (admitted.IsError()) co_return admitted;
  Status legal = session::CheckBatchSize(message->keys.size());
  if (legal.IsError()) co_return legal;
  const TimePoint deadline = DeadlineOf(node_.clock, message->timeout_ms);
  proto::PeerExistAnswer answer;
  for (std::string& key : message->keys) {
    auto exists = co_await node_.directory.Exists(std::move(key), deadline);
    if (!exists.ok()) co_return exists.status();
    answer.exists.push_back(*exists);
  }
  node_.transport.Respond(from, Status::OK(), answer.Encode());
  co_return Status::OK();
}

Status PeerService::ServeInvalidate(ReturnAddress from, const std::string& body) {
  ASSIGN_OR_RETURN(const auto message, proto::PeerVersionedKey::Decode(body));
  // No look at the lease: dropping is right in any case.
  RETURN_IF_ERROR(node_.view.CheckEpoch(message.epoch));
  holder_.InvalidateHere(message.key, message.version);
  node_.transport.Respond(from, Status::OK(), "");
  return Status::OK();
}

Status PeerService::ServePromote(ReturnAddress from, const std::string& body) {
  ASSIGN_OR_RETURN(const auto message, proto::PeerVersionedKey::Decode(body));
  RETURN_IF_ERROR(node_.view.CheckEpoch(message.epoch));
  holder_.PromoteHere(message.key, message.version);
  node_.transport.Respond(from, Status::OK(), "");
  return Status::OK();
}

asio::awaitable<Status> PeerService::ServeDropped(ReturnAddress from, std::string body) {
  auto message = proto::PeerEntries::Decode(body);
  if (!message.ok()) co_return message.status();
  Status current = node_.view.CheckEpoch(message->epoch);
  if (current.IsError()) co_return current;
  for (const proto::PeerEntry& entry : message->entries) {
    if (!entry.withdrawn) node_.directory.Dropped(entry.key, entry.version, from.caller.incarnation);
  }
  const TimePoint deadline = node_.clock.Now() + kWithdrawTimeout;
  for (proto::PeerEntry& entry : message->entries) {
    if (!entry.withdrawn) continue;
    Status noted = co_await node_.directory.Withdraw(std::move(entry.key), entry.version, deadline);
    if (noted.IsError()) co_return noted;
  }
  node_.transport.Respond(from, Status::OK(), "");
  co_return Status::OK();
}

// The whole of it is read at once, in this epoch: what changes later is ordered by the new shard.
asio::awaitable<Status> PeerService::ServeCollect(ReturnAddress from, std::string body) {
  auto message = proto::PeerCollect::Decode(body);
  if (!message.ok()) co_return message.status();
  Status admitted = Admit(message->epoch);
  if (admitted.IsError()) co_return admitted;
  const std::vector<proto::PeerEntry> entries = holder_.EntriesFor(from.caller);
  for (size_t begin = 0; begin < entries.size(); begin += kReportEntriesMax) {
    proto::PeerEntries report;
    report.epoch = message->epoch;
    const size_t end = std::min(entries.size(), begin + kReportEntriesMax);
    report.entries.assign(entries.begin() + begin, entries.begin() + end);
    std::string encoded = report.Encode();
    const TimePoint deadline = node_.clock.Now() + kReportTimeout;
    auto answer = co_await node_.transport.Call(
        from.caller, static_cast<uint16_t>(PeerMessage::kEntries), std::move(encoded), deadline);
    if (!answer.ok()) co_return answer.status();
  }
  node_.transport.Respond(from, Status::OK(), "");
  co_return Status::OK();
}

asio::awaitable<Status> PeerService::ServeEntries(ReturnAddress from, std::string body) {
  auto message = proto::PeerEntries::Decode(body);
  if (!message.ok()) co_return message.status();
  Status admitted = Admit(message->epoch);
  if (admitted.IsError()) co_return admitted;
  std::vector<directory::Copy> copies;
  copies.reserve(message->entries.size());
  for (proto::PeerEntry& entry : message->entries) {
    directory::Copy copy;
    copy.key = std::move(entry.key);
    copy.version = entry.version;
    copy.primary = entry.primary;
    copy.expires_at = ExpiryOf(node_.clock, entry.ttl_remaining_ms);
    copies.push_back(std::move(copy));
  }
  const auto stale = node_.directory.Report(message->epoch, from.caller.incarnation, copies);
  const TimePoint deadline = node_.clock.Now() + kReportTimeout;
  for (const directory::StaleCopy& copy : stale) {
    Status dropped = co_await holder_.Invalidate(copy.holder, copy.key, copy.version, deadline);
    if (dropped.IsError()) co_return dropped;
  }
  node_.transport.Respond(from, Status::OK(), "");
  co_return Status::OK();
}

}  // namespace datasystem::worker
