// Messages and payload between workers. Knows nothing of objects: bodies and types are opaque.
//
// A call sends a request to a peer and gets one answer, perhaps with a payload that lands directly in
// memory which the caller provides (receiver-driven: no address ever goes to the peer). A request can be
// forwarded: another peer then answers the caller directly.
//
// Threads: everything on the event loop's thread. Callbacks and resumptions happen there too.
#pragma once

#include <asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace datasystem::transport {

// One life of one worker. A restarted worker has the same address and another incarnation.
struct PeerId {
  std::string address;  // its worker_address, "ip:port"
  uint64_t incarnation = 0;

  bool operator==(const PeerId&) const = default;
};

struct Peer {
  PeerId id;
  std::string endpoint;  // opaque: what Transport::endpoint() said in that process
};

// What answers need; travels with a forwarded request.
struct ReturnAddress {
  PeerId caller;
  uint64_t request_id = 0;
};

struct Request {
  uint16_t type = 0;
  std::string body;
  ReturnAddress from;
};

// Bytes to send, gathered from parts. `owner` keeps them alive until they have left.
struct Payload {
  std::vector<std::span<const std::byte>> parts;
  std::shared_ptr<const void> owner;

  size_t size() const {
    size_t sum = 0;
    for (const auto& part : parts) sum += part.size();
    return sum;
  }
};

// Where a payload lands: one piece after the other.
using Places = std::vector<std::span<std::byte>>;

// Where the payload of an answer goes.
class PayloadTarget {
 public:
  virtual ~PayloadTarget() = default;
  // Called at most once, when an answer with status OK announces `size` > 0 bytes; `body` is that
  // answer's body. Places of at least `size` bytes in all. The memory must stay valid until this object is destroyed: the transport holds it
  // until nothing can land there any more, also when the call has long timed out. An error refuses the
  // payload and becomes the result of the call.
  virtual Result<Places> Prepare(std::string_view body, uint64_t size) = 0;
};

struct Answer {
  std::string body;
  uint64_t payload_size = 0;  // all of it has arrived in the target
  PeerId from;                // who answered, after forwarding perhaps not who was asked
};

struct PeerStatus {
  PeerId id;
  std::string lane;  // what carries messages and payload, e.g. "tcp/eth0" or "rc_mlx5/mlx5_0:1"; "" = not connected
  uint64_t calls = 0;
  uint64_t failures = 0;
  uint64_t payload_bytes_sent = 0;
  uint64_t payload_bytes_received = 0;
};

class Transport {
 public:
  // The largest body of a request or answer.
  static constexpr size_t kBodyMax = 16 << 20;

  virtual ~Transport() = default;

  // How others reach this process; published through the cluster store.
  virtual std::string endpoint() const = 0;

  // The whole membership, without this process. Calls to a peer that is gone, or has another
  // incarnation now, end at once with kRpcPeerDead; messages from it are dropped.
  virtual void SetPeers(std::vector<Peer> peers) = 0;

  using RequestHandler = std::function<void(Request)>;
  // Every request must in the end be answered (Respond) or handed on (Forward).
  virtual void SetRequestHandler(RequestHandler handler) = 0;

  // The answer, or: the error status that the other side responded with; kRpcPeerDead when the peer
  // (or the one it was forwarded to) dies or leaves; kRpcDeadlineExceeded; kRpcUnavailable when it
  // cannot be connected or is unknown; the error of target->Prepare. Always ends by `deadline`.
  virtual asio::awaitable<Result<Answer>> Call(PeerId to, uint16_t type, std::string body,
                                               TimePoint deadline,
                                               std::shared_ptr<PayloadTarget> target = nullptr) = 0;

  // Answers a request. A payload goes only with an OK status. Failures to deliver are counted and
  // logged, not reported: the caller has its own deadline.
  virtual void Respond(const ReturnAddress& to, const Status& status, std::string body,
                       Payload payload = {}) = 0;

  // Makes `to` answer the caller: sends it the request, and tells the caller whom it now waits for, so
  // that the death of `to` ends the call at once. If `to` cannot be reached, the caller gets
  // kRpcPeerDead.
  virtual void Forward(const ReturnAddress& caller, const PeerId& to, uint16_t type,
                       std::string body) = 0;

  virtual std::vector<PeerStatus> peers() const = 0;
};

}  // namespace datasystem::transport
