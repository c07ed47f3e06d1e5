#include "client/fetch.h"

#include <unistd.h>

#include <new>
#include <stdexcept>

namespace datasystem::client {
namespace {

using proto::SessionMessage;

// A size from the wire must not make this process reserve more than the machine has.
uint64_t PhysicalMemory() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool IsInPayload(const proto::GetItem& item) {
  return item.status.IsOk() && item.pin_id == 0 && !item.here;
}

// The sizes must account for the payload exactly, before the first byte of it is taken.
Status CheckPayload(Connection& connection, const proto::GetReply& reply, uint64_t payload_size) {
  uint64_t left = payload_size;
  for (const proto::GetItem& item : reply.items) {
    if (!IsInPayload(item)) continue;
    if (item.size == 0 || item.size > left) {
      return connection.ProtocolError(
          fmt::format("a value of {} bytes in {} bytes of payload", item.size, left));
    }
    left -= item.size;
  }
  if (left != 0) return connection.ProtocolError(fmt::format("{} bytes of payload too many", left));
  return Status::OK();
}

}  // namespace

Result<std::vector<Fetched>> Fetch(const std::shared_ptr<Session>& session,
                                   proto::GetRequest request, const Deadline& deadline,
                                   const Place& place) {
  const size_t count = request.keys.size();
  ASSIGN_OR_RETURN(Session::Lease connection, AskFor(*session, std::move(request), deadline, Connection::Way::kFastest));
  return TakeAnswer(session, std::move(connection), count, deadline, place);
}

Result<Session::Lease> AskFor(Session& session, proto::GetRequest request,
                              const Deadline& deadline, Connection::Way way) {
  ASSIGN_OR_RETURN(Session::Lease connection, session.Acquire(deadline));
  request.timeout_ms = deadline.worker_timeout_ms();
  RETURN_IF_ERROR(connection->Send(SessionMessage::kGet, request.Encode(), {}, deadline, way));
  return connection;
}

Result<std::vector<Fetched>> TakeAnswer(const std::shared_ptr<Session>& session,
                                        Session::Lease lease, size_t count,
                                        const Deadline& deadline, const Place& place) {
  std::vector<Fetched> fetched;  // outlives the lease: pins go back after the connection does
  fetched.reserve(count);
  const Session::Lease connection = std::move(lease);
  ASSIGN_OR_RETURN(const Connection::Reply received,
                   connection->Receive(SessionMessage::kGetReply, deadline));
  auto reply = proto::GetReply::Decode(received.body);
  if (!reply.ok()) return connection->ProtocolError(reply.status().GetMsg());
  // Every pin is claimed before anything can go wrong.
  for (const proto::GetItem& item : reply->items) {
    fetched.push_back({.status = item.status, .here = item.status.IsOk() && item.here});
    if (item.pin_id != 0) fetched.back().pin = Claim::OfPin(session, item.pin_id);
  }
  RETURN_IF_ERROR(reply->status);
  if (reply->items.size() != count) {
    return connection->ProtocolError(
        fmt::format("{} items came for {} keys", reply->items.size(), count));
  }
  RETURN_IF_ERROR(CheckPayload(*connection, *reply, received.payload_size));
  if (received.payload_size > PhysicalMemory()) {
    return connection->ProtocolError(
        fmt::format("{} bytes of values are more than this machine has", received.payload_size));
  }
  for (size_t i = 0; i < count; ++i) {
    const proto::GetItem& item = reply->items[i];
    if (IsInPayload(item)) {
      std::span<std::byte> bytes;
      try {
        bytes = place(i, item.size);
      } catch (const std::bad_alloc&) {
        return errors::OutOfMemory("this process has no {} bytes for a value", item.size);
      } catch (const std::length_error&) {
        return errors::OutOfMemory("a value of {} bytes does not fit into a string", item.size);
      }
      RETURN_IF_ERROR(connection->ReceivePayload(bytes, deadline));
    } else if (item.status.IsOk() && !item.here) {
      auto view = session->Resolve(item.location);
      if (!view.ok()) return connection->ProtocolError(view.status().GetMsg());
      if (view->size() != item.size || item.size == 0) {
        return connection->ProtocolError(
            fmt::format("a value of {} bytes in {} bytes of memory", item.size, view->size()));
      }
      fetched[i].view = *view;
    }
  }
  return fetched;
}

}  // namespace datasystem::client
