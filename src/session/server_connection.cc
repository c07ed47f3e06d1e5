#include "session/server_connection.h"

#include <sys/socket.h>

#include <asio/buffer.hpp>
#include <asio/post.hpp>
#include <asio/read.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <cstring>

#include "session/channel_poller.h"
#include "shm/fd_passing.h"

namespace datasystem::session {
namespace {

constexpr size_t kBufferSize = 64 << 10;

Status Closed(const std::string& peer, const asio::error_code& error) {
  return errors::Disconnected("connection of {} ended: {}", peer, error.message());
}

// What must move within kStallMax, and what a body grows by as it arrives: a header alone costs us nothing.
constexpr size_t kPiece = 1 << 20;
// From here on the copy out of the buffer costs more than the calls that it saves.
constexpr size_t kReadDirectMin = 16 << 10;

// What is left of the buffers after their first `sent` bytes.
std::span<asio::const_buffer> Without(size_t sent, std::span<asio::const_buffer> buffers) {
  while (!buffers.empty() && sent >= buffers.front().size()) {
    sent -= buffers.front().size();
    buffers = buffers.subspan(1);
  }
  if (sent > 0) buffers.front() += sent;
  return buffers;
}

}  // namespace

// Closes the connection if it lives for kStallMax.
class ServerConnection::StallTimer {
 public:
  explicit StallTimer(ServerConnection& connection) : timer_(connection.stall_timer_) {
    timer_.expires_after(kStallMax);
    timer_.async_wait([weak = connection.weak_from_this()](asio::error_code error) {
      const auto stalled = weak.lock();
      if (!error && stalled) stalled->Close();
    });
  }
  StallTimer(const StallTimer&) = delete;
  ~StallTimer() { timer_.cancel(); }

 private:
  asio::steady_timer& timer_;
};

ServerConnection::ServerConnection(Socket socket, std::string peer)
    : socket_(std::move(socket)), stall_timer_(socket_.get_executor()), peer_(std::move(peer)),
      buffer_(kBufferSize) {
  asio::error_code ignored;  // a socket that is no more: the first read says so
  socket_.non_blocking(true, ignored);
}

ServerConnection::~ServerConnection() { LeaveChannel(); }

void ServerConnection::UseChannel(shm::ChannelLayout& channel, ChannelPoller& poller) {
  channel_.emplace(channel, poller);
  poller.Add(this);
}

void ServerConnection::LeaveChannel() {
  if (!channel_) return;
  channel_->poller.Remove(this);
  std::unique_ptr<Waiter> waiter = std::move(channel_->waiter);
  channel_.reset();
  if (waiter != nullptr) {
    asio::post(socket_.get_executor(), [waiter = std::move(waiter)] { waiter->Resume(); });
  }
}

bool ServerConnection::Resume() {
  const std::unique_ptr<Waiter> waiter = std::move(channel_->waiter);
  if (waiter == nullptr) return false;
  waiter->Resume();
  return true;
}

// Until there is something to read, in the channel or in buffer_.
asio::awaitable<Status> ServerConnection::WaitForFrame() {
  for (;;) {
    while (begin_ < end_ && buffer_[begin_] == kWakeByte) ++begin_;
    if (channel_->in.HasBytes() || begin_ < end_) co_return Status::OK();
    if (channel_->socket_error) co_return Closed(peer_, channel_->socket_error);
    begin_ = end_ = 0;
    ReadSocketMeanwhile();
    co_await WaitIn(channel_->waiter);
    if (!channel_) co_return errors::Disconnected("connection of {} ended", peer_);
  }
}

// One read stays under way for as long as nothing comes: while the channel is used, the socket costs no system call.
void ServerConnection::ReadSocketMeanwhile() {
  if (std::exchange(channel_->reading_socket, true)) return;
  socket_.async_read_some(asio::buffer(buffer_),
                          [self = shared_from_this()](asio::error_code error, size_t count) {
                            if (!self->channel_) return;
                            self->channel_->poller.NoteWoken();
                            self->channel_->reading_socket = false;
                            self->channel_->socket_error = error;
                            self->begin_ = 0;
                            self->end_ = count;
                            self->Resume();
                          });
}

Result<Frame> ServerConnection::ReadFrameFromChannel(uint32_t body_max) {
  const std::optional<size_t> available = channel_->in.Available();
  std::array<std::byte, kFrameHeaderSize> head;
  if (!available || *available < head.size()) return errors::Invalid("a channel without a whole frame");
  channel_->in.Read(head);
  ASSIGN_OR_RETURN(const FrameHeader header, DecodeFrameHeader(head));
  const size_t left = *available - head.size();
  if (header.body_size > std::min<size_t>(body_max, left) || header.payload_size > left - header.body_size) {
    return errors::Invalid("a frame in the channel with a body of {} and a payload of {} bytes, of which {} are there",
                           header.body_size, header.payload_size, left);
  }
  Frame frame;
  frame.header = header;
  frame.body.resize(header.body_size);
  channel_->in.Read(std::as_writable_bytes(std::span(frame.body)));
  channel_->payload_left = header.payload_size;
  return frame;
}

bool ServerConnection::WriteToChannel(std::span<const asio::const_buffer> buffers) {
  std::vector<std::span<const std::byte>> parts;
  parts.reserve(buffers.size());
  for (const asio::const_buffer& buffer : buffers) {
    parts.emplace_back(static_cast<const std::byte*>(buffer.data()), buffer.size());
  }
  bool wake = false;
  if (!channel_->out.Write(parts, wake)) return false;
  // If it does not fit, the client has unread bytes and wakes up anyway; an error shows in the next read.
  if (wake) (void)::send(socket_.native_handle(), &kWakeByte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  return true;
}

asio::awaitable<Status> ServerConnection::Fill(size_t wanted) {
  if (end_ - begin_ >= wanted) co_return Status::OK();
  if (buffer_.size() - begin_ < wanted) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ - begin_ < wanted) {
    asio::error_code error;
    const auto free = asio::buffer(buffer_.data() + end_, buffer_.size() - end_);
    end_ += co_await socket_.async_read_some(free, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return Closed(peer_, error);
  }
  co_return Status::OK();
}

asio::awaitable<Status> ServerConnection::ReadPayload(std::span<std::byte> bytes) {
  if (answer_by_channel_) {  // the frame is there whole
    if (!channel_) co_return errors::Disconnected("connection of {} ended", peer_);
    if (bytes.size() > channel_->payload_left) {
      co_return errors::Invalid("{} bytes of payload are not there", bytes.size());
    }
    channel_->payload_left -= bytes.size();
    channel_->in.Read(bytes);
    co_return Status::OK();
  }
  for (size_t done = TakeBuffered(bytes); done < bytes.size();) {
    const StallTimer stall(*this);
    asio::error_code error;
    const size_t left = bytes.size() - done;
    if (left >= kReadDirectMin) {
      const auto piece = asio::buffer(bytes.data() + done, std::min(kPiece, left));
      done += co_await asio::async_read(socket_, piece, asio::redirect_error(asio::use_awaitable, error));
    } else {
      // Of many small values a whole buffer comes with one system call.
      const auto free = asio::buffer(buffer_);
      end_ = co_await socket_.async_read_some(free, asio::redirect_error(asio::use_awaitable, error));
      done += TakeBuffered(bytes.subspan(done));
    }
    if (error) co_return Closed(peer_, error);
  }
  co_return Status::OK();
}

size_t ServerConnection::TakeBuffered(std::span<std::byte> bytes) {
  const size_t taken = std::min(bytes.size(), end_ - begin_);
  std::memcpy(bytes.data(), buffer_.data() + begin_, taken);
  begin_ += taken;
  if (begin_ == end_) begin_ = end_ = 0;
  return taken;
}

asio::awaitable<Status> ServerConnection::DiscardPayload(uint64_t size) {
  std::vector<std::byte> scratch(std::min<uint64_t>(size, kBufferSize));
  while (size > 0) {
    const std::span<std::byte> piece(scratch.data(), std::min<uint64_t>(size, scratch.size()));
    Status read = co_await ReadPayload(piece);
    if (read.IsError()) co_return read;
    size -= piece.size();
  }
  co_return Status::OK();
}

asio::awaitable<Result<Frame>> ServerConnection::ReadFrame(uint32_t body_max) {
  answer_by_channel_ = false;
  if (channel_) {
    Status came = co_await WaitForFrame();
    if (came.IsError()) co_return came;
    // What the client said first counts first: it has put nothing into the channel after a frame on the socket.
    if (channel_->in.HasBytes()) {
      answer_by_channel_ = true;
      co_return ReadFrameFromChannel(body_max);
    }
  }
  Status filled = co_await Fill(kFrameHeaderSize);
  if (filled.IsError()) co_return filled;
  auto header = DecodeFrameHeader(
      std::span<const std::byte, kFrameHeaderSize>(buffer_.data() + begin_, kFrameHeaderSize));
  if (!header.ok()) co_return header.status();
  if (header->body_size > body_max) {
    co_return errors::Invalid("frame with a body of {} bytes, at most {} are accepted here",
                              header->body_size, body_max);
  }
  begin_ += kFrameHeaderSize;
  Frame frame;
  frame.header = *header;
  while (frame.body.size() < header->body_size) {
    const size_t before = frame.body.size();
    frame.body.resize(std::min<size_t>(header->body_size, before + kPiece));
    Status body = co_await ReadPayload(std::as_writable_bytes(std::span(frame.body)).subspan(before));
    if (body.IsError()) co_return body;
  }
  co_return frame;
}

asio::awaitable<Status> ServerConnection::Write(uint16_t type, uint64_t request_id, std::string body,
                                                std::vector<std::span<const std::byte>> parts) {
  FrameHeader header;
  header.type = type;
  header.request_id = request_id;
  header.body_size = body.size();
  for (const auto& part : parts) header.payload_size += part.size();
  const auto head = EncodeFrameHeader(header);
  std::vector<asio::const_buffer> buffers;
  buffers.reserve(parts.size() + 2);
  buffers.push_back(asio::buffer(head));
  buffers.push_back(asio::buffer(body));
  for (const auto& part : parts) buffers.push_back(asio::buffer(part.data(), part.size()));
  if (answer_by_channel_ && channel_ && WriteToChannel(buffers)) co_return Status::OK();
  // Most answers fit into the socket's buffer: one call, no timer, no detour through the loop.
  std::span<asio::const_buffer> rest(buffers);
  for (size_t in_a_row = 0;;) {
    asio::error_code error;
    const size_t sent = socket_.write_some(rest, error);
    if (error && error != asio::error::would_block) co_return Closed(peer_, error);
    rest = Without(sent, rest);
    if (rest.empty()) break;
    in_a_row += sent;
    if (error) {
      const StallTimer stall(*this);
      co_await socket_.async_wait(Socket::wait_write, asio::redirect_error(asio::use_awaitable, error));
      if (error) co_return Closed(peer_, error);
      in_a_row = 0;
    } else if (in_a_row >= kPiece) {
      co_await asio::post(socket_.get_executor(), asio::use_awaitable);  // others have their turn
      in_a_row = 0;
    }
  }
  co_return Status::OK();
}

Status ServerConnection::WriteWithDescriptors(uint16_t type, uint64_t request_id, std::string_view body,
                                              std::span<const int> fds) {
  FrameHeader header;
  header.type = type;
  header.request_id = request_id;
  header.body_size = body.size();
  const auto head = EncodeFrameHeader(header);
  std::vector<std::byte> bytes(head.begin(), head.end());
  const auto body_bytes = std::as_bytes(std::span(body));
  bytes.insert(bytes.end(), body_bytes.begin(), body_bytes.end());
  return shm::SendWithDescriptors(socket_.native_handle(), bytes, fds);
}

void ServerConnection::Close() {
  asio::error_code ignored;
  socket_.close(ignored);
}

}  // namespace datasystem::session
