#include "worker/client_session.h"

#include <algorithm>

#include "base/random.h"

namespace datasystem::worker {

Result<std::unique_ptr<SharedPins>> SharedPins::Create(shm::PinTables& tables) {
  ASSIGN_OR_RETURN(shm::ControlSegment control, shm::ControlSegment::Create());
  return std::unique_ptr<SharedPins>(new SharedPins(tables, std::move(control)));
}

uint64_t ClientBuffers::Add(shm::Extent extent) {
  const uint64_t id = next_id_++;
  all_.buffer_bytes += extent.size();
  buffers_.emplace(id, Buffer{std::move(extent), std::nullopt, {}});
  return id;
}

std::optional<proto::Lease> ClientBuffers::AddLease(shm::Extent& extent, TimePoint now) {
  if (control_ == nullptr || lease_count_ == kLeasesMax) return std::nullopt;
  const auto slot = static_cast<uint32_t>(std::ranges::find(leases_, 0u) - leases_.begin());
  const shm::Location location = extent.location();
  const uint64_t id = next_id_++;
  leases_[slot] = id;
  ++lease_count_;
  all_.leased_bytes += location.size;
  buffers_.emplace(id, Buffer{std::move(extent), slot, now});
  control_->layout().leases[slot].store(shm::LeaseWord::Leased(id), std::memory_order_release);
  return proto::Lease{slot, id, {location.segment, location.offset, location.size}};
}

void ClientBuffers::Uncount(const Buffer& buffer) {
  if (!buffer.lease_slot) {
    all_.buffer_bytes -= buffer.extent.size();
    return;
  }
  control_->layout().leases[*buffer.lease_slot].store(0, std::memory_order_release);
  leases_[*buffer.lease_slot] = 0;
  --lease_count_;
  all_.leased_bytes -= buffer.extent.size();
}

std::optional<shm::Extent> ClientBuffers::Take(uint64_t id) {
  const auto found = buffers_.find(id);
  if (found == buffers_.end()) return std::nullopt;
  Uncount(found->second);
  shm::Extent extent = std::move(found->second.extent);
  buffers_.erase(found);
  away_.insert(id);
  return extent;
}

void ClientBuffers::Return(uint64_t id, shm::Extent extent) {
  if (away_.erase(id) == 0) return;
  all_.buffer_bytes += extent.size();
  buffers_.emplace(id, Buffer{std::move(extent), std::nullopt, {}});
}

void ClientBuffers::Drop(uint64_t id) {
  away_.erase(id);
  const auto found = buffers_.find(id);
  if (found == buffers_.end()) return;
  Uncount(found->second);
  buffers_.erase(found);
}

void ClientBuffers::End() {
  for (const auto& [id, buffer] : buffers_) Uncount(buffer);
  buffers_.clear();
  away_.clear();
  control_ = nullptr;
}

uint64_t ClientBuffers::TakeBackLeases(TimePoint granted_until) {
  uint64_t freed = 0;
  for (uint32_t slot = 0; slot < leases_.size(); ++slot) {
    const uint64_t id = leases_[slot];
    if (id == 0 || buffers_.at(id).granted_at > granted_until) continue;
    if (!shm::LeaseWord::TakeBack(control_->layout().leases[slot], id)) continue;
    freed += buffers_.at(id).extent.size();
    Drop(id);
  }
  return freed;
}

Result<std::shared_ptr<ClientSession>> ClientSessions::Open(uint64_t process_id, shm::PinTables* tables) {
  if (sessions_.size() >= clients_max_) {
    return errors::Make(K_FILE_LIMIT_REACHED,
                        "this worker serves {} clients already, as many as max_client_num allows",
                        sessions_.size());
  }
  std::unique_ptr<SharedPins> shared;
  if (tables != nullptr) {
    ASSIGN_OR_RETURN(shared, SharedPins::Create(*tables));
  }
  auto session = std::make_shared<ClientSession>(memory_, std::move(shared));
  session->id = RandomId();
  session->token = RandomId();
  session->process_id = process_id;
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
    if (const auto open = connection.lock()) {
      open->Close();
      open->LeaveChannel();
    }
  }
  session.connections.clear();
  session.pins.clear();
  session.buffers.End();
  session.shared.reset();
  sessions_.erase(session.id);
}

bool ClientSessions::TakeBackLeases(TimePoint granted_until) {
  uint64_t freed = 0;
  for (const auto& [id, session] : sessions_) freed += session->buffers.TakeBackLeases(granted_until);
  return freed > 0;
}

size_t ClientSessions::pins() const {
  size_t sum = 0;
  for (const auto& [id, session] : sessions_) sum += session->pins.size();
  return sum;
}

}  // namespace datasystem::worker
