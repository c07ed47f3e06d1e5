#include <gtest/gtest.h>

#include "base/random.h"
#include "base/result.h"
#include "base/socket_address.h"
#include "base/unique_fd.h"

namespace datasystem {
namespace {

TEST(Status, TextCarriesTheWordsOfTheCodeAndTheMessage) {
  EXPECT_EQ(Status(K_NOT_FOUND, "no object a").ToString(),
            "code: [Key not found], msg: [no object a]");
  EXPECT_EQ(StatusCodeName(static_cast<StatusCode>(4242)), "UNKNOWN_TYPE");
}

TEST(Result, HandsItsErrorOnUnchanged) {
  auto half = [](int number) -> Result<int> {
    if (number % 2 != 0) return errors::Invalid("{} is odd", number);
    return number / 2;
  };
  auto quarter = [&](int number) -> Result<int> {
    ASSIGN_OR_RETURN(const int result, half(number));
    return half(result);
  };
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).status().GetMsg(), "3 is odd");
}

TEST(SocketAddress, ParsesBothFamiliesAndPrintsThemBack) {
  for (const char* text : {"127.0.0.1:31501", "[::1]:0", "[fe80::1]:65535"}) {
    auto address = SocketAddress::Parse(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(SocketAddress, NamesThePartThatIsWrong) {
  for (auto [text, part] : {std::pair{"127.0.0.1", "no port"}, {"127.0.0.1:65536", "bad port '65536'"},
                            {"127.0.0.1:", "bad port ''"}, {"localhost:1", "bad host 'localhost'"},
                            {"::1:80", "bad host"}, {"[::1:80", "no port"}, {"", "no port"}}) {
    auto address = SocketAddress::Parse(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_NE(address.status().GetMsg().find(part), std::string::npos) << address.status().GetMsg();
  }
}

TEST(Random, UuidsHaveTheStandardForm) {
  const std::string uuid = RandomUuid();
  ASSERT_EQ(uuid.size(), 36U);
  EXPECT_EQ(uuid[14], '4');
  EXPECT_NE(std::string("89ab").find(uuid[19]), std::string::npos) << uuid;
  EXPECT_NE(uuid, RandomUuid());
}

}  // namespace
}  // namespace datasystem
