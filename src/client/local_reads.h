// Reads of the index alone: no message, no wait. For the Python binding, which copies small values
// while it holds the interpreter's lock.
//
// Ownership: keeps the session, and with it the mapped memory; what was found must be gone before.
// Threads:   one at a time.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "client/session.h"
#include "datasystem/kv_client.h"

namespace datasystem::client {

class LocalReads {
 public:
  // Of a client that is not connected, or of another process: finds nothing.
  explicit LocalReads(KVClient& client);

  // Nothing: the worker has to be asked.
  std::optional<shm::PinnedValue> Find(std::string_view key) const;
  bool Has(std::string_view key) const;

  // Before the bytes are used. Takes up to 20 us for each 256 KiB that this process has not met yet.
  void Touch(std::span<const std::byte> bytes) const { session_->Touch(bytes); }
  // What keeps all that it needs.
  ReadOnlyBuffer ToView(shm::PinnedValue value) const;

 private:
  std::shared_ptr<Session> session_;  // null, or it has an index
};

}  // namespace datasystem::client
