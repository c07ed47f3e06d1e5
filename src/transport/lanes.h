// Which UCX transports carry the traffic between workers: decided here, from the flags, UCX_TLS and what
// the machine offers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace datasystem::transport {

// One transport that UCX offers on one device, e.g. {"rc_mlx5", "mlx5_0:1"} or {"tcp", "eth0"}.
struct UcxDevice {
  std::string transport;
  std::string device;
};

// What UCX finds on this machine.
std::vector<UcxDevice> ListUcxDevices();
// "rc_mlx5/mlx5_0:1, tcp/eth0, ..." for messages.
std::string Describe(const std::vector<UcxDevice>& devices);
bool IsRdmaTransport(const std::string& transport);

struct LaneChoice {
  std::string tls;    // the value of UCX_TLS to use
  bool rdma = false;  // wants RDMA transports, and devices for them exist
};

// enable_rdma=false: tcp, whatever UCX_TLS says. Otherwise UCX_TLS as it is, or if it is not set rc_x,
// else the best RDMA transport there is. kRuntimeError when there is none, with the devices there are.
Result<LaneChoice> ChooseLanes(bool enable_rdma, const std::optional<std::string>& ucx_tls,
                               const std::vector<UcxDevice>& devices);

// How many cards register the cache memory: those with RDMA that `net_devices` (as in UCX_NET_DEVICES) does not leave
// out, at least 1. Each locks all of it, and the kernel counts it each time.
size_t CountCards(const std::vector<UcxDevice>& devices, const std::string& net_devices);

// Whether the limit on locked memory allows to register `needed_bytes` for RDMA; kRuntimeError with the
// remedy if not. Without RDMA nothing is locked.
Status CheckMemlock(uint64_t limit_bytes, uint64_t needed_bytes, bool rdma);

// What applies to this process: UINT64_MAX when unlimited, or exempt (CAP_IPC_LOCK).
uint64_t MemlockLimit();

}  // namespace datasystem::transport
