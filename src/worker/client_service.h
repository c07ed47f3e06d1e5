// Serves the clients: handshake, then one request after the other on each connection.
// Threads: the event loop's.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "session/server_connection.h"
#include "proto/session_messages.h"
#include "shm/cache_memory.h"
#include "worker/client_session.h"
#include "worker/object_service.h"

namespace datasystem::worker {

struct ClientServiceOptions {
  std::string worker_version;
  uint64_t worker_incarnation = 0;
  std::string unix_socket_path;      // empty: no shared memory for clients
  uint64_t inline_threshold_bytes = 0;
  uint32_t clients_max = 200;
  // What may be asked for at most in one request; the client's own time-out is usually shorter.
  std::chrono::milliseconds request_timeout_max{3600 * 1000};
};

class ClientService {
 public:
  // `report` makes the worker's status document.
  ClientService(asio::io_context& context, const Clock& clock, shm::CacheMemory& memory,
                store::ObjectStore& store, ObjectService& objects, ClientServiceOptions options,
                std::function<std::string()> report);

  // Takes a new connection over. `is_unix` connections can get shared memory.
  void Accept(session::ServerConnection::Socket socket, std::string peer, bool is_unix);

  const ClientSessions& sessions() const { return sessions_; }
  uint64_t refused() const { return refused_; }

 private:
  using Connection = std::shared_ptr<session::ServerConnection>;
  using Session = std::shared_ptr<ClientSession>;

  asio::awaitable<void> Serve(Connection connection, bool is_unix);
  asio::awaitable<Status> Handshake(Connection connection, bool is_unix, Session& session, bool& first);
  asio::awaitable<Status> Dispatch(Connection connection, Session session, session::Frame frame);
  asio::awaitable<Status> HandleSet(Connection connection, Session session, session::Frame frame);
  asio::awaitable<Status> HandleCreate(Connection connection, Session session, session::Frame frame);
  asio::awaitable<Status> HandlePublish(Connection connection, Session session, session::Frame frame);
  asio::awaitable<Status> HandleGet(Connection connection, Session session, session::Frame frame);
  asio::awaitable<Status> HandleDelete(Connection connection, Session session, session::Frame frame);
  asio::awaitable<Status> HandleExist(Connection connection, Session session, session::Frame frame);
  asio::awaitable<Status> ReplyStatus(Connection connection, uint64_t request_id, Status status);
  asio::awaitable<Status> ReplyReport(Connection connection, uint64_t request_id);
  Result<SetOptions> CheckSetParam(const proto::SetParam& param) const;
  TimePoint Deadline(uint32_t timeout_ms) const;
  void NoteRefusal(const std::string& peer, const Status& reason);

  asio::io_context& context_;
  const Clock& clock_;
  shm::CacheMemory& memory_;
  store::ObjectStore& store_;
  ObjectService& objects_;
  const ClientServiceOptions options_;
  const std::function<std::string()> report_;
  ClientSessions sessions_;
  uint64_t refused_ = 0;
  TimePoint refusal_logged_at_ = TimePoint::min();
};

}  // namespace datasystem::worker
