#include "worker/read_requests.h"

#include "base/concurrently.h"
#include "session/key_rules.h"

namespace datasystem::worker {
namespace {

using proto::SessionMessage;

// All values of one answer: beyond, a client looks for them itself.
constexpr uint64_t kInMessageMax = 64 << 10;
constexpr size_t kItemsInMessageMax = 8;

struct Slice {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Of a value of `size` bytes, what the request wants of key `i`.
Result<Slice> SliceOf(const proto::GetRequest& get, size_t i, uint64_t size) {
  if (get.offsets.empty()) return Slice{0, size};
  const uint64_t offset = get.offsets[i];
  if (offset >= size) {
    return errors::OutOfRange("offset {} is at or after the end of the value, which has {} bytes", offset, size);
  }
  const uint64_t wanted = get.sizes[i] == 0 ? size : get.sizes[i];
  return Slice{offset, std::min(wanted, size - offset)};
}

}  // namespace

Status ReadRequests::Release(const ClientRequest& request) {
  ASSIGN_OR_RETURN(const proto::ReleaseRequest release, proto::ReleaseRequest::Decode(request.frame.body));
  for (const uint64_t id : release.pin_ids) request.session->pins.erase(id);
  return Status::OK();
}

// References into the frame of Get(), which waits for the end.
asio::awaitable<void> ReadRequests::Find(proto::GetRequest& get, std::vector<store::ObjectRef>& objects,
                                         proto::GetReply& reply) {
  const TimePoint deadline = parts_.Deadline(get.timeout_ms);
  const TimePoint wait_until = std::min(deadline, parts_.Deadline(get.sub_timeout_ms));
  std::vector<size_t> elsewhere;
  for (size_t i = 0; i < objects.size(); ++i) {
    Status legal = session::CheckKey(get.keys[i]);
    if (legal.IsError()) {
      reply.items[i].status = legal;
      continue;
    }
    auto here = parts_.objects.GetHere(get.keys[i]);
    if (!here.ok()) {
      reply.items[i].status = here.status();
    } else if (*here) {
      objects[i] = std::move(here).value();
    } else {
      elsewhere.push_back(i);
    }
  }
  if (elsewhere.empty()) co_return;
  std::vector<std::string> keys;
  for (const size_t i : elsewhere) keys.push_back(std::move(get.keys[i]));
  auto got = co_await parts_.objects.GetMany(std::move(keys), wait_until, deadline);
  for (size_t n = 0; n < elsewhere.size(); ++n) {
    const size_t i = elsewhere[n];
    if (got[n].ok()) {
      objects[i] = std::move(got[n]).value();
    } else {
      reply.items[i].status = got[n].status();
    }
  }
}

asio::awaitable<Status> ReadRequests::Get(ClientRequest request) {
  auto get = proto::GetRequest::Decode(request.frame.body);
  if (!get.ok()) co_return get.status();
  ClientSession& session = *request.session;
  proto::GetReply reply;
  reply.status = session::CheckBatchSize(get->keys.size());
  std::vector<store::ObjectRef> objects;
  if (reply.status.IsOk()) {
    reply.items.resize(get->keys.size());
    objects.resize(get->keys.size());
    co_await Find(*get, objects, reply);
  }
  if (session.ended) co_return errors::Disconnected("the session ended during a get");

  // A client that reads the index is spared the way of many bytes through the socket, and the release of pins.
  uint64_t bytes = 0;
  for (const store::ObjectRef& object : objects) bytes += object ? object->size() : 0;
  const bool by_index = get->reads_index && session.shared &&
                        (bytes > kInMessageMax || objects.size() > kItemsInMessageMax);
  std::vector<std::span<const std::byte>> payload;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (!objects[i]) continue;
    proto::GetItem& item = reply.items[i];
    const auto slice = SliceOf(*get, i, objects[i]->size());
    if (!slice.ok()) {
      item.status = slice.status();
      continue;
    }
    item.size = slice->size;
    if (by_index && objects[i]->was_linked()) {
      item.here = true;
    } else if (session.shared && item.size >= parts_.inline_threshold_bytes) {
      item.pin_id = session.next_pin_id++;
      const shm::Location whole = objects[i]->location();
      item.location = {whole.segment, whole.offset + slice->offset, slice->size};
      session.pins.emplace(item.pin_id, objects[i]);
    } else {
      payload.push_back(objects[i].bytes().subspan(slice->offset, slice->size));
    }
  }
  Status sent = co_await Answer(request, SessionMessage::kGetReply, reply, std::move(payload));
  if (sent.IsError()) {
    // The client does not know of these pins, and other connections may keep its session alive.
    for (const proto::GetItem& item : reply.items) session.pins.erase(item.pin_id);
  }
  co_return sent;
}

asio::awaitable<Status> ReadRequests::Delete(ClientRequest request) {
  auto keys = proto::DeleteRequest::Decode(request.frame.body);
  if (!keys.ok()) co_return keys.status();
  proto::DeleteReply reply;
  reply.status = session::CheckBatchSize(keys->keys.size());
  if (reply.status.IsOk()) {
    const TimePoint deadline = parts_.Deadline(keys->timeout_ms);
    reply.items.resize(keys->keys.size());
    const auto remove = [&, this](size_t i) -> asio::awaitable<void> {
      Status legal = session::CheckKey(keys->keys[i]);
      if (legal.IsOk()) legal = co_await parts_.objects.Delete(keys->keys[i], deadline);
      reply.items[i] = legal;
    };
    co_await ForEachConcurrently(parts_.context, reply.items.size(), kKeysAtOnce, remove);
  }
  co_return co_await Answer(request, SessionMessage::kDeleteReply, reply);
}

asio::awaitable<Status> ReadRequests::Exist(ClientRequest request) {
  auto keys = proto::ExistRequest::Decode(request.frame.body);
  if (!keys.ok()) co_return keys.status();
  proto::ExistReply reply;
  reply.status = session::CheckBatchSize(keys->keys.size());
  for (size_t i = 0; i < keys->keys.size() && reply.status.IsOk(); ++i) {
    reply.status = session::CheckKey(keys->keys[i]);
  }
  if (reply.status.IsOk()) {
    const TimePoint deadline = parts_.Deadline(keys->timeout_ms);
    auto exists = co_await parts_.objects.Exist(std::move(keys->keys), deadline);
    if (exists.ok()) {
      reply.exists = std::move(exists).value();
    } else {
      reply.status = exists.status();
    }
  }
  co_return co_await Answer(request, SessionMessage::kExistReply, reply);
}

asio::awaitable<Status> ReadRequests::Expire(ClientRequest request) {
  auto keys = proto::ExpireRequest::Decode(request.frame.body);
  if (!keys.ok()) co_return keys.status();
  proto::ExpireReply reply;
  reply.status = session::CheckBatchSize(keys->keys.size());
  if (reply.status.IsOk()) {
    const TimePoint deadline = parts_.Deadline(keys->timeout_ms);
    const uint64_t ttl_ms = uint64_t{keys->ttl_second} * 1000;
    reply.items.resize(keys->keys.size());
    const auto expire = [&, this](size_t i) -> asio::awaitable<void> {
      Status legal = session::CheckKey(keys->keys[i]);
      if (legal.IsOk()) legal = co_await parts_.objects.Expire(keys->keys[i], ttl_ms, deadline);
      reply.items[i] = legal;
    };
    co_await ForEachConcurrently(parts_.context, reply.items.size(), kKeysAtOnce, expire);
  }
  co_return co_await Answer(request, SessionMessage::kExpireReply, reply);
}

asio::awaitable<Status> ReadRequests::Sizes(ClientRequest request) {
  auto keys = proto::SizesRequest::Decode(request.frame.body);
  if (!keys.ok()) co_return keys.status();
  proto::SizesReply reply;
  reply.status = session::CheckBatchSize(keys->keys.size());
  if (reply.status.IsOk()) {
    const TimePoint deadline = parts_.Deadline(keys->timeout_ms);
    reply.items.resize(keys->keys.size());
    std::vector<std::string> legal;
    std::vector<size_t> places;
    for (size_t i = 0; i < keys->keys.size(); ++i) {
      reply.items[i].status = session::CheckKey(keys->keys[i]);
      if (reply.items[i].status.IsError()) continue;
      legal.push_back(std::move(keys->keys[i]));
      places.push_back(i);
    }
    auto sizes = co_await parts_.objects.Sizes(std::move(legal), deadline);
    if (!sizes.ok()) {
      reply.status = sizes.status();
      reply.items.clear();
      places.clear();
    }
    for (size_t n = 0; n < places.size(); ++n) {
      const Result<uint64_t>& size = (*sizes)[n];
      reply.items[places[n]].status = size.status();
      if (size.ok()) reply.items[places[n]].size = *size;
    }
  }
  co_return co_await Answer(request, SessionMessage::kSizesReply, reply);
}

}  // namespace datasystem::worker
