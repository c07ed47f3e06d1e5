// Transport inside one process, for tests of protocols: whole clusters on one thread, in time of their
// own, with faults, and the same order of events for the same seed.
//
//   FakeNetwork network(context, {.seed = 7, .drop = 0.01});
//   auto a = network.AddNode({"10.0.0.1:1", 1}); ...
//   network.AnnounceAll();                       // or SetPeers() per node, to test late joins
//   asio::co_spawn(context, Protocol(*a), ...);
//   EXPECT_TRUE(network.RunUntil([&] { return finished; }, 10s));
//
// Time is network.clock(): it jumps to the next event, so that a deadline of a minute costs nothing.
// Deadlines of calls are points of that time.
// Threads: none; RunUntil() runs everything on its caller's.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "transport/carrier.h"
#include "transport/messenger.h"
#include "transport/transport.h"

namespace datasystem::transport {

class FakeNetwork;

class FakeTransport final : public Transport, private Carrier {
 public:
  ~FakeTransport() override;

  std::string endpoint() const override { return "fake"; }
  void SetPeers(std::vector<Peer> peers) override { messenger_.SetPeers(std::move(peers)); }
  void SetRequestHandler(RequestHandler handler) override;
  asio::awaitable<Result<Answer>> Call(PeerId to, uint16_t type, std::string body, TimePoint deadline,
                                       std::shared_ptr<PayloadTarget> target) override;
  void Respond(const ReturnAddress& to, const Status& status, std::string body, Payload payload) override;
  void Forward(const ReturnAddress& caller, const PeerId& to, uint16_t type, std::string body) override;
  std::vector<PeerStatus> peers() const override { return messenger_.peers(); }

 private:
  friend class FakeNetwork;
  FakeTransport(FakeNetwork& network, PeerId self);

  void Connect(const Peer& peer) override;
  void Send(const Peer& peer, OutMessage message) override;
  void Reset(const Peer& peer, const Status& why) override;
  void Forget(const Peer& peer) override;
  std::string Lane(const Peer& peer) const override;
  // Small, so that tests meet bodies that travel apart from the payload.
  size_t body_with_payload_max() const override { return 1024; }

  FakeNetwork& network_;
  const PeerId self_;
  std::set<uint64_t> connected_;
  Messenger messenger_;
};

// Must outlive its nodes.
class FakeNetwork {
 public:
  struct Options {
    uint64_t seed = 1;
    Duration delay_min = std::chrono::microseconds(5);
    Duration delay_max = std::chrono::microseconds(50);
    double drop = 0;       // the share of messages that get lost
    bool reorder = false;  // messages of one node to another may overtake each other
  };

  FakeNetwork(asio::io_context& context, Options options);
  ~FakeNetwork();

  const Clock& clock() const { return clock_; }

  std::unique_ptr<FakeTransport> AddNode(PeerId id);
  // Tells every living node of all others.
  void AnnounceAll();

  // Nothing passes between the two, and neither notices.
  void Cut(const PeerId& a, const PeerId& b);
  void Heal(const PeerId& a, const PeerId& b);
  // The process dies: those connected to it notice.
  void Kill(const PeerId& id);
  // The process stands still: what reaches it waits. Nobody notices.
  void Pause(const PeerId& id);
  void Resume(const PeerId& id);

  // Lets things happen until `done`; false if it is not within `limit` of network time.
  bool RunUntil(const std::function<bool()>& done, Duration limit);
  void RunFor(Duration time);

 private:
  friend class FakeTransport;
  class IncomingFakePayload;
  using Pair = std::pair<uint64_t, uint64_t>;
  struct Node {
    FakeTransport* transport;
    bool alive = true;
    bool paused = false;
    std::vector<std::function<void()>> held;  // deliveries while paused
  };
  struct Transfer {
    uint64_t from;
    uint64_t to;
    Places into;
    Payload payload;
    std::function<void(Status)> done;
  };

  Node* Alive(uint64_t incarnation);
  bool IsCut(uint64_t a, uint64_t b) const { return cuts_.contains(std::minmax(a, b)); }
  uint64_t& Epoch(uint64_t a, uint64_t b) { return epochs_[std::minmax(a, b)]; }
  Duration RandomDelay();
  void At(TimePoint when, std::function<void()> event);
  // Runs `event` at the node, after a delay, unless it dies or the connection is broken before.
  void Pass(uint64_t from, uint64_t to, std::function<void(FakeTransport&)> event);
  void Carry(uint64_t from, uint64_t to, OutMessage message);
  void StartTransfer(Transfer transfer);
  void Break(uint64_t breaker, uint64_t other);
  void Remove(uint64_t incarnation);
  void Settle();
  std::optional<TimePoint> NextTime() const;

  asio::io_context& context_;
  const Options options_;
  FakeClock clock_;
  std::mt19937_64 random_;
  std::map<uint64_t, Node> nodes_;
  std::map<std::pair<TimePoint, uint64_t>, std::function<void()>> events_;
  uint64_t next_event_ = 0;
  std::map<Pair, TimePoint> latest_;  // per direction: keeps messages in order
  std::map<Pair, uint64_t> epochs_;   // per pair: how often their connection was broken
  std::set<Pair> cuts_;
  std::list<Transfer> transfers_;
};

}  // namespace datasystem::transport
