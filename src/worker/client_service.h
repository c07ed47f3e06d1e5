// Serves the clients: handshake, then one request after the other on each connection
// (docs/session-protocol.md).
// Threads: the event loop's.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "session/channel_poller.h"
#include "shm/index.h"
#include "worker/client_request.h"
#include "worker/read_requests.h"
#include "worker/write_requests.h"

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
                store::ObjectStore& store, shm::Index& index, ObjectService& objects,
                session::ChannelPoller& channels, ClientServiceOptions options,
                std::function<std::string()> report);

  // Takes a new connection over. `is_unix` connections can get shared memory.
  void Accept(session::ServerConnection::Socket socket, std::string peer, bool is_unix);

  // Memory that clients were given ahead until then and do not use. True if there was any.
  bool TakeBackLeases(TimePoint granted_until) { return sessions_.TakeBackLeases(granted_until); }
  const ClientSessions& sessions() const { return sessions_; }
  uint64_t refused() const { return refused_; }

 private:
  using Connection = std::shared_ptr<session::ServerConnection>;
  using Session = std::shared_ptr<ClientSession>;

  asio::awaitable<void> Serve(Connection connection, bool is_unix);
  // What a connection is, once it has said it.
  struct Guest {
    Session session;
    bool first = false;    // of its session
    uint32_t channel = 0;  // as in HelloReply
  };
  asio::awaitable<Status> Handshake(Connection connection, bool is_unix, Guest& guest);
  Result<Session> OpenOrJoin(const proto::Hello& hello, bool with_segments);
  void AddSegments(const ClientSession& session, proto::HelloReply& reply, std::vector<int>& fds) const;
  // The number of the channel that the session gives to the connection, plus 1; 0: none.
  static uint32_t TakeChannel(const proto::Hello& hello, bool is_unix, ClientSession& session);
  asio::awaitable<Status> Dispatch(ClientRequest request);
  asio::awaitable<Status> ReplyHealth(ClientRequest request);
  asio::awaitable<Status> ReplyReport(Connection connection, uint64_t request_id);
  void NoteRefusal(const std::string& peer, const Status& reason);

  shm::Index& index_;
  session::ChannelPoller& channels_;
  const ClientServiceOptions options_;
  const std::function<std::string()> report_;
  ClientSessions sessions_;
  const ClientRequestParts parts_;
  WriteRequests writes_{parts_};
  ReadRequests reads_{parts_};
  uint64_t refused_ = 0;
  TimePoint refusal_logged_at_ = TimePoint::min();
};

}  // namespace datasystem::worker
