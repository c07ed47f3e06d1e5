// The gRPC channels to the members of an etcd cluster: which one is in use, retries, failover, and
// how failures read. What is asked of etcd is the business of etcd_store.cc and etcd_watch.cc.
//
// Internal to this folder. Threads: any.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cluster/etcd_endpoints.h"
#include "cluster/lease_store.h"

namespace grpc {
class Channel;
class ClientContext;
class Status;
}  // namespace grpc

namespace datasystem::cluster {

class EtcdConnection {
 public:
  explicit EtcdConnection(std::vector<EtcdEndpoint> endpoints);
  ~EtcdConnection();

  struct Pick {
    size_t index;
    std::shared_ptr<grpc::Channel> channel;
  };
  Pick Current() const;
  // The endpoint of `pick` failed: the next one is used from now on. Nothing if it is not the
  // current.
  void MoveOn(const Pick& pick);

  // Runs `attempt` until it succeeds, fails for good or the limits end it; moves on between
  // attempts when an endpoint does not answer. The context carries deadline and cancellation.
  Status Call(const CallLimits& limits,
              const std::function<grpc::Status(const std::shared_ptr<grpc::Channel>&,
                                               grpc::ClientContext&)>& attempt);

  // Calls `moved` (must not block, must not call back) whenever another endpoint becomes the
  // current one, until the returned subscription is destroyed.
  class Subscription;
  std::unique_ptr<Subscription> OnMove(std::function<void()> moved);

  const std::string& endpoint(const Pick& pick) const { return endpoints_[pick.index].text; }
  // "10.0.0.1:2379, 10.0.0.2:2379"
  std::string EndpointList() const;
  // What a gRPC failure means to an operator, e.g. "connection refused".
  static std::string CauseOf(const grpc::Status& status);

 private:
  const std::vector<EtcdEndpoint> endpoints_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;

  mutable std::mutex mutex_;  // guards what follows
  size_t current_ = 0;
  std::list<std::function<void()>> moved_;
};

class EtcdConnection::Subscription {
 public:
  Subscription(EtcdConnection& connection, std::list<std::function<void()>>::iterator place)
      : connection_(connection), place_(place) {}
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

 private:
  EtcdConnection& connection_;
  const std::list<std::function<void()>>::iterator place_;
};

// Waits between attempts: doubles from 20 ms to 500 ms, with jitter so that the workers of a
// cluster do not return to a recovered etcd in step.
class EtcdBackoff {
 public:
  // False: stopped, or the deadline came first.
  bool Wait(const CallLimits& limits);
  void Reset() { next_ = kFirst; }

 private:
  static constexpr std::chrono::milliseconds kFirst{20};
  static constexpr std::chrono::milliseconds kMax{500};
  std::chrono::milliseconds next_ = kFirst;
};

}  // namespace datasystem::cluster
