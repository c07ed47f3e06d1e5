// Set, and its two halves: cache memory to fill in place, and its publication.
#pragma once

#include <memory>

#include "client/claim.h"

namespace datasystem::client {

// Cache memory of the worker, this session's alone until it is published.
struct Reservation {
  Claim claim;
  std::span<std::byte> bytes;
};

Result<Reservation> Reserve(const std::shared_ptr<Session>& session, uint64_t size,
                            const Deadline& deadline);
// After an error the reservation is still there.
Status Publish(Reservation& reservation, const std::string& key, const proto::SetParam& param,
               const Deadline& deadline);
// By the way that suits the size.
Status Put(const std::shared_ptr<Session>& session, const std::string& key,
           std::span<const std::byte> value, const proto::SetParam& param, const Deadline& deadline);

}  // namespace datasystem::client
