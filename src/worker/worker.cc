#include "worker/worker.h"

#include <signal.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/signal_set.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/event_loop.h"
#include "base/log.h"
#include "base/random.h"
#include "cluster/embedded_store.h"
#include "cluster/etcd_store.h"
#include "cluster/membership.h"
#include "cluster/registration.h"
#include "transport/ucx_transport.h"
#include "worker/client_service.h"
#include "worker/listener.h"
#include "worker/liveness.h"
#include "worker/peer_service.h"
#include "worker/placement.h"
#include "worker/probe_files.h"
#include "worker/report.h"
#include "worker/ring_follower.h"
#include "worker/version.h"

namespace datasystem::worker {
namespace {

constexpr size_t kSweepBatch = 1000;
constexpr auto kSweepIntervalMax = std::chrono::seconds(1);
constexpr auto kRejoinPause = std::chrono::seconds(1);
// Objects that background eviction drops in one go: about a millisecond.
constexpr size_t kEvictBatch = 1000;
// A client that writes often uses a lease within a second (client/lease_book.h).
constexpr auto kLeaseIdleMax = std::chrono::seconds(2);
// Of the cache memory: what keys and records of many small objects may take beside it.
constexpr uint64_t kIndexShare = 2;
constexpr uint64_t kIndexBytesMin = 64 << 20;

std::string UnixSocketPath(const WorkerOptions& options) {
  std::string host = options.worker_address.host;
  for (char& c : host) {
    if (c == ':') c = '.';
  }
  return fmt::format("{}/{}-{}.sock", options.unix_socket_dir, host, options.worker_address.port);
}

}  // namespace

struct Worker::Parts {
  explicit Parts(const WorkerOptions& options)
      : options(options), self{options.worker_address.ToString(), RandomId()} {}

  Status Open();
  Status OpenStore();
  void StartServing();
  Status Join();
  void OnLost(Status reason);
  void OnSettled();
  void RejoinUntilDone(std::stop_token stop);
  asio::awaitable<void> KeepHouse();
  void Leave();
  cluster::Member Registration() const;

  const WorkerOptions options;
  const transport::PeerId self;
  const Clock& clock = Clock::Steady();
  TimePoint started_at = clock.Now();
  std::unique_ptr<shm::CacheMemory> memory;
  std::unique_ptr<Placement> placement;
  std::unique_ptr<shm::Index> index;
  EventLoop loop;
  std::unique_ptr<Listener> tcp_listener;
  std::unique_ptr<Listener> unix_listener;
  ProbeFiles probes{{options.health_check_path, options.ready_check_path}};
  Liveness liveness{loop, {options.liveness_check_path, options.liveness_timeout}};
  std::unique_ptr<transport::UcxTransport> transport;
  ClusterView view{loop.context(), clock, self};
  PendingKeys pending{loop.context()};
  Holder holder;
  std::unique_ptr<store::ObjectStore> store;
  directory::Directory directory{loop.context(), clock, holder};
  std::unique_ptr<Node> node;
  std::unique_ptr<ObjectService> objects;
  std::unique_ptr<PeerService> peer_service;
  std::unique_ptr<RingFollower> ring_follower;
  std::unique_ptr<session::ChannelPoller> channels;
  std::unique_ptr<ClientService> clients;
  std::unique_ptr<cluster::LeaseStore> lease_store;
  std::unique_ptr<cluster::Membership> membership;
  std::jthread rejoining;  // blocks on the cluster store, so it cannot be the loop's
  asio::signal_set signals{loop.context(), SIGTERM, SIGINT};
  Status failure;          // why the loop was stopped, if not by a signal
  bool ready = false;
};

Status Worker::Parts::Open() {
  // Cheap refusals first: nobody should wait for gigabytes to be told that a port is taken.
  ASSIGN_OR_RETURN(tcp_listener, Listener::OpenTcp(loop.context(), options.bind_address));
  if (options.offer_shared_memory) {
    ASSIGN_OR_RETURN(unix_listener, Listener::OpenUnix(loop.context(), UnixSocketPath(options)));
  }
  RETURN_IF_ERROR(probes.Prepare());
  RETURN_IF_ERROR(liveness.Prepare());
  RETURN_IF_ERROR(OpenStore());

  transport::UcxOptions ucx;
  ucx.self = self;
  ucx.enable_rdma = options.enable_rdma;
  ucx.local_ip = options.worker_address.host;
  ucx.registered_bytes = options.memory.size_bytes;
  ASSIGN_OR_RETURN(transport, transport::UcxTransport::Create(loop, ucx));
  ASSIGN_OR_RETURN(memory, shm::CacheMemory::Create(options.memory));
  for (const shm::SegmentHandle& segment : memory->segments()) {
    ASSIGN_OR_RETURN(const auto bytes, memory->Resolve({segment.id, 0, segment.size_bytes}));
    RETURN_IF_ERROR(transport->RegisterMemory(bytes));
  }
  placement = std::make_unique<Placement>(*memory, clock, options.worker_address.host, options.enable_rdma);

  shm::IndexOptions index_options;
  index_options.bytes_max = std::max(options.memory.size_bytes / kIndexShare, kIndexBytesMin);
  index_options.incarnation = self.incarnation;
  ASSIGN_OR_RETURN(index, shm::Index::Create(index_options));
  store = std::make_unique<store::ObjectStore>(
      *memory, *index, clock, [this](const store::Object& object) { holder.NoteDropped(object); });
  node = std::make_unique<Node>(
      Node{loop.context(), clock, view, *store, directory, *transport, pending});
  holder.Bind(node.get());
  ObjectService::Options service_options;
  service_options.keep_copies = options.keep_copies;
  objects = std::make_unique<ObjectService>(*node, holder, service_options);
  peer_service = std::make_unique<PeerService>(*node, holder, options.many);
  ring_follower = std::make_unique<RingFollower>(*node, holder, [this] { OnSettled(); });
  transport->SetRequestHandler(
      [this](transport::Request request) { peer_service->Handle(std::move(request)); });

  ASSIGN_OR_RETURN(channels, session::ChannelPoller::Create());
  loop.AddPoller(channels.get());
  ClientServiceOptions client_options;
  client_options.worker_version = kVersion;
  client_options.worker_incarnation = self.incarnation;
  client_options.unix_socket_path = unix_listener ? UnixSocketPath(options) : "";
  client_options.inline_threshold_bytes = options.inline_threshold_bytes;
  client_options.clients_max = options.clients_max;
  clients = std::make_unique<ClientService>(
      loop.context(), clock, *memory, *store, *index, *objects, *channels, std::move(client_options),
      [this] {
        return StatusReport({.version = kVersion,
                             .cluster_name = options.cluster_name,
                             .etcd_address = options.etcd_address,
                             .enable_rdma = options.enable_rdma,
                             .ready = ready,
                             .started_at = started_at,
                             .node = *node,
                             .memory = *memory,
                             .placement = *placement,
                             .index = *index,
                             .sessions = clients->sessions(),
                             .refused_connections = clients->refused(),
                             .counters = objects->counters()});
      });
  store->set_take_back([this] { return clients->TakeBackLeases(TimePoint::max()); });
  return Status::OK();
}

Status Worker::Parts::OpenStore() {
  if (options.etcd_address.empty()) {
    lease_store = cluster::CreateEmbeddedStore();
    return Status::OK();
  }
  cluster::EtcdOptions etcd;
  etcd.endpoints = options.etcd_address;
  ASSIGN_OR_RETURN(lease_store, cluster::ConnectEtcd(std::move(etcd)));
  return Status::OK();
}

void Worker::Parts::StartServing() {
  tcp_listener->Start([this](Listener::Socket socket, std::string peer) {
    clients->Accept(std::move(socket), std::move(peer), /*is_unix=*/false);
  });
  if (unix_listener) {
    unix_listener->Start([this](Listener::Socket socket, std::string peer) {
      clients->Accept(std::move(socket), std::move(peer), /*is_unix=*/true);
    });
  }
  liveness.Start();
  asio::co_spawn(loop.context(), KeepHouse(), asio::detached);
}

cluster::Member Worker::Parts::Registration() const {
  cluster::Member member;
  member.address = self.address;
  member.incarnation = self.incarnation;
  member.endpoint = transport->endpoint();
  member.protocol_min = proto::kPeerProtocolMin;
  member.protocol_max = proto::kPeerProtocolMax;
  member.version = kVersion;
  return member;
}

// Blocks on the store, so it runs before the loop does.
Status Worker::Parts::Join() {
  cluster::MembershipOptions membership_options;
  membership_options.prefix = cluster::RegistrationPrefix(options.cluster_name);
  membership_options.lease_ttl = options.lease_ttl;
  membership_options.renew_interval = options.renew_interval;
  cluster::MembershipEvents events;
  events.on_view = [this](cluster::View next) {
    // Here, not on the loop: the ring of a large cluster takes a while to build.
    std::vector<std::string> addresses;
    for (const cluster::Member& member : next.members) addresses.push_back(member.address);
    auto ring = std::make_shared<const cluster::HashRing>(std::move(addresses));
    loop.Post([this, next = std::move(next), ring = std::move(ring)]() mutable {
      ring_follower->OnView(std::move(next), std::move(ring));
    });
  };
  events.on_valid_until = [this](TimePoint until) {
    loop.Post([this, until] {
      view.set_valid_until(until);
      index->set_valid_until(until);
      view.set_fence_reason("the lease could not be renewed in time; is the cluster store reachable?");
    });
  };
  events.on_lost = [this](Status reason) {
    loop.Post([this, reason = std::move(reason)] { OnLost(reason); });
  };
  ASSIGN_OR_RETURN(membership, cluster::Membership::Join(*lease_store, Registration(),
                                                         membership_options, std::move(events)));
  return Status::OK();
}

void Worker::Parts::OnSettled() {
  if (std::exchange(ready, true)) return;
  const Status marked = probes.MarkReady();
  if (marked.IsError()) LOG_ERROR("ready file not written reason={}", marked.GetMsg());
  LOG_INFO("worker is ready address={} epoch={} after_ms={}", self.address, view.epoch(),
           std::chrono::duration_cast<std::chrono::milliseconds>(clock.Now() - started_at).count());
}

void Worker::Parts::OnLost(Status reason) {
  index->set_valid_until(TimePoint::min());
  const size_t dropped = ring_follower->OnLost(
      fmt::format("its lease is lost ({}), it is joining again", reason.GetMsg()));
  ready = false;
  probes.ClearReady();
  if (reason.GetCode() == K_DUPLICATED) {
    // Two workers that take turns at one address would lose data at each turn.
    LOG_ERROR("stopping: another worker registered this address reason={} objects={}", reason.GetMsg(),
              dropped);
    failure = reason;
    loop.Stop();
    return;
  }
  LOG_ERROR("lease lost, dropped all objects and joining again reason={} objects={}", reason.GetMsg(),
            dropped);
  rejoining = std::jthread([this](std::stop_token stop) { RejoinUntilDone(stop); });
}

void Worker::Parts::RejoinUntilDone(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const Status joined = membership->Rejoin(Registration());
    if (joined.IsOk()) return;
    if (joined.GetCode() == K_RUNTIME_ERROR) {
      loop.Post([this, joined] {
        LOG_ERROR("stopping: cannot join again reason={}", joined.GetMsg());
        failure = joined;
        loop.Stop();
      });
      return;
    }
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_for(lock, stop, kRejoinPause, [] { return false; });
  }
}

// Memory of expired and of overwritten objects comes back, and some stays free for what is written next.
asio::awaitable<void> Worker::Parts::KeepHouse() {
  for (bool evicting = false;;) {
    const TimePoint next = store->SweepExpired(kSweepBatch);
    const uint64_t reserved = memory->usage().reserved_bytes;
    if (reserved > options.watermarks.high_bytes) evicting = true;
    if (reserved <= options.watermarks.low_bytes) evicting = false;
    if (evicting) {
      evicting = store->EvictSome(reserved - options.watermarks.low_bytes, kEvictBatch) == kEvictBatch;
    }
    store->Reclaim();
    placement->Watch();
    clients->TakeBackLeases(clock.Now() - kLeaseIdleMax);
    if (evicting) {
      co_await Pause(loop.context(), std::chrono::milliseconds(1));
      continue;
    }
    const TimePoint latest = clock.Now() + kSweepIntervalMax;
    const Duration pause = std::max<Duration>(std::min(next, latest) - clock.Now(),
                                              std::chrono::milliseconds(10));
    co_await Pause(loop.context(), pause);
  }
}

void Worker::Parts::Leave() {
  probes.Clear();
  liveness.Stop();
  index->set_valid_until(TimePoint::min());  // before anybody may take over
  const uint64_t objects_held = store->stats().objects;
  const size_t others = view.view().members.size() > 0 ? view.view().members.size() - 1 : 0;
  LOG_INFO("leaving the cluster address={} objects_lost={} other_members={}", self.address, objects_held,
           others);
  const Status left = membership->Leave();
  if (left.IsError()) {
    LOG_WARNING("registration not removed, others wait for the lease to end reason={}", left.GetMsg());
  }
}

Worker::Worker(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Worker::~Worker() {
  // Coroutines that are suspended hold references to the parts: they go first. Those that wait for a peer's
  // answer are the transport's until it lets go of them.
  parts_->rejoining = std::jthread();
  parts_->membership.reset();
  if (parts_->transport) parts_->transport->EndCalls();
  if (parts_->channels) {
    parts_->loop.RemovePoller(parts_->channels.get());
    parts_->channels.reset();
  }
  parts_->loop.DestroyPending();
}

Result<std::unique_ptr<Worker>> Worker::Create(const WorkerOptions& options) {
  std::unique_ptr<Worker> worker(new Worker(std::make_unique<Parts>(options)));
  RETURN_IF_ERROR(worker->parts_->Open());
  return worker;
}

Status Worker::Run() {
  RETURN_IF_ERROR(parts_->Join());
  const Status healthy = parts_->probes.MarkHealthy();
  if (healthy.IsError()) return healthy;
  parts_->StartServing();
  parts_->signals.async_wait([this](asio::error_code error, int signal) {
    if (error) return;
    LOG_INFO("stopping signal={}", signal);
    Stop();
  });
  parts_->loop.Run();
  parts_->rejoining = std::jthread();
  parts_->Leave();
  return parts_->failure;
}

void Worker::Stop() { parts_->loop.Stop(); }

void Worker::SetRenewInterval(std::chrono::milliseconds interval) {
  // The loop runs only after the membership has begun.
  parts_->loop.Post([parts = parts_.get(), interval] {
    const Status set = parts->membership->SetRenewInterval(interval);
    if (set.IsError()) LOG_ERROR("interval of renewals not changed reason={}", set.GetMsg());
  });
}

}  // namespace datasystem::worker
