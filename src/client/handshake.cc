#include "client/handshake.h"

#include "client/process.h"

namespace datasystem::client {

Result<proto::HelloReply> ShakeHands(Connection& connection, proto::Hello hello,
                                     const Deadline& deadline, std::vector<UniqueFd>* fds) {
  using proto::SessionMessage;
  hello.client_version = DS_VERSION;
  hello.process_id = static_cast<uint64_t>(ThisProcess());
  hello.want_segments = fds != nullptr;
  RETURN_IF_ERROR(connection.Send(SessionMessage::kHello, hello.Encode(), {}, deadline));
  ASSIGN_OR_RETURN(const Connection::Reply reply,
                   fds == nullptr
                       ? connection.Receive(SessionMessage::kHelloReply, deadline)
                       : connection.ReceiveWithDescriptors(SessionMessage::kHelloReply, deadline, *fds));
  if (reply.payload_size != 0) return connection.ProtocolError("a payload came with the greeting");
  auto answer = proto::HelloReply::Decode(reply.body);
  if (!answer.ok()) return connection.ProtocolError(answer.status().GetMsg());
  RETURN_IF_ERROR(answer->status);
  if (answer->protocol < proto::kSessionProtocolMin || answer->protocol > proto::kSessionProtocolMax) {
    return errors::VersionMismatch(
        "worker {} (version {}) speaks protocol {}, this client (version {}) speaks {} to {}",
        connection.worker(), answer->worker_version, answer->protocol, DS_VERSION,
        proto::kSessionProtocolMin, proto::kSessionProtocolMax);
  }
  if (answer->session_id == 0) return connection.ProtocolError("the session has no id");
  if (fds != nullptr && fds->size() != answer->segments.size()) {
    return connection.ProtocolError(fmt::format("{} descriptors came for {} segments", fds->size(),
                                                answer->segments.size()));
  }
  return answer;
}

}  // namespace datasystem::client
