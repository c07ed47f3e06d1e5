#include "cluster/etcd_connection.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>

#include "base/random.h"

namespace datasystem::cluster {
namespace {

// etcd closes connections that ping more often than every 5 s. Only open streams (the watch) need
// pings: a dead host is noticed after 10 + 3 s there, and by the deadline of calls before.
constexpr int kKeepaliveTimeMs = 10'000;
constexpr int kKeepaliveTimeoutMs = 3'000;
constexpr int kConnectTimeoutMs = 3'000;
constexpr int kReconnectBackoffFirstMs = 50;
constexpr int kReconnectBackoffMaxMs = 500;
// A cluster's registrations come in one answer; gRPC's own limit of 4 MiB could be met at 10,000
// workers.
constexpr int kMessageSizeMax = 64 << 20;

std::shared_ptr<grpc::Channel> OpenChannel(const EtcdEndpoint& endpoint) {
  grpc::ChannelArguments args;
  // The cluster store is inside the cluster's network: a proxy of the environment is not meant for
  // it.
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // we retry, on another endpoint
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  args.SetInt(GRPC_ARG_HTTP2_MIN_SENT_PING_INTERVAL_WITHOUT_DATA_MS, kKeepaliveTimeMs);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
              kConnectTimeoutMs);  // its meaning in spite of its name
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectBackoffFirstMs);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectBackoffMaxMs);
  args.SetMaxReceiveMessageSize(kMessageSizeMax);
  return grpc::CreateCustomChannel(endpoint.grpc_target, grpc::InsecureChannelCredentials(), args);
}

std::chrono::system_clock::time_point ToSystemTime(TimePoint deadline) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(deadline -
                                                                         Clock::Steady().Now());
}

bool IsWorthAnotherAttempt(const grpc::Status& status) {
  // etcd answers UNAVAILABLE, too, while it has no leader.
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
}

Status FinalError(const std::string& endpoint, const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::NOT_FOUND:
      return errors::NotFound("etcd at {}: {}", endpoint, status.error_message());
    case grpc::StatusCode::OUT_OF_RANGE:
      return errors::OutOfRange("etcd at {}: {}", endpoint, status.error_message());
    default:
      return errors::StoreError(
          "etcd at {} refused a call: {}; does etcd_address name an etcd v3 server?", endpoint,
          EtcdConnection::CauseOf(status));
  }
}

}  // namespace

EtcdConnection::EtcdConnection(std::vector<EtcdEndpoint> endpoints)
    : endpoints_(std::move(endpoints)) {
  for (const EtcdEndpoint& endpoint : endpoints_) channels_.push_back(OpenChannel(endpoint));
}

EtcdConnection::~EtcdConnection() = default;

EtcdConnection::Pick EtcdConnection::Current() const {
  const std::lock_guard lock(mutex_);
  return {current_, channels_[current_]};
}

void EtcdConnection::MoveOn(const Pick& pick) {
  const std::lock_guard lock(mutex_);
  if (pick.index != current_ || endpoints_.size() == 1) return;
  current_ = (current_ + 1) % endpoints_.size();
  for (const auto& moved : moved_) moved();
}

Status EtcdConnection::Call(const CallLimits& limits,
                            const std::function<grpc::Status(const std::shared_ptr<grpc::Channel>&,
                                                             grpc::ClientContext&)>& attempt) {
  const TimePoint begin = Clock::Steady().Now();
  std::vector<std::string> causes(endpoints_.size());  // by endpoint
  size_t failed_in_a_row = 0;
  EtcdBackoff backoff;
  while (!limits.stop.stop_requested()) {
    const Pick pick = Current();
    // A silent endpoint must leave time for those that have not been asked.
    const Duration remaining = limits.deadline - Clock::Steady().Now();
    const Duration share = remaining / (endpoints_.size() - failed_in_a_row % endpoints_.size());
    grpc::ClientContext context;
    context.set_deadline(ToSystemTime(Clock::Steady().Now() + share));
    // The first round finds out the causes. From then on a call waits inside gRPC: a channel that
    // failed once fails calls at once, and connects again only while some call is waiting in it.
    context.set_wait_for_ready(failed_in_a_row >= endpoints_.size());
    grpc::Status status;
    {
      const std::stop_callback cancel(limits.stop, [&context] { context.TryCancel(); });
      status = attempt(pick.channel, context);
    }
    if (status.ok()) return Status::OK();
    if (limits.stop.stop_requested()) break;
    if (!IsWorthAnotherAttempt(status)) return FinalError(endpoint(pick), status);
    // An attempt that the deadline cut short says less than one that failed before.
    if (std::string& cause = causes[pick.index];
        cause.empty() || status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED) {
      cause = CauseOf(status);
    }
    MoveOn(pick);
    ++failed_in_a_row;
    const bool asked_all = failed_in_a_row % endpoints_.size() == 0;
    if (Clock::Steady().Now() >= limits.deadline || (asked_all && !backoff.Wait(limits))) {
      if (limits.stop.stop_requested()) break;
      std::string text;
      for (size_t i = 0; i < causes.size(); ++i) {
        if (causes[i].empty()) continue;
        if (!text.empty()) text += ", ";
        text += causes.size() == 1 ? causes[i] : endpoints_[i].text + ": " + causes[i];
      }
      return errors::StoreError(
          "cannot reach etcd at {} within {} ms: {}; is it running, is etcd_address right?",
          EndpointList(),
          std::chrono::ceil<std::chrono::milliseconds>(limits.deadline - begin).count(), text);
    }
  }
  return errors::Make(K_INTERRUPTED, "call to etcd at {} was stopped", EndpointList());
}

std::unique_ptr<EtcdConnection::Subscription> EtcdConnection::OnMove(std::function<void()> moved) {
  const std::lock_guard lock(mutex_);
  return std::make_unique<Subscription>(*this, moved_.insert(moved_.end(), std::move(moved)));
}

EtcdConnection::Subscription::~Subscription() {
  const std::lock_guard lock(connection_.mutex_);
  connection_.moved_.erase(place_);
}

std::string EtcdConnection::EndpointList() const {
  std::string list;
  for (const EtcdEndpoint& endpoint : endpoints_)
    list += (list.empty() ? "" : ", ") + endpoint.text;
  return list;
}

std::string EtcdConnection::CauseOf(const grpc::Status& status) {
  static constexpr std::pair<std::string_view, std::string_view> kKnown[] = {
      {"Connection refused", "connection refused"},
      {"No route to host", "no route to host"},
      {"Network is unreachable", "network is unreachable"},
      {"Connection reset", "connection reset"},
      {"DNS resolution failed", "the host name is not known"},
      {"Socket closed", "the connection was closed"},
      {"http1.x", "what answers there is not etcd"},
  };
  for (const auto& [text, cause] : kKnown) {
    if (status.error_message().find(text) != std::string::npos) return std::string(cause);
  }
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return "no answer";
  return status.error_message();
}

bool EtcdBackoff::Wait(const CallLimits& limits) {
  const auto half = next_ / 2;
  const auto wait = half + std::chrono::milliseconds(RandomId() % (half.count() + 1));
  next_ = std::min(next_ * 2, kMax);
  const TimePoint wake = std::min(Clock::Steady().Now() + wait, limits.deadline);
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, limits.stop, wake, [] { return false; });
  return !limits.stop.stop_requested() && Clock::Steady().Now() < limits.deadline;
}

}  // namespace datasystem::cluster
