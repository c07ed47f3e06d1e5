// Get, as far as it is the same for all forms of the call.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "client/claim.h"

namespace datasystem::client {

struct Fetched {
  Status status;
  // In shared memory, kept there by `pin`; empty when the bytes went to where `place` said.
  std::span<const std::byte> view;
  Claim pin;
};

// Returns the memory, of exactly `size` bytes, that value `index` shall be received into.
using Place = std::function<std::span<std::byte>(size_t index, uint64_t size)>;

// One item a key, in order. An error: nothing was obtained at all.
Result<std::vector<Fetched>> Fetch(const std::shared_ptr<Session>& session,
                                   std::vector<std::string> keys, uint32_t sub_timeout_ms,
                                   const Deadline& deadline, const Place& place);

}  // namespace datasystem::client
