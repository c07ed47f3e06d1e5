#include "client/worker_report.h"

#include "client/connection.h"
#include "client/settings.h"

namespace datasystem::client {

Result<std::string> FetchWorkerReport(const std::string& host, int32_t port,
                                      std::chrono::milliseconds timeout) {
  const Deadline deadline(timeout);
  ASSIGN_OR_RETURN(const SocketAddress worker, ResolveWorker(host, port));
  ASSIGN_OR_RETURN(const auto connection, Connection::ConnectTcp(worker, deadline));
  // No session: an operator must get an answer from a worker that serves as many clients as it may.
  RETURN_IF_ERROR(connection->Send(proto::SessionMessage::kReport, {}, {}, deadline));
  ASSIGN_OR_RETURN(const Connection::Reply received,
                   connection->Receive(proto::SessionMessage::kReportReply, deadline));
  auto reply = proto::ReportReply::Decode(received.body);
  if (!reply.ok()) return connection->ProtocolError(reply.status().GetMsg());
  RETURN_IF_ERROR(reply->status);
  return std::move(reply->json);
}

}  // namespace datasystem::client
