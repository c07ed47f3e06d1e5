#include "worker/placement.h"

#include <fmt/format.h>

#include <fstream>

#include "base/check.h"
#include "base/log.h"
#include "transport/survey.h"

namespace datasystem::worker {
namespace {

constexpr auto kLookEvery = std::chrono::seconds(10);

// There is one, of which all arenas are parts.
std::span<const std::byte> Bytes(const shm::CacheMemory& memory) {
  const shm::SegmentHandle segment = memory.segments().front();
  const auto bytes = memory.Resolve({segment.id, 0, segment.size_bytes});
  CHECK(bytes.ok());
  return *bytes;
}

}  // namespace

int NodeDistance(int from, int to, const std::string& sysfs_root) {
  std::ifstream file(fmt::format("{}/devices/system/node/node{}/distance", sysfs_root, from));
  int distance = 0;
  for (int node = 0; node <= to;
       ++node) {  // in the order of the nodes that are online: usually all
    if (!(file >> distance)) return 0;
  }
  return distance;
}

std::optional<std::string> FarMemory(const shm::NodeShares& nodes, const std::string& device,
                                     int device_node, const std::string& sysfs_root) {
  if (device_node < 0) return std::nullopt;
  uint32_t all = 0;
  uint32_t far = 0;
  std::string where;
  for (const auto& [node, places] : nodes) {
    all += places;
    if (node == device_node) continue;
    far += places;
    where += fmt::format("{}{} (distance {})", where.empty() ? "" : ", ", node,
                         NodeDistance(device_node, node, sysfs_root));
  }
  if (far == 0) return std::nullopt;
  return fmt::format(
      "{} % of the cache memory is on another NUMA node than the network device {}, which makes "
      "transfers slower; "
      "start with `dscli start --cpunodebind {} --membind {} -w ...` device_node={} "
      "memory_nodes={}",
      100 * far / all, device, device_node, device_node, device_node, where);
}

Placement::Placement(const shm::CacheMemory& memory, const Clock& clock, std::string_view local_ip,
                     bool rdma)
    : memory_(memory),
      clock_(clock),
      page_bytes_(shm::PageBytesOf(Bytes(memory)).value_or(0)),
      device_(transport::CarryingDevice(local_ip, rdma)),
      device_node_(transport::NumaNodeOf(device_)),
      next_look_(clock.Now()) {
  LOG_INFO("cache memory page_bytes={} network_device={} network_device_node={}", page_bytes_,
           device_, device_node_);
}

shm::NodeShares Placement::nodes() const { return shm::NodesOf(Bytes(memory_)); }

void Placement::Watch() {
  if (warned_ || device_node_ < 0 || clock_.Now() < next_look_) return;
  next_look_ = clock_.Now() + kLookEvery;
  const auto warning = FarMemory(nodes(), device_, device_node_);
  if (!warning) return;
  LOG_WARNING("{}", *warning);
  warned_ = true;
}

}  // namespace datasystem::worker
