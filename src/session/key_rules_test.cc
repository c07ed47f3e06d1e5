#include "session/key_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace datasystem::session {
namespace {

using testing::HasSubstr;
using namespace std::string_literals;

constexpr std::string_view kAlphabet =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_!@#%^*()+=:;~$&.";

TEST(KeyRules, AcceptKeysOf1To1024Bytes) {
  for (const size_t size : {1, 255, 256, 1024}) {
    EXPECT_TRUE(CheckKey(std::string(size, 'k')).IsOk()) << size;
  }
}

TEST(KeyRules, RefuseAnEmptyKeyAndOneOf1025Bytes) {
  EXPECT_EQ(CheckKey("").GetCode(), K_INVALID);
  EXPECT_EQ(CheckKey("").GetMsg(), "The objectKey should not be empty.");
  EXPECT_EQ(CheckKey(std::string(1025, 'k')).GetCode(), K_INVALID);
  EXPECT_EQ(CheckKey(std::string(1025, 'k')).GetMsg(), "The objectKey has 1025 bytes, the limit is 1024.");
}

TEST(KeyRules, AcceptExactlyTheAlphabet) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string key(1, static_cast<char>(byte));
    EXPECT_EQ(CheckKey(key).IsOk(), kAlphabet.find(key[0]) != std::string_view::npos) << byte;
  }
}

TEST(KeyRules, NameTheIllegalByteAndItsPlace) {
  const struct {
    std::string key;
    const char* reason;
  } cases[] = {
      {"ab\0cd"s, "0x00 at position 2"},
      {"a b", "0x20 at position 1"},
      {"dir/name", "0x2f at position 3"},
      {"schl\xC3\xBCssel", "0xc3 at position 4"},
      {"line\n", "0x0a at position 4"},
      {std::string(1023, 'k') + "\xFF", "0xff at position 1023"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(CheckKey(c.key).GetCode(), K_INVALID);
    EXPECT_THAT(CheckKey(c.key).GetMsg(), HasSubstr(c.reason));
  }
}

TEST(KeyRules, RefuseAnEmptyValue) {
  EXPECT_EQ(CheckValueSize(0).GetCode(), K_INVALID);
  EXPECT_EQ(CheckValueSize(0).GetMsg(), "The dataSize value should be bigger than zero.");
  EXPECT_TRUE(CheckValueSize(1).IsOk());
}

TEST(KeyRules, BatchesHave1To10000Keys) {
  EXPECT_EQ(CheckBatchSize(0).GetMsg(), "The keys are empty");
  EXPECT_TRUE(CheckBatchSize(1).IsOk());
  EXPECT_TRUE(CheckBatchSize(10000).IsOk());
  EXPECT_EQ(CheckBatchSize(10001).GetCode(), K_INVALID);
  EXPECT_EQ(CheckBatchSize(10001).GetMsg(), "The objectKeys size exceed 10000.");
}

}  // namespace
}  // namespace datasystem::session
