// UCX set up for this process: lanes chosen, checked and opened, or refused with cause and remedy.
//
// Settings of the environment (UCX_*) win over ours, except that enable_rdma=false always means tcp.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/transport.h"

namespace datasystem::transport {

struct UcxOptions {
  PeerId self;
  bool enable_rdma = false;
  std::string local_ip;           // of worker_address: its network's device carries the traffic
  uint64_t registered_bytes = 0;  // what RegisterMemory() will get in all; for the check of memlock
};

// Threads: the event loop's.
class UcxContext {
 public:
  // kRuntimeError: lanes that cannot be had or carry nothing, locked memory; kNotSupported: built without RDMA.
  static Result<std::unique_ptr<UcxContext>> Create(const UcxOptions& options);
  ~UcxContext();

  // `memory` must stay mapped as long as this object lives.
  Status RegisterMemory(std::span<std::byte> memory);

  ucp_context_h context() const { return context_; }
  ucp_worker_h worker() const { return worker_; }
  size_t am_header_max() const { return am_header_max_; }
  // As UCX hands it out, unwrapped.
  const std::string& address() const { return address_; }
  // The lanes may be RDMA's.
  bool rdma() const { return rdma_; }

 private:
  UcxContext() = default;
  Status Open(const UcxOptions& options);
  Status CreateWorker();
  // Whether the lanes can carry messages to a process that may die, and do.
  Status CheckUsable();
  Status ConnectToSelf(ucp_ep_h endpoint);
  void Close(ucp_ep_h endpoint);

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  bool rdma_ = false;
  size_t am_header_max_ = 0;
  std::string address_;
  std::vector<ucp_mem_h> registered_;
};

}  // namespace datasystem::transport
