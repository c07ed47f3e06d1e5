#include "client/put.h"

#include <cstring>

namespace datasystem::client {

using proto::SessionMessage;

Result<Reservation> Reserve(const std::shared_ptr<Session>& session, uint64_t size,
                            const Deadline& deadline) {
  const proto::CreateRequest request{.size = size};
  ASSIGN_OR_RETURN(const proto::CreateReply reply,
                   Call<proto::CreateReply>(*session, SessionMessage::kCreate, request.Encode(), {},
                                            SessionMessage::kCreateReply, deadline));
  Reservation reservation{.claim = Claim::OfBuffer(session, reply.buffer_id)};
  auto bytes = session->Resolve(reply.location);
  if (!bytes.ok() || bytes->size() != size) {
    return errors::Runtime("worker {} does not keep to the protocol: asked for {} bytes of memory, it gave "
                           "segment {}, offset {}, size {}",
                           session->worker(), size, reply.location.segment, reply.location.offset,
                           reply.location.size);
  }
  reservation.bytes = *bytes;
  return reservation;
}

Status Publish(Reservation& reservation, const std::string& key, const proto::SetParam& param,
               const Deadline& deadline) {
  const proto::PublishRequest request{.buffer_id = reservation.claim.id(),
                                      .key = key,
                                      .param = param,
                                      .timeout_ms = deadline.worker_timeout_ms()};
  const std::shared_ptr<Session> session = reservation.claim.session();
  RETURN_IF_ERROR(Call<proto::StatusReply>(*session, SessionMessage::kPublish, request.Encode(), {},
                                           SessionMessage::kStatusReply, deadline)
                      .status());
  reservation.claim.Settle();
  reservation.bytes = {};
  return Status::OK();
}

Status Put(const std::shared_ptr<Session>& session, const std::string& key,
           std::span<const std::byte> value, const proto::SetParam& param, const Deadline& deadline) {
  if (session->IsInline(value.size())) {
    const proto::SetRequest request{
        .key = key, .param = param, .timeout_ms = deadline.worker_timeout_ms()};
    return Call<proto::StatusReply>(*session, SessionMessage::kSet, request.Encode(), value,
                                    SessionMessage::kStatusReply, deadline)
        .status();
  }
  ASSIGN_OR_RETURN(Reservation reservation, Reserve(session, value.size(), deadline));
  std::memcpy(reservation.bytes.data(), value.data(), value.size());
  return Publish(reservation, key, param, deadline);
}

}  // namespace datasystem::client
