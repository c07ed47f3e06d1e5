// Waiting: for the start of an answer first by looking again and again (base/spin_budget.h), as most
// take less time than waking up. Then the socket, which is in blocking mode with a receive time-out
// of kSlice. Each time the slice runs out the deadline is looked at; what is left below a slice is
// waited for with poll.
#include "client/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "client/process.h"
#include "shm/fd_passing.h"

namespace datasystem::client {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSlice{100};
constexpr std::chrono::microseconds kSpinMax{50};
// Holds a usual answer whole, and whatever comes through a channel; grows for batches and shrinks again.
constexpr size_t kBufferSize = shm::RingLayout::kCapacity;
// Between two looks at the socket: about 2 us.
constexpr int kLooksPerRound = 50;
// From here on the copy out of the buffer costs more than the calls that it saves.
constexpr size_t kReadDirectMin = 8 << 10;

void SetTimeout(int socket, int option, milliseconds timeout) {
  const timeval value{.tv_sec = timeout.count() / 1000, .tv_usec = timeout.count() % 1000 * 1000};
  ::setsockopt(socket, SOL_SOCKET, option, &value, sizeof(value));
}

int PollTimeout(milliseconds left) {
  return static_cast<int>(std::min<int64_t>(left.count(), INT_MAX));
}

// Sends what is left of `parts` without waiting; drops what went. -1 and errno as sendmsg.
ssize_t SendParts(int socket, std::span<iovec>& parts) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = std::min<size_t>(parts.size(), IOV_MAX);
  const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  for (size_t left = sent > 0 ? static_cast<size_t>(sent) : 0; left > 0 && !parts.empty();) {
    iovec& part = parts.front();
    const size_t taken = std::min(left, part.iov_len);
    part.iov_base = static_cast<char*>(part.iov_base) + taken;
    part.iov_len -= taken;
    left -= taken;
    if (part.iov_len == 0) parts = parts.subspan(1);
  }
  while (!parts.empty() && parts.front().iov_len == 0) parts = parts.subspan(1);
  return sent;
}

}  // namespace

Connection::Connection(UniqueFd socket, std::string worker)
    : socket_(std::move(socket)),
      worker_(std::move(worker)),
      buffer_(kBufferSize),
      spin_(CoresOfThisProcess() > 1 ? kSpinMax : std::chrono::microseconds(0)) {}

Result<std::unique_ptr<Connection>> Connection::Connect(int family, const void* address,
                                                        unsigned length, const std::string& place,
                                                        std::string worker,
                                                        const Deadline& deadline) {
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errors::FromErrno(errno, "making a socket");
  // Bounds connect(); sends never block in the kernel.
  SetTimeout(socket.get(), SO_SNDTIMEO, std::max(deadline.remaining(), milliseconds(1)));
  int result = 0;
  do {
    result = ::connect(socket.get(), static_cast<const sockaddr*>(address), length);
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno != EISCONN) {
    if (errno == EINPROGRESS || errno == EAGAIN || errno == EALREADY) {
      return errors::Unavailable("no connection to worker {} ({}) within {} ms", worker, place,
                                 deadline.timeout().count());
    }
    return errors::Unavailable("cannot connect to worker {} ({}): {}; is a worker running there?",
                               worker, place, ::strerror(errno));
  }
  SetTimeout(socket.get(), SO_RCVTIMEO, kSlice);
  if (family != AF_UNIX) {
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return std::unique_ptr<Connection>(new Connection(std::move(socket), std::move(worker)));
}

Result<std::unique_ptr<Connection>> Connection::ConnectTcp(const SocketAddress& worker,
                                                           const Deadline& deadline) {
  sockaddr_storage address;
  const socklen_t length = worker.ToSockaddr(address);
  return Connect(address.ss_family, &address, length, "TCP", worker.ToString(), deadline);
}

Result<std::unique_ptr<Connection>> Connection::ConnectUnix(const std::string& path,
                                                            std::string worker,
                                                            const Deadline& deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return errors::Unavailable("socket path {} of worker {} is longer than {} bytes", path, worker,
                               sizeof(address.sun_path) - 1);
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return Connect(AF_UNIX, &address, sizeof(address), path, std::move(worker), deadline);
}

Status Connection::TimedOut(const Deadline& deadline) {
  step_ = Step::kTimedOut;
  return errors::DeadlineExceeded("worker {} did not answer within {} ms", worker_,
                                  deadline.timeout().count());
}

Status Connection::Closed(int error_number) {
  step_ = Step::kBroken;
  return errors::Disconnected("worker {} closed the connection during the call{}{}", worker_,
                              error_number == 0 ? "" : ": ",
                              error_number == 0 ? "" : ::strerror(error_number));
}

Status Connection::ProtocolError(std::string_view reason) {
  step_ = Step::kBroken;
  return errors::Runtime("worker {} does not keep to the protocol: {}", worker_, reason);
}

Status Connection::Wait(short events, const Deadline& deadline) {
  pollfd wait{.fd = socket_.get(), .events = events, .revents = 0};
  for (;;) {
    const milliseconds left = deadline.remaining();
    if (left == milliseconds(0)) return TimedOut(deadline);
    const int ready = ::poll(&wait, 1, PollTimeout(left));
    if (ready > 0) return Status::OK();
    if (ready < 0 && errno != EINTR) return Closed(errno);
  }
}

void Connection::UseChannel(shm::ChannelLayout& channel) { channel_.emplace(channel); }

Status Connection::Send(proto::SessionMessage type, std::string_view body, Payload payload,
                        const Deadline& deadline, Way way) {
  DCHECK(usable());
  if (body.size() > session::kBodyMax) {
    return errors::Invalid("the request has {} bytes besides values, the limit is {}", body.size(),
                           session::kBodyMax);
  }
  uint64_t payload_size = 0;
  for (const std::span<const std::byte> part : payload) payload_size += part.size();
  auto header = session::EncodeFrameHeader({.type = static_cast<uint16_t>(type),
                                            .request_id = ++request_id_,
                                            .body_size = static_cast<uint32_t>(body.size()),
                                            .payload_size = payload_size});
  std::array<iovec, 3> few;  // most messages need no more
  std::vector<iovec> many;
  if (payload.size() > 1) many.resize(2 + payload.size());
  std::span<iovec> parts =
      many.empty() ? std::span(few).first(2 + payload.size()) : std::span(many);
  parts[0] = {header.data(), header.size()};
  parts[1] = {const_cast<char*>(body.data()), body.size()};
  for (size_t i = 0; i < payload.size(); ++i) {
    parts[2 + i] = {const_cast<std::byte*>(payload[i].data()), payload[i].size()};
  }
  if (way == Way::kFastest && SendByChannel(parts)) parts = {};
  while (!parts.empty()) {
    if (SendParts(socket_.get(), parts) >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Closed(errno);
    RETURN_IF_ERROR(Wait(POLLOUT, deadline));
  }
  const bool answered =
      type != proto::SessionMessage::kAbandon && type != proto::SessionMessage::kRelease;
  if (answered) step_ = Step::kAwaitingReply;
  return Status::OK();
}

bool Connection::SendByChannel(std::span<const iovec> parts) {
  if (!channel_) return false;
  std::array<std::span<const std::byte>, 8> few;
  if (parts.size() > few.size()) return false;
  std::ranges::transform(parts, few.begin(), [](const iovec& part) {
    return std::span(static_cast<const std::byte*>(part.iov_base), part.iov_len);
  });
  bool wake = false;
  if (!channel_->out.Write(std::span(few).first(parts.size()), wake)) return false;
  // If it does not fit, the worker has unread bytes and wakes up anyway; an error shows in the answer.
  if (wake) (void)::send(socket_.get(), &session::kWakeByte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  return true;
}

Result<size_t> Connection::TakeFromChannel(std::span<std::byte> to) {
  const std::optional<size_t> available = channel_->in.Available();
  if (!available || *available > to.size()) return ProtocolError("its channel is out of order");
  by_channel_ = *available > 0;
  channel_->in.Read(to.first(*available));
  return *available;
}

// 0: nothing came.
Result<size_t> Connection::LookAround(std::span<std::byte> to) {
  for (int look = 0; channel_ && look < kLooksPerRound; ++look) {
    if (channel_->in.HasBytes()) return TakeFromChannel(to);
    CpuPause();
  }
  const ssize_t count = ::recv(socket_.get(), to.data(), to.size(), MSG_DONTWAIT);
  if (count == 0) return Closed(0);
  if (count > 0) return static_cast<size_t>(count);
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return Closed(errno);
  return size_t{0};
}

// 0: nothing came while it was worth looking.
Result<size_t> Connection::Spin(std::span<std::byte> to) {
  while (spin_.Spinning()) {
    ASSIGN_OR_RETURN(const size_t count, LookAround(to));
    if (count > 0) return count;
    spin_.Yield();  // the worker may be waiting for this very core
  }
  return size_t{0};
}

// The first bytes of an answer, from where it comes; wake bytes in front of it are passed over.
Status Connection::FillFirst(const Deadline& deadline) {
  by_channel_ = false;
  if (channel_) channel_->in.SayAwake();
  spin_.Begin();
  ASSIGN_OR_RETURN(end_, Spin(buffer_));
  for (;;) {
    size_t wakes = 0;
    while (wakes < end_ && buffer_[wakes] == session::kWakeByte) ++wakes;
    end_ -= wakes;
    if (wakes > 0) std::memmove(buffer_.data(), buffer_.data() + wakes, end_);
    if (end_ > 0) break;
    if (channel_) {
      channel_->in.SayAsleep();
      if (channel_->in.HasBytes()) {
        channel_->in.SayAwake();
        ASSIGN_OR_RETURN(end_, TakeFromChannel(buffer_));
        continue;
      }
    }
    ASSIGN_OR_RETURN(end_, ReceiveSome(buffer_, deadline));
  }
  spin_.Found();
  return Status::OK();
}

Result<size_t> Connection::ReceiveSome(std::span<std::byte> to, const Deadline& deadline) {
  for (;;) {
    if (deadline.remaining() < kSlice) RETURN_IF_ERROR(Wait(POLLIN, deadline));
    const ssize_t count = ::recv(socket_.get(), to.data(), to.size(), 0);
    if (count > 0) return static_cast<size_t>(count);
    if (count == 0) return Closed(0);
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return Closed(errno);
  }
}

Status Connection::Fill(size_t wanted, const Deadline& deadline) {
  if (wanted > buffer_.size()) buffer_.resize(wanted);
  if (end_ == 0) RETURN_IF_ERROR(FillFirst(deadline));
  if (end_ < wanted && by_channel_) return ProtocolError("an answer in the channel is not whole");
  while (end_ < wanted) {
    ASSIGN_OR_RETURN(const size_t count, ReceiveSome(std::span(buffer_).subspan(end_), deadline));
    end_ += count;
  }
  return Status::OK();
}

Result<Connection::Reply> Connection::ReadReply(proto::SessionMessage expected,
                                                const Deadline& deadline) {
  RETURN_IF_ERROR(Fill(session::kFrameHeaderSize, deadline));
  auto decoded = session::DecodeFrameHeader(std::span<const std::byte, session::kFrameHeaderSize>(
      buffer_.data(), session::kFrameHeaderSize));
  if (!decoded.ok()) return ProtocolError(decoded.status().GetMsg());
  const session::FrameHeader& header = *decoded;
  if (header.request_id != request_id_) {
    return ProtocolError(
        fmt::format("an answer to request {} came to request {}", header.request_id, request_id_));
  }
  begin_ = session::kFrameHeaderSize + header.body_size;
  RETURN_IF_ERROR(Fill(begin_, deadline));
  if (end_ - begin_ > header.payload_size) return ProtocolError("bytes follow the answer");
  if (by_channel_ && end_ - begin_ < header.payload_size) {
    return ProtocolError("an answer in the channel is not whole");
  }

  const std::string_view body(
      reinterpret_cast<const char*>(buffer_.data()) + session::kFrameHeaderSize, header.body_size);
  payload_left_ = header.payload_size;
  step_ = payload_left_ > 0 ? Step::kTakingPayload : Step::kIdle;
  const auto type = static_cast<proto::SessionMessage>(header.type);
  if (type == expected) return Reply{body, header.payload_size};
  if (type != proto::SessionMessage::kStatusReply || header.payload_size != 0) {
    return ProtocolError(fmt::format("an answer of type {} came instead of {}", header.type,
                                     static_cast<uint16_t>(expected)));
  }
  auto refusal = proto::StatusReply::Decode(body);
  if (!refusal.ok()) return ProtocolError(refusal.status().GetMsg());
  if (refusal->status.IsOk()) return ProtocolError("OK came instead of an answer");
  return refusal->status;
}

Result<Connection::Reply> Connection::Receive(proto::SessionMessage expected,
                                              const Deadline& deadline) {
  DCHECK(step_ == Step::kAwaitingReply);
  begin_ = end_ = 0;
  if (buffer_.size() > kBufferSize) std::vector<std::byte>(kBufferSize).swap(buffer_);
  return ReadReply(expected, deadline);
}

Result<Connection::Reply> Connection::ReceiveWithDescriptors(proto::SessionMessage expected,
                                                             const Deadline& deadline,
                                                             std::vector<UniqueFd>& fds) {
  DCHECK(step_ == Step::kAwaitingReply);
  RETURN_IF_ERROR(Wait(POLLIN, deadline));
  const Status status = shm::ReceiveWithDescriptors(
      socket_.get(), std::span(buffer_).first(session::kFrameHeaderSize), fds);
  if (status.IsError()) {
    step_ = Step::kBroken;
    return errors::Disconnected("worker {}: {}", worker_, status.GetMsg());
  }
  end_ = session::kFrameHeaderSize;
  return ReadReply(expected, deadline);
}

Status Connection::ReceivePayload(std::span<std::byte> bytes, const Deadline& deadline) {
  DCHECK(bytes.size() <= payload_left_);
  const size_t buffered = std::min(bytes.size(), end_ - begin_);
  if (buffered > 0) std::memcpy(bytes.data(), buffer_.data() + begin_, buffered);
  begin_ += buffered;
  payload_left_ -= bytes.size();
  const uint64_t behind = payload_left_;  // of the payload: all that can come
  for (bytes = bytes.subspan(buffered); !bytes.empty();) {
    if (bytes.size() >= kReadDirectMin || behind == 0) {
      ASSIGN_OR_RETURN(const size_t count, ReceiveSome(bytes, deadline));
      bytes = bytes.subspan(count);
      continue;
    }
    // Of many small values a whole buffer comes with one system call.
    const size_t wanted = std::min<uint64_t>(buffer_.size(), bytes.size() + behind);
    begin_ = end_ = 0;
    ASSIGN_OR_RETURN(end_, ReceiveSome(std::span(buffer_).first(wanted), deadline));
    begin_ = std::min(end_, bytes.size());
    std::memcpy(bytes.data(), buffer_.data(), begin_);
    bytes = bytes.subspan(begin_);
  }
  if (payload_left_ == 0) step_ = Step::kIdle;
  return Status::OK();
}

void Connection::End() {
  (void)::shutdown(socket_.get(), SHUT_RDWR);  // fails when the worker has ended it
}

bool Connection::ClosedByWorker() const {
  // POLLRDHUP is seen behind unread bytes, too.
  pollfd look{.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&look, 1, 0) > 0;
}

}  // namespace datasystem::client
