// Get, as far as it is the same for all forms of the call.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "client/claim.h"

namespace datasystem::client {

struct Fetched {
  Status status;
  bool here = false;  // look into the index
  // In shared memory, kept there by `pin`; empty when the bytes went to where `place` said.
  std::span<const std::byte> view;
  Claim pin;
};

// Returns the memory, of exactly `size` bytes, that value `index` shall be received into.
using Place = std::function<std::span<std::byte>(size_t index, uint64_t size)>;

// One item a key of the request, in order. An error: nothing was obtained at all. Completes the
// request by its time-out.
Result<std::vector<Fetched>> Fetch(const std::shared_ptr<Session>& session,
                                   proto::GetRequest request, const Deadline& deadline,
                                   const Place& place);

// The two halves of Fetch(): the connection is readable when the answer is there.
Result<Session::Lease> AskFor(Session& session, proto::GetRequest request,
                              const Deadline& deadline, Connection::Way way);
// `count`: keys of the request. The connection goes back before the pins do.
Result<std::vector<Fetched>> TakeAnswer(const std::shared_ptr<Session>& session,
                                        Session::Lease connection, size_t count,
                                        const Deadline& deadline, const Place& place);

}  // namespace datasystem::client
