#include "worker/client_session.h"

#include "base/random.h"

namespace datasystem::worker {

Result<std::shared_ptr<ClientSession>> ClientSessions::Open(uint64_t process_id, bool shared_memory) {
  if (sessions_.size() >= clients_max_) {
    return errors::Make(K_FILE_LIMIT_REACHED,
                        "this worker serves {} clients already, as many as max_client_num allows",
                        sessions_.size());
  }
  auto session = std::make_shared<ClientSession>();
  session->id = RandomId();
  session->token = RandomId();
  session->process_id = process_id;
  session->shared_memory = shared_memory;
  sessions_.emplace(session->id, session);
  return session;
}

Result<std::shared_ptr<ClientSession>> ClientSessions::Join(uint64_t id, uint64_t token) const {
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second->token != token) {
    return errors::Disconnected("the worker has no such session: its first connection has ended");
  }
  ClientSession& session = *found->second;
  std::erase_if(session.connections, [](const auto& connection) { return connection.expired(); });
  if (session.connections.size() >= kConnectionsMax) {
    return errors::Make(K_FILE_LIMIT_REACHED, "this client has {} connections already, which is the limit",
                        session.connections.size());
  }
  return found->second;
}

void ClientSessions::Add(ClientSession& session,
                         const std::shared_ptr<session::ServerConnection>& connection) const {
  session.connections.push_back(connection);
}

void ClientSessions::End(ClientSession& session) {
  session.ended = true;
  for (const auto& connection : session.connections) {
    if (const auto open = connection.lock()) open->Close();
  }
  session.connections.clear();
  session.pins.clear();
  session.buffers.clear();
  session.buffer_bytes = 0;
  sessions_.erase(session.id);
}

size_t ClientSessions::pins() const {
  size_t sum = 0;
  for (const auto& [id, session] : sessions_) sum += session->pins.size();
  return sum;
}

uint64_t ClientSessions::buffer_bytes() const {
  uint64_t sum = 0;
  for (const auto& [id, session] : sessions_) sum += session->buffer_bytes;
  return sum;
}

}  // namespace datasystem::worker
