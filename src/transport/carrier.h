// What moves single messages between processes: UCX, or the fake network. Knows nothing of calls.
//
// The Messenger above it gives calls, answers, forwarding and membership their meaning, once for both.
// Threads: all on the event loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "transport/transport.h"
#include "transport/wire_header.h"

namespace datasystem::transport {

// Payload that a peer announced. Destroying it without Receive() refuses it: nothing is transferred.
class IncomingPayload {
 public:
  virtual ~IncomingPayload() = default;

  // Moves all of it into `into`, which have exactly the announced size and stay valid until `done` is
  // called: once, perhaps before Receive() returns, and also when the transfer fails. Call at most once.
  virtual void Receive(Places into, std::function<void(Status)> done) = 0;

  // Must be called to use it after Messenger::Deliver() has returned.
  virtual void Retain() = 0;
};

struct InMessage {
  WireHeader header;
  std::string body;
  std::unique_ptr<IncomingPayload> payload;  // header.payload_size > 0
};

struct OutMessage {
  WireHeader header;
  std::string body;
  Payload payload;
};

// Peers are named by incarnation here. Failures come back through Messenger::LinkFailed and SendFailed.
class Carrier {
 public:
  virtual ~Carrier() = default;

  // Starts to connect if there is no connection.
  virtual void Connect(const Peer& peer) = 0;
  virtual void Send(const Peer& peer, OutMessage message) = 0;
  // Cuts the connection: transfers in both directions end now, with an error. The next Send() connects
  // anew.
  virtual void Reset(const Peer& peer, const Status& why) = 0;
  // Reset() for good.
  virtual void Forget(const Peer& peer) = 0;
  // "" when not connected.
  virtual std::string Lane(const Peer& peer) const = 0;
  // The largest body that can travel in one message with a payload.
  virtual size_t body_with_payload_max() const = 0;
};

}  // namespace datasystem::transport
