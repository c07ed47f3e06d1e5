// The cluster store in etcd (v3 API over gRPC).
#pragma once

#include "cluster/lease_store.h"

namespace datasystem::cluster {

struct EtcdOptions {
  // Comma list of `ip:port`, `[ip6]:port` or `name:port`, members of one etcd cluster. One is used
  // at a time; when it does not answer, the next.
  std::string endpoints;
};

// Does not wait for a connection: the first call finds out. kInvalid names the endpoint that is
// malformed.
Result<std::unique_ptr<LeaseStore>> ConnectEtcd(EtcdOptions options);

}  // namespace datasystem::cluster
