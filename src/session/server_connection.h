// The worker's end of one connection: frames in, frames out, over TCP or a Unix socket.
//
// One coroutine owns a connection: it reads a frame, takes the payload, answers, reads the next.
//
// With a channel, frames that are small come and go through memory as well, each whole; its answer goes the way
// that a request came. On the socket, a byte kWakeByte between two frames says: look into the channel.
// Threads: the event loop's.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/waiter.h"
#include "session/frame.h"
#include "shm/message_ring.h"

namespace datasystem::session {

struct Frame {
  FrameHeader header;
  std::string body;  // the payload follows in the stream: take it by ReadPayload or DiscardPayload
};

class ChannelPoller;

class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  using Socket = asio::generic::stream_protocol::socket;

  // `peer` names the other side in logs.
  ServerConnection(Socket socket, std::string peer);
  ~ServerConnection();

  // From now on frames may come through `channel` too, which must stay until LeaveChannel(); `poller` looks for them.
  void UseChannel(shm::ChannelLayout& channel, ChannelPoller& poller);
  // The channel may go. Who waits for a frame is told that the connection has ended.
  void LeaveChannel();
  // For the poller.
  shm::RingReader& channel_in() { return channel_->in; }
  bool waiting() const { return channel_->waiter != nullptr; }
  // Lets the coroutine look again; false: it does not wait.
  bool Resume();

  const std::string& peer() const { return peer_; }

  // Waits for the next frame as long as it takes; but who has begun one, or is being answered, and moves
  // nothing for this long, is dead, and the connection ends.
  static constexpr auto kStallMax = std::chrono::seconds(60);

  // kClientWorkerDisconnect when the other side closed, kInvalid when it does not speak our protocol.
  asio::awaitable<Result<Frame>> ReadFrame(uint32_t body_max);
  asio::awaitable<Status> ReadPayload(std::span<std::byte> bytes);
  asio::awaitable<Status> DiscardPayload(uint64_t size);

  // `parts` must stay valid until it returns.
  asio::awaitable<Status> Write(uint16_t type, uint64_t request_id, std::string body,
                                std::vector<std::span<const std::byte>> parts);
  // A small frame whose first byte carries descriptors. Unix sockets only.
  Status WriteWithDescriptors(uint16_t type, uint64_t request_id, std::string_view body,
                              std::span<const int> fds);

  // Ends reads and writes under way; callable twice.
  void Close();

 private:
  class StallTimer;
  asio::awaitable<Status> Fill(size_t wanted);
  size_t TakeBuffered(std::span<std::byte> bytes);
  asio::awaitable<Status> WaitForFrame();
  void ReadSocketMeanwhile();
  Result<Frame> ReadFrameFromChannel(uint32_t body_max);
  bool WriteToChannel(std::span<const asio::const_buffer> buffers);

  Socket socket_;
  asio::steady_timer stall_timer_;
  const std::string peer_;
  // Received and not consumed: [begin_, end_) of buffer_. Small requests come whole in one read.
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;

  struct Channel {
    Channel(shm::ChannelLayout& layout, ChannelPoller& poller)
        : in(layout.to_worker), out(layout.to_client), poller(poller) {}
    shm::RingReader in;
    shm::RingWriter out;
    ChannelPoller& poller;
    std::unique_ptr<Waiter> waiter;  // the coroutine that waits for a frame
    bool reading_socket = false;
    asio::error_code socket_error;
    uint64_t payload_left = 0;  // of the frame in the channel
  };
  std::optional<Channel> channel_;
  bool answer_by_channel_ = false;
};

}  // namespace datasystem::session
