#include "session/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace datasystem::session {
namespace {

using testing::HasSubstr;
using HeaderBytes = std::array<std::byte, kFrameHeaderSize>;

template <typename T>
HeaderBytes With(HeaderBytes bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
  return bytes;
}

TEST(FrameHeader, LiesOnTheWireAsDocumented) {
  const HeaderBytes bytes = EncodeFrameHeader({.type = 0x0102,
                                               .request_id = 0x1112131415161718,
                                               .body_size = 0x00212223,
                                               .payload_size = 0x3132333435});
  const unsigned char expected[kFrameHeaderSize] = {
      'D',  'Y',  'S',  '1',  0x02, 0x01, 0,    0,    0x23, 0x22, 0x21, 0x00, 0, 0, 0, 0,
      0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x35, 0x34, 0x33, 0x32, 0x31, 0, 0, 0};
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof(expected)), 0);
}

TEST(FrameHeader, ReturnsWhatWasEncodedUpToTheLimits) {
  auto header = DecodeFrameHeader(EncodeFrameHeader({.type = 0xFFFF,
                                                     .request_id = ~uint64_t{0},
                                                     .body_size = kBodyMax,
                                                     .payload_size = kPayloadMax}));
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->type, 0xFFFF);
  EXPECT_EQ(header->request_id, ~uint64_t{0});
  EXPECT_EQ(header->body_size, kBodyMax);
  EXPECT_EQ(header->payload_size, kPayloadMax);
}

TEST(FrameHeader, NamesWhatIsWrongWithAForeignOrBrokenOne) {
  const HeaderBytes good = EncodeFrameHeader({.type = 7});
  const struct {
    HeaderBytes bytes;
    const char* reason;
  } cases[] = {
      {With(good, 0, uint32_t{0x20544547}), "0x20544547 instead of 0x31535944"},  // "GET "
      {With(good, 6, uint16_t{1}), "type 7 has a reserved field"},
      {With(good, 12, uint32_t{1}), "type 7 has a reserved field"},
      {With(good, 8, kBodyMax + 1), "a body of 16777217 bytes"},
      {With(good, 24, kPayloadMax + 1), "a payload of 1099511627777 bytes"},
  };
  for (const auto& c : cases) {
    const Status status = DecodeFrameHeader(c.bytes).status();
    EXPECT_EQ(status.GetCode(), K_INVALID);
    EXPECT_THAT(status.GetMsg(), HasSubstr(c.reason));
  }
}

TEST(FrameHeader, RefusesRandomBytes) {
  const uint64_t seed = std::random_device()();
  std::printf("seed %lu\n", seed);
  std::mt19937_64 rng(seed);
  for (int i = 0; i < 10000; ++i) {
    HeaderBytes bytes;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng());
    EXPECT_FALSE(DecodeFrameHeader(bytes).ok());
  }
}

}  // namespace
}  // namespace datasystem::session
