// Who is in the cluster, as the cluster store ordered it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace datasystem::cluster {

// One registered worker.
struct Member {
  std::string address;       // worker_address, "ip:port": unique in a cluster
  uint64_t incarnation = 0;  // one life of the process; never 0
  std::string endpoint;      // opaque transport endpoint (bytes)
  uint32_t protocol_min = 0;
  uint32_t protocol_max = 0;
  std::string version;

  bool operator==(const Member&) const = default;
};

// Two workers with the same epoch have the same members: the epoch is the cluster store's revision
// of the last change of any registration.
struct View {
  uint64_t epoch = 0;
  std::vector<Member> members;  // sorted by address

  const Member* Find(const std::string& address) const {
    for (const Member& member : members) {
      if (member.address == address) return &member;
    }
    return nullptr;
  }
};

}  // namespace datasystem::cluster
