#include "transport/ucx_payload.h"

#include <utility>

#include "transport/places.h"

namespace datasystem::transport {

void EagerPayload::Receive(Places into, std::function<void(Status)> done) {
  Scatter({&bytes_, 1}, into);
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
  std::vector<ucp_dt_iov_t> places;  // UCX looks at it until the end
};

RendezvousPayload::~RendezvousPayload() {
  if (descriptor_ != nullptr) ucp_am_data_release(worker_, descriptor_);
}

void RendezvousPayload::Receive(Places into, std::function<void(Status)> done) {
  auto transfer = std::make_unique<Transfer>(Transfer{std::move(done), receiving_, {}});
  ucp_request_param_t params{};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  params.cb.recv_am = &RendezvousPayload::OnReceived;
  params.user_data = transfer.get();
  void* buffer = into[0].data();
  size_t count = into[0].size();
  if (into.size() > 1) {
    for (const auto& place : into) transfer->places.push_back({place.data(), place.size()});
    params.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    params.datatype = ucp_dt_make_iov();
    buffer = transfer->places.data();
    count = transfer->places.size();
  }
  ++receiving_;
  // UCX owns the descriptor from here on, whatever happens.
  ucs_status_ptr_t request = ucp_am_recv_data_nbx(worker_, std::exchange(descriptor_, nullptr), buffer,
                                                  count, &params);
  Transfer* started = transfer.release();
  if (!UCS_PTR_IS_PTR(request)) OnReceived(nullptr, UCS_PTR_STATUS(request), 0, started);
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
