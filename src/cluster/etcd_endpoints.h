// The addresses of etcd as operators write them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace datasystem::cluster {

struct EtcdEndpoint {
  std::string text;         // "10.0.0.1:2379", as given
  std::string grpc_target;  // "ipv4:10.0.0.1:2379"
};

// At least one. kInvalid names the endpoint that is malformed and what is wrong with it.
Result<std::vector<EtcdEndpoint>> ParseEtcdEndpoints(std::string_view comma_list);

}  // namespace datasystem::cluster
