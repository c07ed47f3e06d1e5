// Some nodes of one transport inside the test's process, the same to use for UCX and for the fake.
#pragma once

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <chrono>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/event_loop.h"
#include "transport/fake_transport.h"
#include "transport/ucx_transport.h"

namespace datasystem::transport {

using namespace std::chrono_literals;

// Bytes that depend on their position and on `seed`: what lands in the wrong place is seen.
inline std::string PatternBytes(size_t size, uint64_t seed) {
  std::string bytes(size, '\0');
  uint64_t state = seed * 0x9E3779B97F4A7C15ULL + 1;
  for (size_t at = 0; at < size; at += sizeof(state)) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    std::memcpy(&bytes[at], &state, std::min(sizeof(state), size - at));
  }
  return bytes;
}

inline Payload PayloadOf(std::shared_ptr<const std::string> bytes) {
  Payload payload;
  payload.parts.push_back(std::as_bytes(std::span(*bytes)));
  payload.owner = std::move(bytes);
  return payload;
}

// Takes any payload up to a limit; remembers what it was asked.
class BufferTarget final : public PayloadTarget {
 public:
  explicit BufferTarget(size_t limit = SIZE_MAX) : limit_(limit) {}
  Result<Places> Prepare(std::string_view body, uint64_t size) override {
    body_ = body;
    if (size > limit_) return errors::OutOfMemory("{} bytes do not fit", size);
    bytes_.resize(size);
    return Places{std::as_writable_bytes(std::span(bytes_))};
  }
  const std::string& bytes() const { return bytes_; }
  const std::string& body() const { return body_; }

 private:
  size_t limit_;
  std::string bytes_;
  std::string body_;
};

class TestCluster {
 public:
  virtual ~TestCluster() = default;

  // On the transports' thread, at once.
  virtual void Do(const std::function<void()>& action) = 0;
  // Lets things happen until the predicate, evaluated on the transports' thread, holds.
  virtual bool Eventually(const std::function<bool()>& predicate, Duration limit = 20s) = 0;
  virtual TimePoint Now() const = 0;
  virtual asio::io_context& context() = 0;
  virtual void Add(const PeerId& id) = 0;
  virtual void Destroy(const PeerId& id) = 0;
  virtual Transport& node(const PeerId& id) = 0;

  Peer PeerOf(const PeerId& id) {
    Peer peer{id, ""};
    Do([&] { peer.endpoint = node(id).endpoint(); });
    return peer;
  }
  void SetPeers(const PeerId& at, const std::vector<PeerId>& others) {
    std::vector<Peer> peers;
    for (const PeerId& other : others) peers.push_back(PeerOf(other));
    Do([&] { node(at).SetPeers(peers); });
  }
  // Everyone knows everyone.
  void Introduce(const std::vector<PeerId>& ids) {
    for (const PeerId& id : ids) SetPeers(id, ids);
  }

  // A call under way; its result can be waited for.
  using Outcome = std::shared_ptr<std::optional<Result<Answer>>>;
  Outcome Start(const PeerId& from, const PeerId& to, uint16_t type, std::string body, Duration within = 20s,
                std::shared_ptr<PayloadTarget> target = nullptr) {
    auto outcome = std::make_shared<std::optional<Result<Answer>>>();
    Do([&] {
      asio::co_spawn(context(), CallTo(node(from), to, type, body, Now() + within, target, outcome),
                     asio::detached);
    });
    return outcome;
  }
  Result<Answer> Await(const Outcome& outcome, Duration limit = 30s) {
    if (!Eventually([&] { return outcome->has_value(); }, limit)) return errors::Runtime("the call hangs");
    return **outcome;
  }
  Result<Answer> Call(const PeerId& from, const PeerId& to, uint16_t type, std::string body,
                      Duration within = 20s, std::shared_ptr<PayloadTarget> target = nullptr) {
    return Await(Start(from, to, type, std::move(body), within, std::move(target)));
  }
  void Serve(const PeerId& at, Transport::RequestHandler handler) {
    Do([&] { node(at).SetRequestHandler(std::move(handler)); });
  }

 private:
  static asio::awaitable<void> CallTo(Transport& transport, PeerId to, uint16_t type, std::string body,
                                      TimePoint deadline, std::shared_ptr<PayloadTarget> target,
                                      Outcome outcome) {
    Result<Answer> result = co_await transport.Call(to, type, body, deadline, target);
    outcome->emplace(std::move(result));
  }
};

class FakeTestCluster final : public TestCluster {
 public:
  explicit FakeTestCluster(FakeNetwork::Options options = {}) : network_(context_, options) {}

  FakeNetwork& network() { return network_; }
  void Do(const std::function<void()>& action) override { action(); }
  bool Eventually(const std::function<bool()>& predicate, Duration limit = 20s) override {
    return network_.RunUntil(predicate, limit);
  }
  TimePoint Now() const override { return network_.clock().Now(); }
  asio::io_context& context() override { return context_; }
  void Add(const PeerId& id) override { nodes_[id.incarnation] = network_.AddNode(id); }
  void Destroy(const PeerId& id) override { nodes_.erase(id.incarnation); }
  Transport& node(const PeerId& id) override { return *nodes_.at(id.incarnation); }

 private:
  asio::io_context context_;
  FakeNetwork network_;
  std::map<uint64_t, std::unique_ptr<FakeTransport>> nodes_;
};

class UcxTestCluster final : public TestCluster {
 public:
  UcxTestCluster() : thread_([this] { loop_.Run(); }) {}
  ~UcxTestCluster() override {
    Do([this] { nodes_.clear(); });
    loop_.Stop();
    thread_.join();
  }

  void Do(const std::function<void()>& action) override {
    std::promise<void> done;
    loop_.Post([&] {
      action();
      done.set_value();
    });
    done.get_future().get();
  }
  bool Eventually(const std::function<bool()>& predicate, Duration limit = 20s) override {
    const TimePoint end = Now() + limit;
    for (bool holds = false; Now() < end; std::this_thread::yield()) {
      Do([&] { holds = predicate(); });
      if (holds) return true;
      std::this_thread::sleep_for(100us);  // between looks, not instead of them
    }
    return false;
  }
  TimePoint Now() const override { return Clock::Steady().Now(); }
  asio::io_context& context() override { return loop_.context(); }
  void Add(const PeerId& id) override {
    Do([&] {
      UcxOptions options;
      options.self = id;
      options.local_ip = "127.0.0.1";
      auto transport = UcxTransport::Create(loop_, options);
      CHECK(transport.ok());
      nodes_[id.incarnation] = *std::move(transport);
    });
  }
  void Destroy(const PeerId& id) override {
    Do([&] { nodes_.erase(id.incarnation); });
  }
  UcxTransport& node(const PeerId& id) override { return *nodes_.at(id.incarnation); }
  EventLoop& loop() { return loop_; }

 private:
  EventLoop loop_;
  std::map<uint64_t, std::unique_ptr<UcxTransport>> nodes_;
  std::thread thread_;
};

}  // namespace datasystem::transport
