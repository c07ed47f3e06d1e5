// The head of every message between workers: 64 bytes, little-endian, at the front of the UCX active
// message's header. What is read from the wire is believed only after Decode() accepted it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace datasystem::transport {

enum class MessageKind : uint8_t {
  kRequest = 1,
  kForwarded = 2,   // a request that the sender hands on; `subject` is the caller who waits
  kAnswer = 3,
  kAnswerBody = 4,  // the body of an answer that has a payload and whose body is too large to ride with it
  kMoved = 5,       // to the caller: `subject` answers now instead of the sender
  kCut = 6,         // the sender has cut its end: what was under way to it will not be taken, cut yours
};

struct WireHeader {
  static constexpr size_t kSize = 64;
  using Bytes = std::array<std::byte, kSize>;

  MessageKind kind = MessageKind::kRequest;
  bool body_in_data = false;  // the body follows as the message's data, not behind this header
  bool body_before = false;   // answers: the body travels in a kAnswerBody of the same request
  uint16_t type = 0;
  uint64_t request_id = 0;
  uint64_t sender = 0;    // incarnation
  uint64_t receiver = 0;  // incarnation that the sender believes to talk to
  uint64_t subject = 0;   // incarnation; see MessageKind
  uint32_t status = 0;    // answers: a StatusCode; if not 0 the body is the error's text
  uint64_t body_size = 0;
  uint64_t payload_size = 0;

  Bytes Encode() const;

  // `head` is everything in front of the data: header and, unless body_in_data, the body. kInvalid says
  // which field is wrong.
  static Result<WireHeader> Decode(std::span<const std::byte> head, uint64_t data_size);
};

}  // namespace datasystem::transport
