#include "client/session.h"

#include <algorithm>

#include "client/handshake.h"

namespace datasystem::client {
namespace {

using proto::SessionMessage;

// For telling the worker what was given up: small frames into a socket that is almost always empty.
constexpr std::chrono::milliseconds kGiveUpTimeout{1000};
// The end of a session is noticed at the latest by the call that it breaks off.
constexpr std::chrono::milliseconds kBelievedAlive{1};
// Ids in one message, below what a reader accepts.
constexpr size_t kIdsMax = 10000;

template <typename Request>
Status SendIds(Connection& connection, SessionMessage type, const std::vector<uint64_t>& ids,
               const Deadline& deadline) {
  for (size_t i = 0; i < ids.size(); i += kIdsMax) {
    const size_t end = std::min(ids.size(), i + kIdsMax);
    const Request request{{ids.begin() + i, ids.begin() + end}};
    RETURN_IF_ERROR(connection.Send(type, request.Encode(), {}, deadline));
  }
  return Status::OK();
}

}  // namespace

Session::Session(const SocketAddress& worker, std::unique_ptr<Connection> lifeline,
                 const proto::HelloReply& greeting)
    : process_id_(ThisProcess()),
      worker_address_(worker),
      socket_path_(greeting.segments.empty() ? "" : greeting.unix_socket_path),
      id_(greeting.session_id),
      token_(greeting.session_token),
      inline_threshold_bytes_(greeting.inline_threshold_bytes),
      lifeline_(std::move(lifeline)) {}

Session::~Session() {
  if (OfThisProcess()) lifeline_->End();
}

Result<std::shared_ptr<Session>> Session::Open(const SocketAddress& worker,
                                               const Deadline& deadline) {
  ASSIGN_OR_RETURN(std::unique_ptr<Connection> tcp, Connection::ConnectTcp(worker, deadline));
  ASSIGN_OR_RETURN(proto::HelloReply greeting, ShakeHands(*tcp, {}, deadline));
  if (!greeting.unix_socket_path.empty()) {
    auto local = Connection::ConnectUnix(greeting.unix_socket_path, worker.ToString(), deadline);
    // Another node or container has no such socket: then values travel over TCP.
    if (local.ok()) {
      // First, because a worker counts sessions, and this one must not stand in the next one's way.
      tcp.reset();
      ASSIGN_OR_RETURN(std::shared_ptr<Session> shared,
                       OpenShared(worker, greeting, std::move(*local), deadline));
      if (shared != nullptr) return shared;
      ASSIGN_OR_RETURN(tcp, Connection::ConnectTcp(worker, deadline));
      ASSIGN_OR_RETURN(greeting, ShakeHands(*tcp, {}, deadline));
    }
  }
  greeting.segments.clear();  // no use without descriptors
  return std::shared_ptr<Session>(new Session(worker, std::move(tcp), greeting));
}

Result<std::shared_ptr<Session>> Session::OpenShared(const SocketAddress& worker,
                                                     const proto::HelloReply& tcp,
                                                     std::unique_ptr<Connection> connection,
                                                     const Deadline& deadline) {
  std::vector<UniqueFd> fds;
  ASSIGN_OR_RETURN(proto::HelloReply greeting, ShakeHands(*connection, {}, deadline, &fds));
  // The path exists here too, but belongs to a worker of this node, and ours is elsewhere.
  if (greeting.worker_incarnation != tcp.worker_incarnation) return std::shared_ptr<Session>();
  if (greeting.segments.empty()) return std::shared_ptr<Session>();
  greeting.unix_socket_path = tcp.unix_socket_path;
  std::shared_ptr<Session> session(new Session(worker, std::move(connection), greeting));
  RETURN_IF_ERROR(session->MapSegments(greeting, fds));
  return session;
}

Status Session::MapSegments(const proto::HelloReply& greeting, const std::vector<UniqueFd>& fds) {
  using proto::SegmentKind;
  std::optional<shm::MappedSegment> index, marks, control;
  for (size_t i = 0; i < fds.size(); ++i) {
    const proto::SegmentInfo& segment = greeting.segments[i];
    auto memory = segment.kind == SegmentKind::kIndex
                      ? shm::MappedSegment::MapForReading(fds[i], segment.size_bytes)
                      : shm::MappedSegment::Map(fds[i], segment.size_bytes);
    if (!memory.ok()) {
      return errors::Runtime("cannot map segment {} of worker {}: {}", segment.id, worker(),
                             memory.status().GetMsg());
    }
    if (segment.kind == SegmentKind::kData) {
      segments_.push_back({segment.id, std::move(*memory)});
      continue;
    }
    if (segment.kind != SegmentKind::kIndex && segment.kind != SegmentKind::kMarks &&
        segment.kind != SegmentKind::kControl) {
      return errors::Runtime(
          "worker {} gave a segment of kind {}, which this client does not know: update it",
          worker(), static_cast<uint32_t>(segment.kind));
    }
    auto& place = segment.kind == SegmentKind::kIndex   ? index
                  : segment.kind == SegmentKind::kMarks ? marks
                                                        : control;
    if (place) {
      return errors::Runtime("worker {} gave two segments of kind {}", worker(),
                             static_cast<uint32_t>(segment.kind));
    }
    place.emplace(std::move(*memory));
  }
  if (!index || !marks || !control) return Status::OK();
  shm::IndexReader::Segments parts{.index = std::move(*index),
                                   .marks = std::move(*marks),
                                   .control = std::move(*control),
                                   .data = {}};
  for (const Segment& segment : segments_)
    parts.data.emplace_back(segment.id, segment.memory.bytes());
  auto reader = shm::IndexReader::Attach(std::move(parts));
  if (!reader.ok()) {
    return errors::Runtime("the index of worker {} cannot be read: {}", worker(),
                           reader.status().GetMsg());
  }
  index_ = std::move(*reader);
  return Status::OK();
}

bool Session::Alive() const {
  const TimePoint now = Clock::Steady().Now();
  const TimePoint seen = seen_alive_.load(std::memory_order_relaxed);
  if (seen != TimePoint::min() && now - seen < kBelievedAlive) return true;
  if (lifeline_->ClosedByWorker()) return false;
  seen_alive_.store(now, std::memory_order_relaxed);
  return true;
}

Result<std::span<std::byte>> Session::Resolve(const proto::Location& location) const {
  for (const Segment& segment : segments_) {
    if (segment.id != location.segment) continue;
    ASSIGN_OR_RETURN(const auto bytes, segment.memory.At(location.offset, location.size));
    segment.memory.Touch(bytes);
    return bytes;
  }
  return errors::OutOfRange("there is no segment {}", location.segment);
}

void Session::Touch(std::span<const std::byte> bytes) const {
  for (const Segment& segment : segments_) {
    const std::span<const std::byte> all = segment.memory.bytes();
    if (bytes.data() >= all.data() && bytes.data() < all.data() + all.size()) segment.memory.Touch(bytes);
  }
}

Result<std::unique_ptr<Connection>> Session::Join(const Deadline& deadline) const {
  ASSIGN_OR_RETURN(auto connection,
                   socket_path_.empty()
                       ? Connection::ConnectTcp(worker_address_, deadline)
                       : Connection::ConnectUnix(socket_path_, worker(), deadline));
  const proto::Hello hello{
      .session_id = id_, .session_token = token_, .want_channel = index_ != nullptr};
  ASSIGN_OR_RETURN(const proto::HelloReply reply, ShakeHands(*connection, hello, deadline));
  if (reply.channel > shm::kChannels || (reply.channel != 0 && index_ == nullptr)) {
    return connection->ProtocolError(fmt::format("there is no channel {}", reply.channel));
  }
  if (reply.channel != 0) connection->UseChannel(index_->channel(reply.channel - 1));
  return connection;
}

std::unique_ptr<Connection> Session::TakeIdle() {
  if (idle_.empty()) return nullptr;
  // The last returned is the warmest.
  std::unique_ptr<Connection> connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

Result<Session::Lease> Session::Acquire(const Deadline& deadline) {
  {
    std::unique_lock lock(mutex_);
    const bool free = returned_.wait_until(
        lock, deadline.at(), [this] { return !idle_.empty() || open_ < kConnectionsMax; });
    if (!free) {
      return errors::DeadlineExceeded("all {} connections to worker {} were busy for {} ms",
                                      kConnectionsMax, worker(), deadline.timeout().count());
    }
    if (auto connection = TakeIdle()) return Lease(this, std::move(connection));
    ++open_;  // the place of the one that is made below
  }
  auto connection = Join(deadline);
  if (connection.ok()) return Lease(this, std::move(*connection));
  {
    std::lock_guard lock(mutex_);
    --open_;
  }
  returned_.notify_one();
  return connection.status();
}

void Session::Return(std::unique_ptr<Connection> connection) {
  for (;;) {
    Claims due;
    {
      std::lock_guard lock(mutex_);
      if (!connection->usable()) break;
      if (given_up_.empty()) {
        idle_.push_back(std::move(connection));
        break;
      }
      due = std::exchange(given_up_, {});
    }
    if (SendGivenUp(*connection, due).IsOk()) continue;
    // Some may arrive twice; the worker ignores ids that it does not know.
    std::lock_guard lock(mutex_);
    given_up_.pin_ids.insert(given_up_.pin_ids.end(), due.pin_ids.begin(), due.pin_ids.end());
    given_up_.buffer_ids.insert(given_up_.buffer_ids.end(), due.buffer_ids.begin(),
                                due.buffer_ids.end());
    break;
  }
  if (connection != nullptr) {
    // A late answer may still come in, or the worker broke the protocol: of no use any more.
    std::lock_guard lock(mutex_);
    --open_;
  }
  returned_.notify_one();
}

Status Session::SendGivenUp(Connection& connection, const Claims& claims) {
  const Deadline deadline(kGiveUpTimeout);
  RETURN_IF_ERROR(SendIds<proto::ReleaseRequest>(connection, SessionMessage::kRelease,
                                                 claims.pin_ids, deadline));
  return SendIds<proto::AbandonRequest>(connection, SessionMessage::kAbandon, claims.buffer_ids,
                                        deadline);
}

void Session::GiveUp(proto::SessionMessage kind, uint64_t id) {
  if (!OfThisProcess()) return;  // the parent's claim
  std::unique_ptr<Connection> connection;
  {
    std::lock_guard lock(mutex_);
    (kind == SessionMessage::kRelease ? given_up_.pin_ids : given_up_.buffer_ids).push_back(id);
    connection = TakeIdle();
    // Those under way tell the worker when they are done.
    if (connection == nullptr && open_ > 0) return;
  }
  if (connection != nullptr) return Return(std::move(connection));
  if (!Alive()) return;  // so is the claim
  // Late answers have used up all connections: a new one is made, which tells the worker on its
  // return.
  (void)Acquire(Deadline(kGiveUpTimeout));
}

}  // namespace datasystem::client
