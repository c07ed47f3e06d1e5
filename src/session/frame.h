// The frame around every message between a client and its worker, over TCP and Unix sockets alike:
// a header of 32 bytes (little endian), the body, the payload. See docs/session-protocol.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace datasystem::session {

constexpr uint32_t kFrameMagic = 0x31535944;  // "DYS1"
constexpr size_t kFrameHeaderSize = 32;
// 10 000 keys of 1024 bytes, with room.
constexpr uint32_t kBodyMax = 16 << 20;
// Above any segment; the receiver checks against what it can allocate.
constexpr uint64_t kPayloadMax = uint64_t{1} << 40;

// Between two frames on a socket, in both directions: there is something in the channel. No frame begins with it.
constexpr std::byte kWakeByte{0};

struct FrameHeader {
  uint16_t type = 0;         // proto::SessionMessage
  uint64_t request_id = 0;   // the answer repeats it
  uint32_t body_size = 0;    // bytes
  uint64_t payload_size = 0; // bytes
};

// Layout: u32 magic, u16 type, u16 zero, u32 body_size, u32 zero, u64 request_id, u64 payload_size.
std::array<std::byte, kFrameHeaderSize> EncodeFrameHeader(const FrameHeader& header);
// kInvalid names what is wrong: the magic (somebody else's protocol), a reserved field, a size.
Result<FrameHeader> DecodeFrameHeader(std::span<const std::byte, kFrameHeaderSize> bytes);

}  // namespace datasystem::session
