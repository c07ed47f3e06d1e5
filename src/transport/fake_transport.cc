#include "transport/fake_transport.h"

#include <algorithm>

#include "transport/places.h"

namespace datasystem::transport {

// The bytes stay with the sender until the transfer's end, as in a rendezvous.
class FakeNetwork::IncomingFakePayload final : public IncomingPayload {
 public:
  IncomingFakePayload(FakeNetwork& network, uint64_t from, uint64_t to, Payload payload)
      : network_(network), from_(from), to_(to), payload_(std::move(payload)) {}
  void Receive(Places into, std::function<void(Status)> done) override {
    network_.StartTransfer({from_, to_, std::move(into), std::move(payload_), std::move(done)});
  }
  void Retain() override {}

 private:
  FakeNetwork& network_;
  uint64_t from_;
  uint64_t to_;
  Payload payload_;
};

FakeTransport::FakeTransport(FakeNetwork& network, PeerId self)
    : network_(network), self_(std::move(self)), messenger_(self_, *this, network.clock(), /*first_request_id=*/1) {}

FakeTransport::~FakeTransport() {
  network_.Remove(self_.incarnation);
  for (auto& waiter : messenger_.Stop(errors::ShuttingDown("this worker is stopping"))) {
    asio::post(network_.context_, [waiter = std::move(waiter)] { waiter->Resume(); });
  }
}

void FakeTransport::SetRequestHandler(RequestHandler handler) {
  messenger_.SetRequestHandler(std::move(handler));
}

asio::awaitable<Result<Answer>> FakeTransport::Call(PeerId to, uint16_t type, std::string body,
                                                    TimePoint deadline,
                                                    std::shared_ptr<PayloadTarget> target) {
  return messenger_.Call(std::move(to), type, std::move(body), deadline, std::move(target));
}

void FakeTransport::Respond(const ReturnAddress& to, const Status& status, std::string body,
                            Payload payload) {
  messenger_.Respond(to, status, std::move(body), std::move(payload));
}

void FakeTransport::Forward(const ReturnAddress& caller, const PeerId& to, uint16_t type,
                            std::string body) {
  messenger_.Forward(caller, to, type, std::move(body));
}

void FakeTransport::Connect(const Peer& peer) {
  const uint64_t to = peer.id.incarnation;
  if (connected_.contains(to)) return;
  if (network_.Alive(to) != nullptr) {
    connected_.insert(to);
    return;
  }
  network_.At(network_.clock_.Now() + network_.RandomDelay(), [&network = network_, self = self_.incarnation, to] {
    if (auto* node = network.Alive(self)) {
      node->transport->messenger_.LinkFailed(to, false, errors::Unavailable("connection refused"));
    }
  });
}

void FakeTransport::Send(const Peer& peer, OutMessage message) {
  Connect(peer);
  if (!connected_.contains(peer.id.incarnation)) {
    messenger_.SendFailed(message, errors::Unavailable("connection refused"));
    return;
  }
  message.header.body_size = message.body.size();
  message.header.payload_size = message.payload.size();
  network_.Carry(self_.incarnation, peer.id.incarnation, std::move(message));
}

void FakeTransport::Reset(const Peer& peer, const Status& why) {
  Forget(peer);
  messenger_.LinkFailed(peer.id.incarnation, true, why);
}

void FakeTransport::Forget(const Peer& peer) {
  if (connected_.erase(peer.id.incarnation) > 0) network_.Break(self_.incarnation, peer.id.incarnation);
}

std::string FakeTransport::Lane(const Peer& peer) const {
  return connected_.contains(peer.id.incarnation) ? "fake" : "";
}

FakeNetwork::FakeNetwork(asio::io_context& context, Options options)
    : context_(context), options_(options), random_(options.seed) {}

FakeNetwork::~FakeNetwork() = default;

std::unique_ptr<FakeTransport> FakeNetwork::AddNode(PeerId id) {
  std::unique_ptr<FakeTransport> transport(new FakeTransport(*this, id));
  nodes_[id.incarnation] = {.transport = transport.get()};
  return transport;
}

void FakeNetwork::AnnounceAll() {
  for (const auto& [incarnation, node] : nodes_) {
    if (!node.alive) continue;
    std::vector<Peer> others;
    for (const auto& [other, other_node] : nodes_) {
      if (other != incarnation && other_node.alive) others.push_back({other_node.transport->self_, "fake"});
    }
    node.transport->SetPeers(std::move(others));
  }
}

FakeNetwork::Node* FakeNetwork::Alive(uint64_t incarnation) {
  auto found = nodes_.find(incarnation);
  return found == nodes_.end() || !found->second.alive ? nullptr : &found->second;
}

Duration FakeNetwork::RandomDelay() {
  std::uniform_int_distribution<int64_t> between(options_.delay_min.count(), options_.delay_max.count());
  return Duration(between(random_));
}

void FakeNetwork::At(TimePoint when, std::function<void()> event) {
  events_.emplace(std::pair(when, next_event_++), std::move(event));
}

void FakeNetwork::Pass(uint64_t from, uint64_t to, std::function<void(FakeTransport&)> event) {
  TimePoint when = clock_.Now() + RandomDelay();
  if (!options_.reorder) {
    TimePoint& latest = latest_[{from, to}];
    latest = when = std::max(when, latest);
  }
  auto deliver = [this, from, to, epoch = Epoch(from, to), event = std::move(event)] {
    Node* node = Alive(to);
    if (node != nullptr && Epoch(from, to) == epoch && !IsCut(from, to)) event(*node->transport);
  };
  At(when, [this, to, deliver = std::move(deliver)] {
    Node* node = Alive(to);
    if (node != nullptr && node->paused) {
      node->held.push_back(deliver);
    } else {
      deliver();
    }
  });
}

void FakeNetwork::Carry(uint64_t from, uint64_t to, OutMessage message) {
  if (std::bernoulli_distribution(options_.drop)(random_)) return;
  // Copyable, because it sits in a std::function.
  auto carried = std::make_shared<OutMessage>(std::move(message));
  Pass(from, to, [this, from, to, carried](FakeTransport& receiver) {
    InMessage arrived;
    arrived.header = carried->header;
    arrived.body = std::move(carried->body);
    if (arrived.header.payload_size > 0) {
      arrived.payload = std::make_unique<IncomingFakePayload>(*this, from, to, std::move(carried->payload));
    }
    receiver.messenger_.Deliver(std::move(arrived));
  });
}

void FakeNetwork::StartTransfer(Transfer transfer) {
  const uint64_t from = transfer.from;
  const uint64_t to = transfer.to;
  transfers_.push_back(std::move(transfer));
  // The data needs the sender's help: a round trip.
  Pass(to, from, [this, from, to, here = std::prev(transfers_.end())](FakeTransport&) {
    Pass(from, to, [this, here](FakeTransport&) {
      Scatter(here->payload.parts, here->into);
      auto done = std::move(here->done);
      transfers_.erase(here);
      done(Status::OK());
    });
  });
}

// The transfers of a broken connection end; their events see the new epoch and do nothing.
void FakeNetwork::Break(uint64_t breaker, uint64_t other) {
  ++Epoch(breaker, other);
  for (auto it = transfers_.begin(); it != transfers_.end();) {
    if (std::minmax(it->from, it->to) != std::minmax(breaker, other)) {
      ++it;
      continue;
    }
    auto done = std::move(it->done);
    const bool receiver_alive = Alive(it->to) != nullptr;
    it = transfers_.erase(it);
    if (receiver_alive) done(errors::PeerDead("the payload's transfer was cut off"));
  }
  if (IsCut(breaker, other)) return;
  Pass(breaker, other, [breaker](FakeTransport& transport) {
    if (transport.connected_.erase(breaker) > 0) {
      transport.messenger_.LinkFailed(breaker, true, errors::PeerDead("connection reset"));
    }
  });
}

void FakeNetwork::Cut(const PeerId& a, const PeerId& b) {
  cuts_.insert(std::minmax(a.incarnation, b.incarnation));
}

void FakeNetwork::Heal(const PeerId& a, const PeerId& b) {
  cuts_.erase(std::minmax(a.incarnation, b.incarnation));
}

void FakeNetwork::Kill(const PeerId& id) {
  Node* node = Alive(id.incarnation);
  if (node == nullptr) return;
  node->alive = false;
  for (auto& [incarnation, other] : nodes_) {
    if (other.alive) Break(id.incarnation, incarnation);
  }
}

void FakeNetwork::Remove(uint64_t incarnation) {
  auto found = nodes_.find(incarnation);
  if (found == nodes_.end()) return;
  Kill(found->second.transport->self_);
  nodes_.erase(incarnation);
}

void FakeNetwork::Pause(const PeerId& id) { nodes_.at(id.incarnation).paused = true; }

void FakeNetwork::Resume(const PeerId& id) {
  Node& node = nodes_.at(id.incarnation);
  node.paused = false;
  for (auto& deliver : std::exchange(node.held, {})) deliver();
}

void FakeNetwork::Settle() {
  for (size_t done = 1; done > 0;) {
    if (context_.stopped()) context_.restart();
    done = context_.poll();
    // Handlers may add and remove nodes: go by id.
    std::vector<uint64_t> ids;
    for (const auto& [incarnation, node] : nodes_) ids.push_back(incarnation);
    for (uint64_t id : ids) {
      Node* node = Alive(id);
      if (node != nullptr && !node->paused) done += node->transport->messenger_.RunReady();
    }
  }
}

std::optional<TimePoint> FakeNetwork::NextTime() const {
  std::optional<TimePoint> next;
  auto take = [&next](std::optional<TimePoint> time) {
    if (time.has_value()) next = next.has_value() ? std::min(*next, *time) : *time;
  };
  if (!events_.empty()) take(events_.begin()->first.first);
  for (const auto& [incarnation, node] : nodes_) {
    if (node.alive && !node.paused) take(node.transport->messenger_.next_deadline());
  }
  return next;
}

bool FakeNetwork::RunUntil(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = clock_.Now() + limit;
  while (true) {
    Settle();
    if (done()) return true;
    const std::optional<TimePoint> next = NextTime();
    if (!next.has_value() || *next > end) break;
    if (*next > clock_.Now()) clock_.Advance(*next - clock_.Now());
    if (!events_.empty() && events_.begin()->first.first <= clock_.Now()) {
      auto event = events_.extract(events_.begin());
      event.mapped()();
    } else {
      for (auto& [incarnation, node] : nodes_) {
        if (node.alive && !node.paused) node.transport->messenger_.Expire();
      }
    }
  }
  clock_.Advance(end - clock_.Now());
  Settle();
  return done();
}

void FakeNetwork::RunFor(Duration time) {
  (void)RunUntil([] { return false; }, time);
}

}  // namespace datasystem::transport
