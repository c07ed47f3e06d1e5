// What one client holds at this worker: pinned objects that it reads, and memory that it fills.
// All of it goes back when the session ends, however the client died.
// Threads: the event loop's.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "session/server_connection.h"
#include "shm/extent.h"
#include "store/object_store.h"

namespace datasystem::worker {

struct ClientSession {
  uint64_t id = 0;
  uint64_t token = 0;        // what further connections of the client must show
  uint64_t process_id = 0;   // as the client says
  bool shared_memory = false;
  bool ended = false;
  std::vector<std::weak_ptr<session::ServerConnection>> connections;  // they end with the session
  uint64_t next_id = 1;
  std::unordered_map<uint64_t, store::ObjectRef> pins;
  std::unordered_map<uint64_t, shm::Extent> buffers;
  uint64_t buffer_bytes = 0;
  // Buffers whose publication is under way: they come back if it fails, unless abandoned meanwhile.
  std::unordered_set<uint64_t> publishing;
};

class ClientSessions {
 public:
  // The SDK's pool has at most 128.
  static constexpr size_t kConnectionsMax = 256;

  explicit ClientSessions(uint32_t clients_max) : clients_max_(clients_max) {}

  // kFileLimitReached when there are max_client_num clients already.
  Result<std::shared_ptr<ClientSession>> Open(uint64_t process_id, bool shared_memory);
  // kClientWorkerDisconnect if there is no such session or the token is not its own, kFileLimitReached if it
  // has kConnectionsMax connections.
  Result<std::shared_ptr<ClientSession>> Join(uint64_t id, uint64_t token) const;
  void Add(ClientSession& session, const std::shared_ptr<session::ServerConnection>& connection) const;
  // Drops what the client held, and closes its connections.
  void End(ClientSession& session);

  size_t size() const { return sessions_.size(); }
  size_t pins() const;
  uint64_t buffer_bytes() const;

 private:
  const uint32_t clients_max_;
  std::unordered_map<uint64_t, std::shared_ptr<ClientSession>> sessions_;
};

}  // namespace datasystem::worker
