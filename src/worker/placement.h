// The cache memory and the network device that carries it: on which NUMA nodes they are, and how
// far apart.
//
// For the status report, and for a warning when every value that crosses the network crosses the
// processors' link too.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "shm/cache_memory.h"
#include "shm/placement.h"

namespace datasystem::worker {

// The kernel's measure: 10 is the node itself, usually 20 or so the next. 0 if it is not known.
// `sysfs_root` is "/sys" but in tests.
int NodeDistance(int from, int to, const std::string& sysfs_root = "/sys");

// Threads: the event loop's.
class Placement {
 public:
  // `memory` must outlive it. `local_ip` is the worker's, `rdma` whether its lanes may be RDMA's.
  Placement(const shm::CacheMemory& memory, const Clock& clock, std::string_view local_ip,
            bool rdma);

  uint64_t page_bytes() const { return page_bytes_; }    // in use; 0 if the kernel does not say
  const std::string& device() const { return device_; }  // "mlx5_0:1", "eth0"
  int device_node() const { return device_node_; }       // -1 if the system does not say
  shm::NodeShares nodes() const;

  // Called now and then: warns once, when memory turns out to be on another node than the device.
  void Watch();

 private:
  const shm::CacheMemory& memory_;
  const Clock& clock_;
  uint64_t page_bytes_ = 0;
  std::string device_;
  int device_node_ = -1;
  bool warned_ = false;
  TimePoint next_look_;
};

// The warning for memory spread as `nodes`, or nothing: all of it is on the device's node, or that
// is not known.
std::optional<std::string> FarMemory(const shm::NodeShares& nodes, const std::string& device,
                                     int device_node, const std::string& sysfs_root = "/sys");

}  // namespace datasystem::worker
