// Setting values: inside the message, or in cache memory that is filled first.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "client/claim.h"

namespace datasystem::client {

// Cache memory of the worker, this session's alone until it is published.
struct Reservation {
  Claim claim;
  std::span<std::byte> bytes;
};

// One item a size, in order. An error: nothing was reserved at all.
Result<std::vector<Result<Reservation>>> Reserve(const std::shared_ptr<Session>& session,
                                                 const std::vector<uint64_t>& sizes,
                                                 const Deadline& deadline);

struct Value {
  std::string_view key;
  std::span<const std::byte> bytes;
  // Where the bytes are, if they are in cache memory already; after success it is spent, after an
  // error as before.
  Reservation* filled = nullptr;
};

enum class Atomicity { kEach, kAllOrNone };

// One outcome a value, in order. Each goes by the way that suits its size; any number of values of
// any size, but kAllOrNone is one message. What is `filled` is of this session.
std::vector<Status> Put(const std::shared_ptr<Session>& session, std::span<const Value> values,
                        const proto::SetParam& param, Atomicity atomicity,
                        const Deadline& deadline);

}  // namespace datasystem::client
