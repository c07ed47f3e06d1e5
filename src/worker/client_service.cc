#include "worker/client_service.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>

#include "base/concurrently.h"
#include "base/log.h"
#include "datasystem/object/object_enum.h"
#include "session/key_rules.h"

namespace datasystem::worker {
namespace {

using proto::SessionMessage;

// A stranger gets this long, and this much, to say who it is.
constexpr auto kHandshakeTimeout = std::chrono::seconds(10);
constexpr uint32_t kHelloMax = 4096;
constexpr auto kRefusalLogInterval = std::chrono::seconds(60);
// Keys of one request that are fetched at the same time.
constexpr size_t kFetchWindow = 64;

uint16_t Type(SessionMessage message) { return static_cast<uint16_t>(message); }

proto::Location ToWire(const shm::Location& location) {
  return {location.segment, location.offset, location.size};
}

void DropBuffer(ClientSession& session, uint64_t id) {
  session.publishing.erase(id);
  const auto buffer = session.buffers.find(id);
  if (buffer == session.buffers.end()) return;
  session.buffer_bytes -= buffer->second.size();
  session.buffers.erase(buffer);
}

}  // namespace

ClientService::ClientService(asio::io_context& context, const Clock& clock, shm::CacheMemory& memory,
                             store::ObjectStore& store, ObjectService& objects,
                             ClientServiceOptions options, std::function<std::string()> report)
    : context_(context), clock_(clock), memory_(memory), store_(store), objects_(objects),
      options_(std::move(options)), report_(std::move(report)), sessions_(options_.clients_max) {}

void ClientService::Accept(session::ServerConnection::Socket socket, std::string peer, bool is_unix) {
  auto connection = std::make_shared<session::ServerConnection>(std::move(socket), std::move(peer));
  asio::co_spawn(context_, Serve(std::move(connection), is_unix), asio::detached);
}

TimePoint ClientService::Deadline(uint32_t timeout_ms) const {
  return clock_.Now() + std::min(std::chrono::milliseconds(timeout_ms), options_.request_timeout_max);
}

// Whatever reaches a port must not be able to fill the log.
void ClientService::NoteRefusal(const std::string& peer, const Status& reason) {
  ++refused_;
  if (refusal_logged_at_ != TimePoint::min() && clock_.Now() - refusal_logged_at_ < kRefusalLogInterval) {
    return;
  }
  refusal_logged_at_ = clock_.Now();
  LOG_WARNING("refused a connection (further ones are counted for a minute) peer={} reason={} refused={}",
              peer, reason.GetMsg(), refused_);
}

asio::awaitable<void> ClientService::Serve(Connection connection, bool is_unix) {
  Session session;
  bool first = false;
  Status status = co_await Handshake(connection, is_unix, session, first);
  if (status.IsError() && status.GetCode() != K_CLIENT_WORKER_DISCONNECT) {
    NoteRefusal(connection->peer(), status);
  }
  if (session && first) {
    LOG_DEBUG("client connected peer={} pid={} shared_memory={}", connection->peer(),
              session->process_id, session->shared_memory);
  }
  while (status.IsOk()) {
    auto frame = co_await connection->ReadFrame(session::kBodyMax);
    if (!frame.ok()) {
      status = frame.status();
    } else if (session->ended) {
      status = errors::Disconnected("session has ended");
    } else {
      status = co_await Dispatch(connection, session, std::move(frame).value());
    }
    if (status.GetCode() == K_INVALID) NoteRefusal(connection->peer(), status);
  }
  // The first connection is the client's sign of life.
  if (session && first) sessions_.End(*session);
  connection->Close();
}

asio::awaitable<Status> ClientService::Handshake(Connection connection, bool is_unix, Session& session,
                                                 bool& first) {
  asio::steady_timer timer(context_, kHandshakeTimeout);
  timer.async_wait([connection](asio::error_code error) {
    if (!error) connection->Close();
  });
  auto frame = co_await connection->ReadFrame(kHelloMax);
  if (!frame.ok()) co_return frame.status();
  if (frame->header.type == Type(SessionMessage::kReport) && frame->header.payload_size == 0) {
    Status reported = co_await ReplyReport(connection, frame->header.request_id);
    if (reported.IsError()) co_return reported;
    co_return errors::Disconnected("the connection was for a status report");
  }
  if (frame->header.type != Type(SessionMessage::kHello) || frame->header.payload_size != 0) {
    co_return errors::Invalid("the first message is of type {}, not a hello", frame->header.type);
  }
  auto hello = proto::Hello::Decode(frame->body);
  if (!hello.ok()) co_return hello.status();
  timer.cancel();

  proto::HelloReply reply;
  reply.worker_version = options_.worker_version;
  reply.worker_incarnation = options_.worker_incarnation;
  const bool speaks = hello->protocol_min <= proto::kSessionProtocolMax &&
                      hello->protocol_max >= proto::kSessionProtocolMin;
  const bool with_segments = is_unix && hello->want_segments && hello->session_id == 0;
  if (!speaks) {
    reply.status = errors::VersionMismatch(
        "client {} speaks protocol {} to {}, worker {} speaks {} to {}: update the older one",
        hello->client_version, hello->protocol_min, hello->protocol_max, options_.worker_version,
        proto::kSessionProtocolMin, proto::kSessionProtocolMax);
  } else {
    auto opened = hello->session_id == 0 ? sessions_.Open(hello->process_id, with_segments)
                                         : sessions_.Join(hello->session_id, hello->session_token);
    if (opened.ok()) {
      session = *opened;
      sessions_.Add(*session, connection);
      first = hello->session_id == 0;
      reply.protocol = std::min(hello->protocol_max, proto::kSessionProtocolMax);
      reply.session_id = session->id;
      reply.session_token = session->token;
      reply.inline_threshold_bytes = options_.inline_threshold_bytes;
      if (!is_unix) reply.unix_socket_path = options_.unix_socket_path;
    } else {
      reply.status = opened.status();
    }
  }
  std::vector<int> fds;
  if (session && with_segments) {
    for (const shm::SegmentHandle& segment : memory_.segments()) {
      reply.segments.push_back({segment.id, segment.size_bytes});
      fds.push_back(segment.fd);
    }
  }
  const uint64_t request_id = frame->header.request_id;
  std::string body = reply.Encode();
  Status sent;
  if (!fds.empty()) {
    sent = connection->WriteWithDescriptors(Type(SessionMessage::kHelloReply), request_id, body, fds);
  } else {
    sent = co_await connection->Write(Type(SessionMessage::kHelloReply), request_id, std::move(body), {});
  }
  if (reply.status.IsError()) co_return reply.status;
  co_return sent;
}

asio::awaitable<Status> ClientService::ReplyStatus(Connection connection, uint64_t request_id,
                                                   Status status) {
  proto::StatusReply reply;
  reply.status = std::move(status);
  std::string body = reply.Encode();
  co_return co_await connection->Write(Type(SessionMessage::kStatusReply), request_id, std::move(body), {});
}

asio::awaitable<Status> ClientService::ReplyReport(Connection connection, uint64_t request_id) {
  proto::ReportReply reply;
  reply.json = report_();
  std::string body = reply.Encode();
  co_return co_await connection->Write(Type(SessionMessage::kReportReply), request_id, std::move(body), {});
}

// An error ends the connection: only for what breaks the protocol or the stream.
asio::awaitable<Status> ClientService::Dispatch(Connection connection, Session session,
                                                session::Frame frame) {
  const auto type = static_cast<SessionMessage>(frame.header.type);
  if (frame.header.payload_size != 0 && type != SessionMessage::kSet) {
    co_return errors::Invalid("message type {} came with a payload of {} bytes", frame.header.type,
                              frame.header.payload_size);
  }
  const uint64_t request_id = frame.header.request_id;
  switch (type) {
    case SessionMessage::kSet:
      co_return co_await HandleSet(connection, session, std::move(frame));
    case SessionMessage::kCreate:
      co_return co_await HandleCreate(connection, session, std::move(frame));
    case SessionMessage::kPublish:
      co_return co_await HandlePublish(connection, session, std::move(frame));
    case SessionMessage::kGet:
      co_return co_await HandleGet(connection, session, std::move(frame));
    case SessionMessage::kDelete:
      co_return co_await HandleDelete(connection, session, std::move(frame));
    case SessionMessage::kExist:
      co_return co_await HandleExist(connection, session, std::move(frame));
    case SessionMessage::kAbandon: {
      auto abandon = proto::AbandonRequest::Decode(frame.body);
      if (!abandon.ok()) co_return abandon.status();
      for (const uint64_t id : abandon->buffer_ids) DropBuffer(*session, id);
      co_return Status::OK();
    }
    case SessionMessage::kRelease: {
      auto release = proto::ReleaseRequest::Decode(frame.body);
      if (!release.ok()) co_return release.status();
      for (const uint64_t id : release->pin_ids) session->pins.erase(id);
      co_return Status::OK();
    }
    case SessionMessage::kHealth: {
      Status serving = objects_.Serving();
      co_return co_await ReplyStatus(connection, request_id, std::move(serving));
    }
    case SessionMessage::kReport:
      co_return co_await ReplyReport(connection, request_id);
    default:
      co_return errors::Invalid("unknown message type {}", frame.header.type);
  }
}

Result<SetOptions> ClientService::CheckSetParam(const proto::SetParam& param) const {
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

asio::awaitable<Status> ClientService::HandleSet(Connection connection, Session, session::Frame frame) {
  const uint64_t request_id = frame.header.request_id;
  const uint64_t size = frame.header.payload_size;
  auto request = proto::SetRequest::Decode(frame.body);
  if (!request.ok()) co_return request.status();
  Status legal = session::CheckKey(request->key);
  if (legal.IsOk()) legal = session::CheckValueSize(size);
  auto options = CheckSetParam(request->param);
  if (legal.IsOk() && !options.ok()) legal = options.status();
  shm::Extent extent;
  if (legal.IsOk()) {
    auto allocated = store_.Allocate(size);
    if (allocated.ok()) {
      extent = std::move(allocated).value();
    } else {
      legal = allocated.status();
    }
  }
  if (legal.IsError()) {
    Status discarded = co_await connection->DiscardPayload(size);
    if (discarded.IsError()) co_return discarded;
    co_return co_await ReplyStatus(connection, request_id, std::move(legal));
  }
  Status read = co_await connection->ReadPayload(extent.bytes());
  if (read.IsError()) co_return read;
  const TimePoint deadline = Deadline(request->timeout_ms);
  SetOptions set_options = *options;
  Status set = co_await objects_.Set(std::move(request->key), extent, set_options, deadline);
  co_return co_await ReplyStatus(connection, request_id, std::move(set));
}

asio::awaitable<Status> ClientService::HandleCreate(Connection connection, Session session,
                                                    session::Frame frame) {
  auto request = proto::CreateRequest::Decode(frame.body);
  if (!request.ok()) co_return request.status();
  proto::CreateReply reply;
  reply.status = session::CheckValueSize(request->size);
  if (reply.status.IsOk() && !session->shared_memory) {
    reply.status = errors::NotSupported("this connection has no shared memory: send the value in a set");
  }
  if (reply.status.IsOk()) {
    auto extent = store_.Allocate(request->size);
    if (extent.ok()) {
      reply.buffer_id = session->next_id++;
      reply.location = ToWire(extent->location());
      session->buffer_bytes += extent->size();
      session->buffers.emplace(reply.buffer_id, std::move(extent).value());
    } else {
      reply.status = extent.status();
    }
  }
  std::string body = reply.Encode();
  Status sent = co_await connection->Write(Type(SessionMessage::kCreateReply), frame.header.request_id,
                                           std::move(body), {});
  // A client that never learns of the buffer cannot give it back.
  if (sent.IsError()) DropBuffer(*session, reply.buffer_id);
  co_return sent;
}

asio::awaitable<Status> ClientService::HandlePublish(Connection connection, Session session,
                                                     session::Frame frame) {
  auto request = proto::PublishRequest::Decode(frame.body);
  if (!request.ok()) co_return request.status();
  Status status = session::CheckKey(request->key);
  auto options = CheckSetParam(request->param);
  if (status.IsOk() && !options.ok()) status = options.status();
  const auto buffer = session->buffers.find(request->buffer_id);
  if (status.IsOk() && buffer == session->buffers.end()) {
    status = errors::Invalid("no buffer {} in this session: published or abandoned already",
                             request->buffer_id);
  }
  if (status.IsOk()) {
    shm::Extent extent = std::move(buffer->second);
    session->buffer_bytes -= extent.size();
    session->buffers.erase(buffer);
    session->publishing.insert(request->buffer_id);
    const TimePoint deadline = Deadline(request->timeout_ms);
    SetOptions set_options = *options;
    status = co_await objects_.Set(std::move(request->key), extent, set_options, deadline);
    const bool wanted = session->publishing.erase(request->buffer_id) > 0 && !session->ended;
    if (status.IsError() && wanted) {  // the client may try again
      session->buffer_bytes += extent.size();
      session->buffers.emplace(request->buffer_id, std::move(extent));
    }
  }
  co_return co_await ReplyStatus(connection, frame.header.request_id, std::move(status));
}

asio::awaitable<Status> ClientService::HandleGet(Connection connection, Session session,
                                                 session::Frame frame) {
  auto request = proto::GetRequest::Decode(frame.body);
  if (!request.ok()) co_return request.status();
  proto::GetReply reply;
  reply.status = session::CheckBatchSize(request->keys.size());
  std::vector<store::ObjectRef> objects;
  if (reply.status.IsOk()) {
    const TimePoint deadline = Deadline(request->timeout_ms);
    const TimePoint wait_until = std::min(deadline, Deadline(request->sub_timeout_ms));
    reply.items.resize(request->keys.size());
    objects.resize(request->keys.size());
    std::vector<size_t> elsewhere;
    for (size_t i = 0; i < objects.size(); ++i) {
      Status legal = session::CheckKey(request->keys[i]);
      if (legal.IsError()) {
        reply.items[i].status = legal;
        continue;
      }
      auto here = objects_.GetHere(request->keys[i]);
      if (!here.ok()) {
        reply.items[i].status = here.status();
      } else if (*here) {
        objects[i] = std::move(here).value();
      } else {
        elsewhere.push_back(i);
      }
    }
    // References into this frame: it waits until the last of them has ended.
    const auto fetch = [&, this](size_t n) -> asio::awaitable<void> {
      const size_t i = elsewhere[n];
      auto got = co_await objects_.Get(std::move(request->keys[i]), wait_until, deadline);
      if (got.ok()) {
        objects[i] = std::move(got).value();
      } else {
        reply.items[i].status = got.status();
      }
    };
    if (!elsewhere.empty()) {
      co_await ForEachConcurrently(context_, elsewhere.size(), kFetchWindow, fetch);
    }
  }

  if (session->ended) co_return errors::Disconnected("the session ended during a get");
  std::vector<std::span<const std::byte>> payload;
  for (size_t i = 0; i < objects.size(); ++i) {
    if (!objects[i]) continue;
    proto::GetItem& item = reply.items[i];
    item.size = objects[i]->size();
    if (session->shared_memory && item.size >= options_.inline_threshold_bytes) {
      item.pin_id = session->next_id++;
      item.location = ToWire(objects[i]->location());
      session->pins.emplace(item.pin_id, objects[i]);
    } else {
      payload.push_back(objects[i]->bytes());
    }
  }
  std::string body = reply.Encode();
  Status sent = co_await connection->Write(Type(SessionMessage::kGetReply), frame.header.request_id,
                                           std::move(body), std::move(payload));
  if (sent.IsError()) {
    // The client does not know of these pins, and other connections may keep its session alive.
    for (const proto::GetItem& item : reply.items) session->pins.erase(item.pin_id);
  }
  co_return sent;
}

asio::awaitable<Status> ClientService::HandleDelete(Connection connection, Session,
                                                    session::Frame frame) {
  auto request = proto::DeleteRequest::Decode(frame.body);
  if (!request.ok()) co_return request.status();
  proto::DeleteReply reply;
  reply.status = session::CheckBatchSize(request->keys.size());
  if (reply.status.IsOk()) {
    const TimePoint deadline = Deadline(request->timeout_ms);
    reply.items.resize(request->keys.size());
    const auto remove = [&, this](size_t i) -> asio::awaitable<void> {
      Status legal = session::CheckKey(request->keys[i]);
      if (legal.IsOk()) legal = co_await objects_.Delete(request->keys[i], deadline);
      reply.items[i] = legal;
    };
    co_await ForEachConcurrently(context_, reply.items.size(), kFetchWindow, remove);
  }
  std::string body = reply.Encode();
  co_return co_await connection->Write(Type(SessionMessage::kDeleteReply), frame.header.request_id,
                                       std::move(body), {});
}

asio::awaitable<Status> ClientService::HandleExist(Connection connection, Session,
                                                   session::Frame frame) {
  auto request = proto::ExistRequest::Decode(frame.body);
  if (!request.ok()) co_return request.status();
  proto::ExistReply reply;
  reply.status = session::CheckBatchSize(request->keys.size());
  for (size_t i = 0; i < request->keys.size() && reply.status.IsOk(); ++i) {
    reply.status = session::CheckKey(request->keys[i]);
  }
  if (reply.status.IsOk()) {
    const TimePoint deadline = Deadline(request->timeout_ms);
    auto exists = co_await objects_.Exist(std::move(request->keys), deadline);
    if (exists.ok()) {
      reply.exists = std::move(exists).value();
    } else {
      reply.status = exists.status();
    }
  }
  std::string body = reply.Encode();
  co_return co_await connection->Write(Type(SessionMessage::kExistReply), frame.header.request_id,
                                       std::move(body), {});
}

}  // namespace datasystem::worker
