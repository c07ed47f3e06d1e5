#include "session/frame.h"

#include <bit>
#include <cstring>

namespace datasystem::session {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are written as they lie in memory");

struct WireHeader {
  uint32_t magic;
  uint16_t type;
  uint16_t zero16;
  uint32_t body_size;
  uint32_t zero32;
  uint64_t request_id;
  uint64_t payload_size;
};
static_assert(sizeof(WireHeader) == kFrameHeaderSize);

}  // namespace

std::array<std::byte, kFrameHeaderSize> EncodeFrameHeader(const FrameHeader& header) {
  const WireHeader wire{.magic = kFrameMagic,
                        .type = header.type,
                        .zero16 = 0,
                        .body_size = header.body_size,
                        .zero32 = 0,
                        .request_id = header.request_id,
                        .payload_size = header.payload_size};
  return std::bit_cast<std::array<std::byte, kFrameHeaderSize>>(wire);
}

Result<FrameHeader> DecodeFrameHeader(std::span<const std::byte, kFrameHeaderSize> bytes) {
  WireHeader wire;
  std::memcpy(&wire, bytes.data(), sizeof(wire));
  if (wire.magic != kFrameMagic) {
    return errors::Invalid("frame begins with {:#010x} instead of {:#010x}: not this protocol",
                           wire.magic, kFrameMagic);
  }
  if (wire.zero16 != 0 || wire.zero32 != 0) {
    return errors::Invalid("frame of type {} has a reserved field that is not zero", wire.type);
  }
  if (wire.body_size > kBodyMax) {
    return errors::Invalid("frame of type {} announces a body of {} bytes, the limit is {}", wire.type,
                           wire.body_size, kBodyMax);
  }
  if (wire.payload_size > kPayloadMax) {
    return errors::Invalid("frame of type {} announces a payload of {} bytes, the limit is {}",
                           wire.type, wire.payload_size, kPayloadMax);
  }
  return FrameHeader{.type = wire.type,
                     .request_id = wire.request_id,
                     .body_size = wire.body_size,
                     .payload_size = wire.payload_size};
}

}  // namespace datasystem::session
