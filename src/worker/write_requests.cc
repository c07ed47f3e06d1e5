#include "worker/write_requests.h"

#include <unordered_set>

#include "base/concurrently.h"
#include "datasystem/object/object_enum.h"
#include "session/key_rules.h"
#include "worker/allocate.h"

namespace datasystem::worker {
namespace {

using proto::SessionMessage;

constexpr size_t kAllOrNothingMax = 8;
// Leases must not stand in the way of values: none is granted when less than a quarter of the memory is
// free, one is a 32nd of the memory at most, all together are an eighth.
constexpr uint64_t kFreeForLeases = 4;
constexpr uint64_t kLeaseShare = 32;
constexpr uint64_t kLeasesShare = 8;

// Bytes of the payload; kInvalid when they do not add up to it.
Status CheckPayload(const proto::SetRequest& request, uint64_t payload_size) {
  uint64_t left = payload_size;
  for (const proto::SetItem& item : request.items) {
    if (item.buffer_id != 0) continue;
    if (item.size > left) {
      return errors::Invalid("the values of a set are larger than its payload of {} bytes", payload_size);
    }
    left -= item.size;
  }
  if (left > 0) return errors::Invalid("a set came with {} bytes that belong to no value", left);
  return Status::OK();
}

}  // namespace

WriteRequests::WriteRequests(const ClientRequestParts& parts)
    : parts_(parts), memory_bytes_(parts.memory.usage().size_bytes) {}

Status WriteRequests::Abandon(const ClientRequest& request) {
  ASSIGN_OR_RETURN(const proto::AbandonRequest abandon, proto::AbandonRequest::Decode(request.frame.body));
  for (const uint64_t id : abandon.buffer_ids) request.session->buffers.Drop(id);
  return Status::OK();
}

asio::awaitable<Status> WriteRequests::Create(ClientRequest request) {
  auto create = proto::CreateRequest::Decode(request.frame.body);
  if (!create.ok()) co_return create.status();
  ClientSession& session = *request.session;
  proto::CreateReply reply;
  reply.status = session::CheckBatchSize(create->sizes.size());
  if (reply.status.IsOk() && !session.shared) {
    reply.status = errors::NotSupported("this connection has no shared memory: send the value in a set");
  }
  for (size_t i = 0; reply.status.IsOk() && i < create->sizes.size(); ++i) {
    proto::CreateItem& item = reply.items.emplace_back();
    item.status = session::CheckValueSize(create->sizes[i]);
    if (item.status.IsError()) continue;
    auto extent = co_await AllocateInSteps(parts_.context, parts_.store, create->sizes[i]);
    if (!extent.ok()) {
      item.status = extent.status();
      continue;
    }
    item.location = ToWire(extent->location());
    item.buffer_id = session.buffers.Add(std::move(extent).value());
  }
  Status sent = co_await Answer(request, SessionMessage::kCreateReply, reply);
  if (sent.IsError()) {
    // A client that never learns of a buffer cannot give it back.
    for (const proto::CreateItem& item : reply.items) session.buffers.Drop(item.buffer_id);
  }
  co_return sent;
}

Result<SetOptions> WriteRequests::CheckParam(const proto::SetParam& param) const {
  if (param.write_mode > static_cast<uint32_t>(WriteMode::WRITE_BACK_L2_CACHE_EVICT)) {
    return errors::Invalid("unknown write mode {}", param.write_mode);
  }
  if (param.existence > static_cast<uint32_t>(ExistenceOpt::NX)) {
    return errors::Invalid("unknown existence option {}", param.existence);
  }
  SetOptions options;
  options.evictable = param.write_mode >= static_cast<uint32_t>(WriteMode::NONE_L2_CACHE_EVICT);
  options.only_if_absent = param.existence == static_cast<uint32_t>(ExistenceOpt::NX);
  options.ttl_ms = uint64_t{param.ttl_second} * 1000;
  return options;
}

Status WriteRequests::CheckBatch(const proto::SetRequest& request) const {
  RETURN_IF_ERROR(session::CheckBatchSize(request.items.size()));
  if (!request.all_or_nothing) return Status::OK();
  if (request.items.size() > kAllOrNothingMax) {
    return errors::Invalid("The objectKeys size exceed {}.", kAllOrNothingMax);
  }
  if (request.param.existence != static_cast<uint32_t>(ExistenceOpt::NX)) {
    return errors::Invalid("setting all keys or none is for keys that do not exist: it needs NX");
  }
  return Status::OK();
}

Result<WriteRequests::Value> WriteRequests::TakeBuffer(ClientSession& session, const proto::SetItem& item) {
  auto taken = session.buffers.Take(item.buffer_id);
  if (!taken) {
    return errors::Invalid("no buffer {} in this session: published or abandoned already", item.buffer_id);
  }
  if (item.size > taken->size()) {
    const uint64_t size = taken->size();
    session.buffers.Return(item.buffer_id, std::move(*taken));
    return errors::Invalid("buffer {} has {} bytes, less than the {} of its value", item.buffer_id, size,
                           item.size);
  }
  parts_.memory.Trim(*taken, item.size);
  Value value;
  value.extent = std::move(*taken);
  value.buffer_id = item.buffer_id;
  return value;
}

// An outcome for each item that has no value to be set, and the value of each other. References into the frame of
// Set(), which waits for the end. An error is one of the stream.
asio::awaitable<Status> WriteRequests::ReceiveValues(const ClientRequest& request, const proto::SetRequest& set,
                                                     std::vector<Value>& values, std::vector<Status>& outcomes) {
  std::unordered_set<std::string_view> seen;
  for (size_t i = 0; i < values.size(); ++i) {
    const proto::SetItem& item = set.items[i];
    Status& outcome = outcomes[i];
    outcome = session::CheckKey(item.key);
    if (outcome.IsOk()) outcome = session::CheckValueSize(item.size);
    if (outcome.IsOk() && values.size() > 1 && !seen.insert(item.key).second) {
      outcome = Status(K_DUPLICATED, "key " + item.key + " occurs twice");
    }
    if (item.buffer_id != 0) {
      if (outcome.IsError()) continue;
      auto taken = TakeBuffer(*request.session, item);
      outcome = taken.status();
      if (taken.ok()) values[i] = std::move(taken).value();
      continue;
    }
    if (outcome.IsOk()) {
      auto extent = co_await AllocateInSteps(parts_.context, parts_.store, item.size);
      outcome = extent.status();
      if (extent.ok()) values[i].extent = std::move(extent).value();
    }
    Status read;
    if (outcome.IsOk()) {
      read = co_await request.connection->ReadPayload(values[i].extent.bytes());
    } else {
      read = co_await request.connection->DiscardPayload(item.size);
    }
    if (read.IsError()) co_return read;
  }
  co_return Status::OK();
}

asio::awaitable<Status> WriteRequests::Set(ClientRequest request) {
  const uint64_t payload_size = request.frame.header.payload_size;
  auto set = proto::SetRequest::Decode(request.frame.body);
  if (!set.ok()) co_return set.status();
  Status adds_up = CheckPayload(*set, payload_size);
  if (adds_up.IsError()) co_return adds_up;

  proto::SetReply reply;
  reply.status = CheckBatch(*set);
  auto options = CheckParam(set->param);
  if (reply.status.IsOk() && !options.ok()) reply.status = options.status();
  if (reply.status.IsError()) {
    Status discarded = co_await request.connection->DiscardPayload(payload_size);
    if (discarded.IsError()) co_return discarded;
    co_return co_await Answer(request, SessionMessage::kSetReply, reply);
  }

  ClientSession& session = *request.session;
  std::vector<Value> values(set->items.size());
  reply.items.resize(values.size());
  Status received = co_await ReceiveValues(request, *set, values, reply.items);
  if (received.IsError()) {
    for (const Value& value : values) session.buffers.Drop(value.buffer_id);
    co_return received;
  }
  const TimePoint deadline = parts_.Deadline(set->timeout_ms);
  const SetOptions set_options = *options;
  if (set->all_or_nothing) {
    reply.status = co_await SetAll(*set, values, set_options, deadline, reply.items);
    if (reply.status.IsError()) reply.items.clear();
  } else {
    co_await SetEach(*set, values, set_options, deadline, reply.items);
  }
  for (Value& value : values) {
    if (value.buffer_id == 0) continue;
    if (value.extent.valid()) {  // the client may try again
      session.buffers.Return(value.buffer_id, std::move(value.extent));
    } else {
      session.buffers.Settle(value.buffer_id);
    }
  }
  if (set->lease_size != 0 && !session.ended) GrantLease(session, set->lease_size, reply);
  co_return co_await Answer(request, SessionMessage::kSetReply, reply);
}

// As above.
asio::awaitable<void> WriteRequests::SetEach(proto::SetRequest& request, std::vector<Value>& values,
                                             SetOptions options, TimePoint deadline,
                                             std::vector<Status>& outcomes) {
  const auto set = [&, this](size_t i) -> asio::awaitable<void> {
    if (outcomes[i].IsError()) co_return;
    outcomes[i] = co_await parts_.objects.Set(std::move(request.items[i].key), values[i].extent, options, deadline);
  };
  co_await ForEachConcurrently(parts_.context, values.size(), kKeysAtOnce, set);
}

asio::awaitable<Status> WriteRequests::SetAll(proto::SetRequest& request, std::vector<Value>& values,
                                              SetOptions options, TimePoint deadline,
                                              std::vector<Status>& outcomes) {
  for (const Status& outcome : outcomes) {
    if (outcome.IsError()) co_return outcome;
  }
  std::vector<std::string> keys;
  std::vector<shm::Extent> extents;
  for (size_t i = 0; i < values.size(); ++i) {
    keys.push_back(std::move(request.items[i].key));
    extents.push_back(std::move(values[i].extent));
  }
  Status set = co_await parts_.objects.SetAll(std::move(keys), extents, options, deadline);
  for (size_t i = 0; i < values.size(); ++i) values[i].extent = std::move(extents[i]);
  co_return set;
}

void WriteRequests::GrantLease(ClientSession& session, uint64_t size, proto::SetReply& reply) {
  if (!session.shared || size < shm::kLeaseBytesMin || size > memory_bytes_ / kLeaseShare) return;
  const ClientMemory& clients = parts_.sessions.memory();
  if (clients.leased_bytes + size > memory_bytes_ / kLeasesShare) return;
  const uint64_t in_use = parts_.store.stats().object_bytes + clients.buffer_bytes + clients.leased_bytes;
  if (in_use + size > memory_bytes_ - memory_bytes_ / kFreeForLeases) return;
  auto extent = parts_.memory.Allocate(size);  // never at the cost of a value
  if (!extent.ok()) return;
  if (const auto lease = session.buffers.AddLease(*extent, parts_.clock.Now())) reply.lease = *lease;
}

}  // namespace datasystem::worker
