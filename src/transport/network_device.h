// Which network devices of this machine carry a given address.
#pragma once

#include <string>
#include <string_view>

namespace datasystem::transport {

// The interface that has `ip`, else the one whose network holds it (127.0.0.2: "lo"). "" if there is none.
std::string InterfaceOf(std::string_view ip);

// The RDMA device and port bound to a network interface, as UCX names it ("mlx5_0:1"). "" if there is none.
// `sysfs_root` is "/sys" but in tests.
std::string RdmaDeviceOf(std::string_view interface, const std::string& sysfs_root = "/sys");

}  // namespace datasystem::transport
