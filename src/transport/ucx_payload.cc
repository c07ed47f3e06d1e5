#include "transport/ucx_payload.h"

#include <cstring>
#include <utility>

namespace datasystem::transport {

void EagerPayload::Receive(std::span<std::byte> into, std::function<void(Status)> done) {
  std::memcpy(into.data(), bytes_.data(), bytes_.size());
  done(Status::OK());
}

void EagerPayload::Retain() {
  if (!copy_.empty()) return;
  copy_.assign(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  bytes_ = std::as_bytes(std::span(copy_));
}

struct RendezvousPayload::Transfer {
  std::function<void(Status)> done;
  size_t& receiving;
};

RendezvousPayload::~RendezvousPayload() {
  if (descriptor_ != nullptr) ucp_am_data_release(worker_, descriptor_);
}

void RendezvousPayload::Receive(std::span<std::byte> into, std::function<void(Status)> done) {
  auto transfer = std::make_unique<Transfer>(Transfer{std::move(done), receiving_});
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  params.cb.recv_am = &RendezvousPayload::OnReceived;
  params.user_data = transfer.get();
  ++receiving_;
  // UCX owns the descriptor from here on, whatever happens.
  ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker_, std::exchange(descriptor_, nullptr), into.data(),
                                                  into.size(), &params);
  Transfer* started = transfer.release();
  if (!UCS_PTR_IS_PTR(request)) OnReceived(nullptr, UCS_PTR_STATUS(request), into.size(), started);
}

void RendezvousPayload::OnReceived(void* request, ucs_status_t status, size_t, void* transfer) {
  if (request != nullptr) ucp_request_free(request);
  const std::unique_ptr<Transfer> owned(static_cast<Transfer*>(transfer));
  --owned->receiving;
  owned->done(status == UCS_OK
                  ? Status::OK()
                  : errors::PeerDead("the payload's transfer was cut off: {}", ucs_status_string(status)));
}

}  // namespace datasystem::transport
