// What UCX is and finds on this machine, for reports before a start: it decides nothing (lanes.h
// does).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "transport/lanes.h"

namespace datasystem::transport {

struct Survey {
  std::string ucx_version;                 // of the library that is loaded, not of its headers
  std::vector<std::string> ucx_libraries;  // its files in this process, modules included
  std::vector<UcxDevice> devices;
};

Survey SurveyUcx();

// The network device that carries the worker's traffic: the first of UCX_NET_DEVICES, else the one
// whose network holds `local_ip`, as an RDMA device ("mlx5_0:1") if `rdma` and there is one. "" if
// there is none.
std::string CarryingDevice(std::string_view local_ip, bool rdma);

// The NUMA node that such a device is attached to; -1 if the system does not say (virtual devices,
// one node). `sysfs_root` is "/sys" but in tests.
int NumaNodeOf(std::string_view device, const std::string& sysfs_root = "/sys");

}  // namespace datasystem::transport
