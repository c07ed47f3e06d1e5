#include "transport/wire_header.h"

#include <bit>
#include <cstring>

#include "transport/transport.h"

namespace datasystem::transport {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire format is the memory format");

constexpr uint32_t kMagic = 0x314D5344;  // "DSM1": the last character is the version
constexpr uint8_t kBodyInData = 1;
constexpr uint8_t kBodyBefore = 2;

// The layout on the wire. Fields lie at their natural alignment, without holes.
struct Layout {
  uint32_t magic;
  uint8_t kind;
  uint8_t flags;
  uint16_t type;
  uint64_t request_id;
  uint64_t sender;
  uint64_t receiver;
  uint64_t subject;
  uint32_t status;
  uint32_t zero;
  uint64_t body_size;
  uint64_t payload_size;
};
static_assert(sizeof(Layout) == WireHeader::kSize);

Status CheckKind(const WireHeader& header) {
  const bool answer = header.kind == MessageKind::kAnswer;
  const bool needs_subject =
      header.kind == MessageKind::kForwarded || header.kind == MessageKind::kMoved;
  if (needs_subject != (header.subject != 0)) return errors::Invalid("subject does not fit the kind");
  if (!answer && header.status != 0) return errors::Invalid("only an answer has a status");
  if (!answer && header.payload_size > 0) return errors::Invalid("only an answer has a payload");
  if (!answer && header.body_before) return errors::Invalid("only an answer has its body sent before");
  if (header.status != 0 && header.payload_size > 0) return errors::Invalid("an error has a payload");
  if (header.body_before && (header.body_size > 0 || header.payload_size == 0)) {
    return errors::Invalid("a body sent before belongs to an answer with payload and no other body");
  }
  if ((header.kind == MessageKind::kMoved || header.kind == MessageKind::kCut) && header.body_size > 0) {
    return errors::Invalid("a notice has a body");
  }
  return Status::OK();
}

}  // namespace

WireHeader::Bytes WireHeader::Encode() const {
  const Layout layout{
      .magic = kMagic,
      .kind = static_cast<uint8_t>(kind),
      .flags = static_cast<uint8_t>((body_in_data ? kBodyInData : 0) | (body_before ? kBodyBefore : 0)),
      .type = type,
      .request_id = request_id,
      .sender = sender,
      .receiver = receiver,
      .subject = subject,
      .status = status,
      .zero = 0,
      .body_size = body_size,
      .payload_size = payload_size};
  return std::bit_cast<Bytes>(layout);
}

Result<WireHeader> WireHeader::Decode(std::span<const std::byte> head, uint64_t data_size) {
  if (head.size() < kSize) return errors::Invalid("header of {} bytes, expected {}", head.size(), kSize);
  Layout layout;
  std::memcpy(&layout, head.data(), kSize);
  if (layout.magic != kMagic) return errors::Invalid("magic or version {:#x}", layout.magic);
  if (layout.kind < 1 || layout.kind > 6) return errors::Invalid("kind {}", layout.kind);
  if ((layout.flags & ~(kBodyInData | kBodyBefore)) != 0) return errors::Invalid("flags {}", layout.flags);
  if (layout.zero != 0) return errors::Invalid("a reserved field is {}", layout.zero);
  if (layout.sender == 0) return errors::Invalid("sender 0");
  if (layout.body_size > Transport::kBodyMax) return errors::Invalid("body of {}", layout.body_size);

  WireHeader header{.kind = static_cast<MessageKind>(layout.kind),
                    .body_in_data = (layout.flags & kBodyInData) != 0,
                    .body_before = (layout.flags & kBodyBefore) != 0,
                    .type = layout.type,
                    .request_id = layout.request_id,
                    .sender = layout.sender,
                    .receiver = layout.receiver,
                    .subject = layout.subject,
                    .status = layout.status,
                    .body_size = layout.body_size,
                    .payload_size = layout.payload_size};
  RETURN_IF_ERROR(CheckKind(header));
  const uint64_t behind = head.size() - kSize;
  if (header.body_in_data) {
    if (header.payload_size > 0 || header.body_size == 0 || behind > 0 || data_size != header.body_size) {
      return errors::Invalid("body of {} bytes, {} arrived", header.body_size, data_size);
    }
  } else if (behind != header.body_size || data_size != header.payload_size) {
    return errors::Invalid("body and payload of {} and {} bytes, {} and {} arrived", header.body_size,
                           header.payload_size, behind, data_size);
  }
  return header;
}

}  // namespace datasystem::transport
