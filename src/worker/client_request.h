// What the parts that answer clients' requests have in common.
// Threads: the event loop's.
#pragma once

#include <asio/io_context.hpp>
#include <memory>

#include "proto/session_messages.h"
#include "session/server_connection.h"
#include "shm/cache_memory.h"
#include "worker/client_session.h"
#include "worker/object_service.h"

namespace datasystem::worker {

// One frame that came in. Copies share the connection and the session; they travel with the coroutine
// that answers.
struct ClientRequest {
  std::shared_ptr<session::ServerConnection> connection;
  std::shared_ptr<ClientSession> session;
  session::Frame frame;
};

struct ClientRequestParts {
  asio::io_context& context;
  const Clock& clock;
  shm::CacheMemory& memory;
  store::ObjectStore& store;
  ObjectService& objects;
  ClientSessions& sessions;
  uint64_t inline_threshold_bytes;
  // What may be asked for at most in one request; the client's own time-out is usually shorter.
  std::chrono::milliseconds request_timeout_max;

  TimePoint Deadline(uint32_t timeout_ms) const {
    return clock.Now() + std::min(std::chrono::milliseconds(timeout_ms), request_timeout_max);
  }
};

// Keys of one request that are worked on at the same time.
constexpr size_t kKeysAtOnce = 64;

inline proto::Location ToWire(const shm::Location& location) {
  return {location.segment, location.offset, location.size};
}

// Sends `reply` as the answer to the request.
template <typename Reply>
asio::awaitable<Status> Answer(const ClientRequest& request, proto::SessionMessage type, const Reply& reply,
                               std::vector<std::span<const std::byte>> payload) {
  return request.connection->Write(static_cast<uint16_t>(type), request.frame.header.request_id,
                                   reply.Encode(), std::move(payload));
}
template <typename Reply>
asio::awaitable<Status> Answer(const ClientRequest& request, proto::SessionMessage type, const Reply& reply) {
  return Answer(request, type, reply, {});
}

}  // namespace datasystem::worker
