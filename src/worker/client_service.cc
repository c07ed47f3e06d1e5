#include "worker/client_service.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/steady_timer.hpp>

#include "base/log.h"

namespace datasystem::worker {
namespace {

using proto::SessionMessage;

// A stranger gets this long, and this much, to say who it is.
constexpr auto kHandshakeTimeout = std::chrono::seconds(10);
constexpr uint32_t kHelloMax = 4096;
constexpr auto kRefusalLogInterval = std::chrono::seconds(60);

uint16_t Type(SessionMessage message) { return static_cast<uint16_t>(message); }

}  // namespace

ClientService::ClientService(asio::io_context& context, const Clock& clock, shm::CacheMemory& memory,
                             store::ObjectStore& store, shm::Index& index, ObjectService& objects,
                             session::ChannelPoller& channels, ClientServiceOptions options,
                             std::function<std::string()> report)
    : index_(index),
      channels_(channels),
      options_(std::move(options)),
      report_(std::move(report)),
      sessions_(options_.clients_max),
      parts_{.context = context,
             .clock = clock,
             .memory = memory,
             .store = store,
             .objects = objects,
             .sessions = sessions_,
             .inline_threshold_bytes = options_.inline_threshold_bytes,
             .request_timeout_max = options_.request_timeout_max} {}

void ClientService::Accept(session::ServerConnection::Socket socket, std::string peer, bool is_unix) {
  auto connection = std::make_shared<session::ServerConnection>(std::move(socket), std::move(peer));
  asio::co_spawn(parts_.context, Serve(std::move(connection), is_unix), asio::detached);
}

// Whatever reaches a port must not be able to fill the log.
void ClientService::NoteRefusal(const std::string& peer, const Status& reason) {
  ++refused_;
  if (refusal_logged_at_ != TimePoint::min() && parts_.clock.Now() - refusal_logged_at_ < kRefusalLogInterval) {
    return;
  }
  refusal_logged_at_ = parts_.clock.Now();
  LOG_WARNING("refused a connection (further ones are counted for a minute) peer={} reason={} refused={}",
              peer, reason.GetMsg(), refused_);
}

asio::awaitable<void> ClientService::Serve(Connection connection, bool is_unix) {
  Guest guest;
  Status status = co_await Handshake(connection, is_unix, guest);
  const auto& [session, first, channel] = guest;
  if (status.IsError() && status.GetCode() != K_CLIENT_WORKER_DISCONNECT) {
    NoteRefusal(connection->peer(), status);
  }
  if (session && first) {
    LOG_DEBUG("client connected peer={} pid={} shared_memory={}", connection->peer(),
              session->process_id, session->shared != nullptr);
  }
  while (status.IsOk()) {
    auto frame = co_await connection->ReadFrame(session::kBodyMax);
    if (!frame.ok()) {
      status = frame.status();
    } else if (session->ended) {
      status = errors::Disconnected("session has ended");
    } else {
      ClientRequest request{connection, session, std::move(frame).value()};
      status = co_await Dispatch(std::move(request));
    }
    if (status.GetCode() == K_INVALID) NoteRefusal(connection->peer(), status);
  }
  connection->Close();
  connection->LeaveChannel();
  if (channel != 0) session->channels.reset(channel - 1);
  // The first connection is the client's sign of life.
  if (session && first) sessions_.End(*session);
}

asio::awaitable<Status> ClientService::Handshake(Connection connection, bool is_unix, Guest& guest) {
  asio::steady_timer timer(parts_.context, kHandshakeTimeout);
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
    auto opened = OpenOrJoin(*hello, with_segments);
    if (opened.ok()) {
      guest.session = *opened;
      ClientSession& session = *guest.session;
      sessions_.Add(session, connection);
      guest.first = hello->session_id == 0;
      guest.channel = TakeChannel(*hello, is_unix, session);
      reply.channel = guest.channel;
      reply.protocol = std::min(hello->protocol_max, proto::kSessionProtocolMax);
      reply.session_id = session.id;
      reply.session_token = session.token;
      reply.inline_threshold_bytes = options_.inline_threshold_bytes;
      if (!is_unix) reply.unix_socket_path = options_.unix_socket_path;
    } else {
      reply.status = opened.status();
    }
  }
  std::vector<int> fds;
  if (guest.session && with_segments) AddSegments(*guest.session, reply, fds);
  const uint64_t request_id = frame->header.request_id;
  std::string body = reply.Encode();
  Status sent;
  if (!fds.empty()) {
    sent = connection->WriteWithDescriptors(Type(SessionMessage::kHelloReply), request_id, body, fds);
  } else {
    sent = co_await connection->Write(Type(SessionMessage::kHelloReply), request_id, std::move(body), {});
  }
  if (reply.status.IsError()) co_return reply.status;
  if (guest.channel != 0 && sent.IsOk() && !guest.session->ended) {
    connection->UseChannel(guest.session->shared->control().layout().channels[guest.channel - 1], channels_);
  }
  co_return sent;
}

uint32_t ClientService::TakeChannel(const proto::Hello& hello, bool is_unix, ClientSession& session) {
  if (!hello.want_channel || !is_unix || !session.shared || hello.session_id == 0) return 0;
  for (uint32_t i = 0; i < shm::kChannels; ++i) {
    if (session.channels[i]) continue;
    session.channels.set(i);
    shm::ChannelLayout& channel = session.shared->control().layout().channels[i];
    channel.to_worker.Reset();
    channel.to_client.Reset();
    return i + 1;
  }
  return 0;
}

Result<ClientService::Session> ClientService::OpenOrJoin(const proto::Hello& hello, bool with_segments) {
  if (hello.session_id != 0) return sessions_.Join(hello.session_id, hello.session_token);
  return sessions_.Open(hello.process_id, with_segments ? &index_.pins() : nullptr);
}

void ClientService::AddSegments(const ClientSession& session, proto::HelloReply& reply,
                                std::vector<int>& fds) const {
  const auto add = [&](uint32_t id, uint64_t size_bytes, int fd, proto::SegmentKind kind) {
    reply.segments.push_back({id, size_bytes, kind});
    fds.push_back(fd);
  };
  for (const shm::SegmentHandle& segment : parts_.memory.segments()) {
    add(segment.id, segment.size_bytes, segment.fd, proto::SegmentKind::kData);
  }
  const shm::SegmentHandle index = index_.index_segment();
  add(0, index.size_bytes, index.fd, proto::SegmentKind::kIndex);
  const shm::SegmentHandle marks = index_.marks_segment();
  add(0, marks.size_bytes, marks.fd, proto::SegmentKind::kMarks);
  const shm::ControlSegment& control = session.shared->control();
  add(0, control.size_bytes(), control.fd(), proto::SegmentKind::kControl);
}

asio::awaitable<Status> ClientService::ReplyHealth(ClientRequest request) {
  proto::StatusReply reply;
  reply.status = parts_.objects.Serving();
  co_return co_await Answer(request, SessionMessage::kStatusReply, reply);
}

asio::awaitable<Status> ClientService::ReplyReport(Connection connection, uint64_t request_id) {
  proto::ReportReply reply;
  reply.json = report_();
  std::string body = reply.Encode();
  co_return co_await connection->Write(Type(SessionMessage::kReportReply), request_id, std::move(body), {});
}

// An error ends the connection: only for what breaks the protocol or the stream.
asio::awaitable<Status> ClientService::Dispatch(ClientRequest request) {
  const session::FrameHeader& header = request.frame.header;
  const auto type = static_cast<SessionMessage>(header.type);
  if (header.payload_size != 0 && type != SessionMessage::kSet) {
    co_return errors::Invalid("message type {} came with a payload of {} bytes", header.type,
                              header.payload_size);
  }
  switch (type) {
    case SessionMessage::kSet:
      co_return co_await writes_.Set(std::move(request));
    case SessionMessage::kCreate:
      co_return co_await writes_.Create(std::move(request));
    case SessionMessage::kAbandon:
      co_return writes_.Abandon(request);
    case SessionMessage::kGet:
      co_return co_await reads_.Get(std::move(request));
    case SessionMessage::kRelease:
      co_return reads_.Release(request);
    case SessionMessage::kDelete:
      co_return co_await reads_.Delete(std::move(request));
    case SessionMessage::kExist:
      co_return co_await reads_.Exist(std::move(request));
    case SessionMessage::kExpire:
      co_return co_await reads_.Expire(std::move(request));
    case SessionMessage::kSizes:
      co_return co_await reads_.Sizes(std::move(request));
    case SessionMessage::kHealth:
      co_return co_await ReplyHealth(std::move(request));
    case SessionMessage::kReport:
      co_return co_await ReplyReport(request.connection, header.request_id);
    default:
      co_return errors::Invalid("unknown message type {}", header.type);
  }
}

}  // namespace datasystem::worker
