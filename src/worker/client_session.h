// What one client holds at this worker: pinned objects that it reads, and memory that it fills.
// All of it goes back when the session ends, however the client died.
// Threads: the event loop's.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "proto/session_messages.h"
#include "session/server_connection.h"
#include "shm/control_segment.h"
#include "shm/extent.h"
#include "shm/pins.h"
#include "store/object_store.h"

namespace datasystem::worker {

// The control segment of a session, whose pins count for as long as this lives.
class SharedPins {
 public:
  static Result<std::unique_ptr<SharedPins>> Create(shm::PinTables& tables);
  ~SharedPins() { tables_.Remove(&control_.layout()); }

  const shm::ControlSegment& control() const { return control_; }

 private:
  SharedPins(shm::PinTables& tables, shm::ControlSegment control)
      : tables_(tables), control_(std::move(control)) {
    tables_.Add(&control_.layout());
  }

  shm::PinTables& tables_;
  const shm::ControlSegment control_;
};

// What all sessions together were given and have not published.
struct ClientMemory {
  uint64_t buffer_bytes = 0;  // leases not included
  uint64_t leased_bytes = 0;
};

// Memory that a session got and has not published yet. All of it goes back with the object.
class ClientBuffers {
 public:
  // Leases of one session: the client rarely has more than one a size in use.
  static constexpr size_t kLeasesMax = 8;

  // `all` is kept up to date. `control` holds the words of leases; null: this client has no shared memory,
  // nothing is leased. Both must outlive this.
  ClientBuffers(ClientMemory& all, const shm::ControlSegment* control) : all_(all), control_(control) {}
  ClientBuffers(const ClientBuffers&) = delete;
  ~ClientBuffers() { End(); }

  // Returns the buffer's id; ids of a session are used once.
  uint64_t Add(shm::Extent extent);
  // A buffer that the worker may take back until the client has taken it. None: there are kLeasesMax.
  std::optional<proto::Lease> AddLease(shm::Extent& extent, TimePoint now);

  // The buffer leaves the table to be set; none: it is not the session's. While it is away it is noted as
  // such: Return() brings it back unless it was abandoned in between.
  std::optional<shm::Extent> Take(uint64_t id);
  void Return(uint64_t id, shm::Extent extent);
  // It was set: there is nothing to return.
  void Settle(uint64_t id) { away_.erase(id); }
  void Drop(uint64_t id);
  // Drops all, also those that are away. Nothing is leased any more: `control` may go.
  void End();

  // Takes back the leases that were granted until then and that the client has not taken; returns their bytes.
  uint64_t TakeBackLeases(TimePoint granted_until);

 private:
  struct Buffer {
    shm::Extent extent;
    std::optional<uint32_t> lease_slot;
    TimePoint granted_at{};  // of a lease
  };
  void Uncount(const Buffer& buffer);

  ClientMemory& all_;
  const shm::ControlSegment* control_;
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, Buffer> buffers_;
  std::unordered_set<uint64_t> away_;
  std::array<uint64_t, shm::kLeaseSlots> leases_{};  // ids; what the client writes is not believed
  size_t lease_count_ = 0;
};

struct ClientSession {
  // `memory` must outlive it.
  ClientSession(ClientMemory& memory, std::unique_ptr<SharedPins> shared)
      : shared(std::move(shared)), buffers(memory, this->shared ? &this->shared->control() : nullptr) {}

  uint64_t id = 0;
  uint64_t token = 0;        // what further connections of the client must show
  uint64_t process_id = 0;   // as the client says
  bool ended = false;
  std::vector<std::weak_ptr<session::ServerConnection>> connections;  // they end with the session
  std::unique_ptr<SharedPins> shared;  // null: no shared memory for this client
  std::bitset<shm::kChannels> channels;  // those that connections use
  ClientBuffers buffers;
  uint64_t next_pin_id = 1;
  std::unordered_map<uint64_t, store::ObjectRef> pins;
};

class ClientSessions {
 public:
  // The SDK's pool has at most 128.
  static constexpr size_t kConnectionsMax = 256;

  explicit ClientSessions(uint32_t clients_max) : clients_max_(clients_max) {}

  // With `tables`: with shared memory, whose pins are added there. kFileLimitReached when there are
  // max_client_num clients already, kRuntimeError when the system has no memory for the pins.
  Result<std::shared_ptr<ClientSession>> Open(uint64_t process_id, shm::PinTables* tables);
  // kClientWorkerDisconnect if there is no such session or the token is not its own, kFileLimitReached if it
  // has kConnectionsMax connections.
  Result<std::shared_ptr<ClientSession>> Join(uint64_t id, uint64_t token) const;
  void Add(ClientSession& session, const std::shared_ptr<session::ServerConnection>& connection) const;
  // Drops what the client held, and closes its connections.
  void End(ClientSession& session);
  // Those that were granted until then and not taken. True if memory came back.
  bool TakeBackLeases(TimePoint granted_until);

  size_t size() const { return sessions_.size(); }
  size_t pins() const;
  const ClientMemory& memory() const { return memory_; }

 private:
  const uint32_t clients_max_;
  ClientMemory memory_;
  std::unordered_map<uint64_t, std::shared_ptr<ClientSession>> sessions_;
};

}  // namespace datasystem::worker
