// Payload of UCX active messages on its way in: eager (the bytes are here) or rendezvous (they are still
// at the sender and go straight to their place).
#pragma once

#include <ucp/api/ucp.h>

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "transport/carrier.h"

namespace datasystem::transport {

// `bytes` are valid in the active message's callback; Retain() copies them.
class EagerPayload final : public IncomingPayload {
 public:
  explicit EagerPayload(std::span<const std::byte> bytes) : bytes_(bytes) {}
  void Receive(Places into, std::function<void(Status)> done) override;
  void Retain() override;

 private:
  std::span<const std::byte> bytes_;
  std::string copy_;
};

// Owns UCX's descriptor, so the callback must return UCS_INPROGRESS.
class RendezvousPayload final : public IncomingPayload {
 public:
  // `receiving` counts transfers that UCX has not ended yet; it must outlive the worker's progress.
  RendezvousPayload(ucp_worker_h worker, void* descriptor, size_t& receiving)
      : worker_(worker), descriptor_(descriptor), receiving_(receiving) {}
  ~RendezvousPayload() override;
  void Receive(Places into, std::function<void(Status)> done) override;
  void Retain() override {}

 private:
  struct Transfer;
  static void OnReceived(void* request, ucs_status_t status, size_t length, void* transfer);

  ucp_worker_h worker_;
  void* descriptor_;
  size_t& receiving_;
};

}  // namespace datasystem::transport
