// Several workers inside the test's process, without clients: everything that serves objects is
// real but the transport, which hands messages over in memory. A test can hold back what it likes
// to look at the time between.
#pragma once

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "shm/cache_memory.h"
#include "transport/places.h"
#include "worker/object_service.h"
#include "worker/peer_service.h"
#include "worker/ring_follower.h"

namespace datasystem::worker {

using proto::PeerMessage;

class DirectTransport;

// What all transports of a test share.
struct Wire {
  explicit Wire(asio::io_context& io) : context(io) {}

  void Carry(PeerMessage type, bool answer, std::function<void()> deliver) {
    ++(answer ? answers : requests)[type];
    if (hold && hold(type, answer)) {
      held.push_back(std::move(deliver));
    } else {
      asio::post(context, std::move(deliver));
    }
  }
  void Release() {
    hold = nullptr;
    for (auto& deliver : std::exchange(held, {})) asio::post(context, std::move(deliver));
  }

  asio::io_context& context;
  std::map<uint64_t, DirectTransport*> nodes;
  std::function<bool(PeerMessage type, bool answer)> hold;
  std::vector<std::function<void()>> held;
  std::map<PeerMessage, int> requests;
  std::map<PeerMessage, int> answers;
  int payloads = 0;
};

class DirectTransport final : public transport::Transport {
 public:
  DirectTransport(Wire& wire, transport::PeerId self) : wire_(wire), self_(std::move(self)) {
    wire_.nodes[self_.incarnation] = this;
  }

  std::string endpoint() const override { return "direct"; }
  void SetPeers(std::vector<transport::Peer>) override {}
  void SetRequestHandler(RequestHandler handler) override { handler_ = std::move(handler); }
  std::vector<transport::PeerStatus> peers() const override { return {}; }

  asio::awaitable<Result<transport::Answer>> Call(
      transport::PeerId to, uint16_t type, std::string body, TimePoint deadline,
      std::shared_ptr<transport::PayloadTarget> target) override {
    const uint64_t id = ++calls_;
    auto call = std::make_shared<Pending>(wire_.context);
    call->target = std::move(target);
    pending_[id] = call;
    transport::Request request;
    request.type = type;
    request.body = std::move(body);
    request.from = {self_, id};
    Send(to, std::move(request));
    while (!call->result && std::chrono::steady_clock::now() < deadline)
      co_await call->done.Wait(deadline);
    pending_.erase(id);
    if (!call->result) co_return errors::DeadlineExceeded("no answer from {}", to.address);
    co_return *call->result;
  }

  void Respond(const transport::ReturnAddress& to, const Status& status, std::string body,
               transport::Payload payload) override {
    const auto type = static_cast<PeerMessage>(serving_[{to.caller.incarnation, to.request_id}]);
    wire_.payloads += payload.size() > 0 ? 1 : 0;
    wire_.Carry(type, true, [this, to, status, body, payload] {
      wire_.nodes.at(to.caller.incarnation)->Finish(to.request_id, status, body, payload, self_);
    });
  }

  void Forward(const transport::ReturnAddress& caller, const transport::PeerId& to, uint16_t type,
               std::string body) override {
    transport::Request request;
    request.type = type;
    request.body = std::move(body);
    request.from = caller;
    Send(to, std::move(request));
  }

 private:
  struct Pending {
    explicit Pending(asio::io_context& context) : done(context) {}
    std::shared_ptr<transport::PayloadTarget> target;
    std::optional<Result<transport::Answer>> result;
    WaitList done;
  };

  void Send(const transport::PeerId& to, transport::Request request) {
    wire_.Carry(static_cast<PeerMessage>(request.type), false,
                [this, to, request = std::move(request)] {
                  DirectTransport& receiver = *wire_.nodes.at(to.incarnation);
                  receiver.serving_[{request.from.caller.incarnation, request.from.request_id}] =
                      request.type;
                  receiver.handler_(request);
                });
  }

  void Finish(uint64_t id, const Status& status, const std::string& body,
              const transport::Payload& payload, const transport::PeerId& from) {
    const auto found = pending_.find(id);
    if (found == pending_.end()) return;
    Pending& call = *found->second;
    call.result =
        status.IsError() ? Result<transport::Answer>(status) : Receive(call, body, payload, from);
    call.done.NotifyAll();
  }

  static Result<transport::Answer> Receive(Pending& call, const std::string& body,
                                           const transport::Payload& payload,
                                           const transport::PeerId& from) {
    if (payload.size() > 0) {
      CHECK(call.target != nullptr);
      ASSIGN_OR_RETURN(const transport::Places places, call.target->Prepare(body, payload.size()));
      transport::Scatter(payload.parts, places);
    }
    transport::Answer answer;
    answer.body = body;
    answer.payload_size = payload.size();
    answer.from = from;
    return answer;
  }

  Wire& wire_;
  const transport::PeerId self_;
  RequestHandler handler_;
  uint64_t calls_ = 0;
  std::map<uint64_t, std::shared_ptr<Pending>> pending_;
  std::map<std::pair<uint64_t, uint64_t>, uint16_t> serving_;
};

// One worker's parts; the order is that of Worker::Parts.
struct TestWorker {
  TestWorker(asio::io_context& context, Wire& wire, transport::PeerId self,
             ObjectService::Options options)
      : transport(wire, self),
        view(context, clock, self),
        pending(context),
        directory(context, clock, holder),
        node{context, clock, view, store, directory, transport, pending},
        objects(node, holder, options),
        peer_service(node, holder),
        follower(node, holder, [] {}) {
    holder.Bind(&node);
    view.set_valid_until(TimePoint::max());
    transport.SetRequestHandler(
        [this](transport::Request request) { peer_service.Handle(std::move(request)); });
  }

  static std::unique_ptr<shm::CacheMemory> Memory() {
    shm::CacheMemoryOptions options;
    options.size_bytes = 32 << 20;
    auto memory = shm::CacheMemory::Create(options);
    CHECK(memory.ok());
    return std::move(memory).value();
  }

  const Clock& clock = Clock::Steady();
  std::unique_ptr<shm::CacheMemory> memory = Memory();
  DirectTransport transport;
  ClusterView view;
  PendingKeys pending;
  Holder holder;
  std::unique_ptr<shm::Index> index = shm::Index::Create({.bytes_max = 16 << 20}).value();
  store::ObjectStore store{*memory, *index, clock,
                           [this](const store::Object& object) { holder.NoteDropped(object); }};
  directory::Directory directory;
  const Node node;
  ObjectService objects;
  PeerService peer_service;
  RingFollower follower;
};

// Workers 1 to `count`, in one cluster. Operations run on the caller's thread, in real time.
class TestWorkers {
 public:
  explicit TestWorkers(uint64_t count, ObjectService::Options options = {}) {
    for (uint64_t id = 1; id <= count; ++id) {
      workers_[id] = std::make_unique<TestWorker>(context_, wire_, IdOf(id), options);
    }
    NewEpoch(10);
  }
  // Coroutines that still wait refer to the workers.
  ~TestWorkers() { context_.shutdown(); }

  TestWorker& operator[](uint64_t id) { return *workers_.at(id); }
  Wire& wire() { return wire_; }
  static transport::PeerId IdOf(uint64_t id) {
    return {"127.0.0." + std::to_string(id) + ":31501", id};
  }
  static TimePoint Deadline(Duration within = std::chrono::seconds(20)) {
    return std::chrono::steady_clock::now() + within;
  }

  // All learn of it, one after the other; the members stay the same.
  void NewEpoch(uint64_t epoch) {
    for (const auto& [id, worker] : workers_) Announce(epoch, id);
    CHECK(RunUntil([&] {
      return std::all_of(workers_.begin(), workers_.end(),
                         [](const auto& worker) { return worker.second->directory.settled(); });
    }));
  }
  // One of them learns of it.
  void Announce(uint64_t epoch, uint64_t to) {
    cluster::View view;
    view.epoch = epoch;
    std::vector<std::string> addresses;
    for (const auto& [id, worker] : workers_) {
      cluster::Member member;
      member.address = IdOf(id).address;
      member.incarnation = id;
      view.members.push_back(member);
      addresses.push_back(member.address);
    }
    ring_ = std::make_shared<cluster::HashRing>(addresses);
    workers_.at(to)->follower.OnView(view, ring_);
  }
  // A key whose directory shard is at this worker.
  std::string KeyAt(uint64_t shard, int skip = 0) const {
    for (int i = 0;; ++i) {
      const std::string key = "key" + std::to_string(i);
      if (ring_->OwnerOf(key) == IdOf(shard).address && skip-- == 0) return key;
    }
  }

  bool RunUntil(const std::function<bool()>& done, Duration limit = std::chrono::seconds(20)) {
    const TimePoint end = Deadline(limit);
    while (!done()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      context_.run_one_for(std::chrono::milliseconds(10));
    }
    return true;
  }
  // What can happen now, happens.
  void Poll() {
    while (context_.poll() > 0) {
    }
  }

  template <typename T>
  using Pending = std::shared_ptr<std::optional<T>>;
  template <typename T>
  Pending<T> Start(asio::awaitable<T> operation) {
    auto result = std::make_shared<std::optional<T>>();
    const auto run = [](asio::awaitable<T> op, Pending<T> out) -> asio::awaitable<void> {
      *out = co_await std::move(op);
    };
    asio::co_spawn(context_, run(std::move(operation), result), asio::detached);
    Poll();
    return result;
  }
  template <typename T>
  T Await(const Pending<T>& pending) {
    CHECK(RunUntil([&] { return pending->has_value(); }));
    return **pending;
  }
  template <typename T>
  T Run(asio::awaitable<T> operation) {
    return Await(Start(std::move(operation)));
  }

  shm::Extent ExtentOf(uint64_t worker, std::string_view value) {
    auto extent = (*this)[worker].store.Allocate(value.size());
    CHECK(extent.ok());
    std::memcpy(extent->bytes().data(), value.data(), value.size());
    return std::move(extent).value();
  }
  Pending<Status> StartSet(uint64_t worker, std::string key, std::string_view value,
                           SetOptions options = {}) {
    const auto set = [](ObjectService& objects, std::string name, shm::Extent extent,
                        SetOptions how) -> asio::awaitable<Status> {
      co_return co_await objects.Set(std::move(name), extent, how, Deadline());
    };
    return Start(set((*this)[worker].objects, std::move(key), ExtentOf(worker, value), options));
  }
  Status Set(uint64_t worker, std::string key, std::string_view value, SetOptions options = {}) {
    return Await(StartSet(worker, std::move(key), value, options));
  }
  // Each key's value is the key.
  Pending<Status> StartSetAll(uint64_t worker, std::vector<std::string> keys,
                              SetOptions options = {.only_if_absent = true}) {
    std::vector<shm::Extent> extents;
    for (const std::string& key : keys) extents.push_back(ExtentOf(worker, key));
    const auto set = [](ObjectService& objects, std::vector<std::string> names,
                        std::vector<shm::Extent> values,
                        SetOptions how) -> asio::awaitable<Status> {
      co_return co_await objects.SetAll(std::move(names), values, how, Deadline());
    };
    return Start(set((*this)[worker].objects, std::move(keys), std::move(extents), options));
  }
  Pending<Result<store::ObjectRef>> StartGet(uint64_t worker, std::string key,
                                             Duration within = std::chrono::seconds(20),
                                             TimePoint wait_until = TimePoint::min()) {
    return Start((*this)[worker].objects.Get(std::move(key), wait_until, Deadline(within)));
  }
  Pending<std::vector<Result<store::ObjectRef>>> StartGetMany(
      uint64_t worker, std::vector<std::string> keys, Duration within = std::chrono::seconds(20),
      TimePoint wait_until = TimePoint::min()) {
    return Start((*this)[worker].objects.GetMany(std::move(keys), wait_until, Deadline(within)));
  }
  std::vector<std::string> GetMany(uint64_t worker, std::vector<std::string> keys) {
    std::vector<std::string> values;
    for (const auto& got : Await(StartGetMany(worker, std::move(keys))))
      values.push_back(ValueOf(got));
    return values;
  }
  // The value, or the name of the error.
  std::string Get(uint64_t worker, std::string key) {
    return ValueOf(Await(StartGet(worker, std::move(key))));
  }
  static std::string ValueOf(const Result<store::ObjectRef>& got) {
    if (!got.ok()) return "error " + std::to_string(got.status().GetCode());
    const auto bytes = got->bytes();
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  bool Exists(uint64_t worker, std::string key) {
    std::vector<std::string> keys(1, std::move(key));
    return Run((*this)[worker].objects.Exist(std::move(keys), Deadline())).value()[0];
  }

 private:
  struct Context : asio::io_context {
    using asio::io_context::shutdown;
  };
  Context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  Wire wire_{context_};
  cluster::SharedRing ring_;
  std::map<uint64_t, std::unique_ptr<TestWorker>> workers_;
};

}  // namespace datasystem::worker
