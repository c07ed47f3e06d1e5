// One connection to a worker: frames out, frames in, blocking, each within a deadline.
//
// Strictly request, answer, request: there is no reader thread, and a small exchange costs two
// system calls. After any error the connection is out of step and not usable() again; what is on
// the way is then nobody's.
//
// Threads: one at a time, except ClosedByWorker().
#pragma once

#include <sys/uio.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/socket_address.h"
#include "base/spin_budget.h"
#include "base/unique_fd.h"
#include "client/deadline.h"
#include "proto/session_messages.h"
#include "session/frame.h"
#include "shm/message_ring.h"

namespace datasystem::client {

class Connection {
 public:
  // kRpcUnavailable: nobody listens there, or no connection within the deadline.
  static Result<std::unique_ptr<Connection>> ConnectTcp(const SocketAddress& worker,
                                                        const Deadline& deadline);
  // `worker` names the worker in error texts.
  static Result<std::unique_ptr<Connection>> ConnectUnix(const std::string& path,
                                                         std::string worker,
                                                         const Deadline& deadline);

  // Errors of all below: K_RPC_DEADLINE_EXCEEDED, K_CLIENT_WORKER_DISCONNECT, and K_RUNTIME_ERROR
  // when the worker does not keep to the protocol.

  // From now on small frames go through memory, which must stay for as long as this lives.
  void UseChannel(shm::ChannelLayout& channel);

  // The parts of a payload, which are sent one after the other from where they are.
  using Payload = std::span<const std::span<const std::byte>>;
  // kSocket: the answer makes fd() readable.
  enum class Way { kFastest, kSocket };
  Status Send(proto::SessionMessage type, std::string_view body, Payload payload,
              const Deadline& deadline, Way way = Way::kFastest);

  struct Reply {
    std::string_view body;  // valid until the next call
    uint64_t payload_size = 0;
  };
  // The answer to the last Send. An answer of type kStatusReply that holds an error is returned as
  // that error, whatever was expected; the connection stays usable.
  Result<Reply> Receive(proto::SessionMessage expected, const Deadline& deadline);
  // The same, for an answer that brings descriptors.
  Result<Reply> ReceiveWithDescriptors(proto::SessionMessage expected, const Deadline& deadline,
                                       std::vector<UniqueFd>& fds);
  // The next bytes of the answer's payload; all of it must be taken.
  Status ReceivePayload(std::span<std::byte> bytes, const Deadline& deadline);

  // Marks the connection as out of step; returns the K_RUNTIME_ERROR that says why.
  Status ProtocolError(std::string_view reason);

  // Nothing is under way and nothing went wrong.
  bool usable() const { return step_ == Step::kIdle; }
  const std::string& worker() const { return worker_; }
  // Readable when the answer to what was sent by kSocket, or the end of the connection, has come.
  int fd() const { return socket_.get(); }
  // Threads: any, while the connection exists.
  bool ClosedByWorker() const;
  // The worker sees the end at once, also while a child of this process holds the descriptor, too.
  void End();

 private:
  enum class Step { kIdle, kAwaitingReply, kTakingPayload, kTimedOut, kBroken };

  Connection(UniqueFd socket, std::string worker);
  static Result<std::unique_ptr<Connection>> Connect(int family, const void* address,
                                                     unsigned length, const std::string& place,
                                                     std::string worker, const Deadline& deadline);
  Status Wait(short events, const Deadline& deadline);
  bool SendByChannel(std::span<const iovec> parts);
  // What came through the channel; 0: nothing.
  Result<size_t> TakeFromChannel(std::span<std::byte> to);
  Result<size_t> LookAround(std::span<std::byte> to);
  Result<size_t> Spin(std::span<std::byte> to);
  Status FillFirst(const Deadline& deadline);
  Result<size_t> ReceiveSome(std::span<std::byte> to, const Deadline& deadline);
  Status Fill(size_t wanted, const Deadline& deadline);
  Result<Reply> ReadReply(proto::SessionMessage expected, const Deadline& deadline);
  Status TimedOut(const Deadline& deadline);
  Status Closed(int error_number);

  const UniqueFd socket_;
  const std::string worker_;
  Step step_ = Step::kIdle;
  uint64_t request_id_ = 0;
  uint64_t payload_left_ = 0;
  // Received and not consumed: [begin_, end_) of buffer_.
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  SpinBudget spin_;

  struct Channel {
    explicit Channel(shm::ChannelLayout& layout) : out(layout.to_worker), in(layout.to_client) {}
    shm::RingWriter out;
    shm::RingReader in;
  };
  std::optional<Channel> channel_;
  bool by_channel_ = false;  // the answer that is being read
};

}  // namespace datasystem::client
