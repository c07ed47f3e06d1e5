#include "client/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace datasystem::client {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// An environment variable for the length of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Settings, ComeFromTheOptions) {
  auto settings = MakeSettings(
      {.host = "127.0.0.1", .port = 31501, .connectTimeoutMs = 3000, .requestTimeoutMs = 500});
  ASSERT_TRUE(settings.ok()) << settings.status().ToString();
  EXPECT_EQ(settings->worker.ToString(), "127.0.0.1:31501");
  EXPECT_EQ(settings->connect_timeout, milliseconds(3000));
  EXPECT_EQ(settings->request_timeout, milliseconds(500));
}

TEST(Settings, RequestsTakeTheConnectTimeoutWhenTheyHaveNone) {
  for (const int32_t none : {0, -1}) {
    auto settings = MakeSettings(
        {.host = "::1", .port = 1, .connectTimeoutMs = 3000, .requestTimeoutMs = none});
    EXPECT_EQ(settings->request_timeout, milliseconds(3000));
    EXPECT_EQ(settings->worker.ToString(), "[::1]:1");
  }
  EXPECT_EQ(MakeSettings({.host = "::1", .port = 1, .connectTimeoutMs = 0})->connect_timeout,
            milliseconds(60000));
}

TEST(Settings, TheEnvironmentFillsInWhatWasNotGiven) {
  const Variable host("DATASYSTEM_HOST", "127.0.0.9");
  const Variable port("DATASYSTEM_PORT", "31999");
  const Variable timeout("DATASYSTEM_CONNECT_TIME_MS", "1234");
  auto settings = MakeSettings({});
  ASSERT_TRUE(settings.ok()) << settings.status().ToString();
  EXPECT_EQ(settings->worker.ToString(), "127.0.0.9:31999");
  EXPECT_EQ(settings->connect_timeout, milliseconds(1234));
  settings = MakeSettings({.host = "127.0.0.1", .port = 5, .connectTimeoutMs = 77});
  EXPECT_EQ(settings->worker.ToString(), "127.0.0.1:5");
  EXPECT_EQ(settings->connect_timeout, milliseconds(77));
}

TEST(Settings, NumbersInTheEnvironmentAreChecked) {
  for (const char* bad : {"abc", "1x", "-1", "99999999999", " 5"}) {
    const Variable timeout("DATASYSTEM_CONNECT_TIME_MS", bad);
    const Status status = MakeSettings({.host = "127.0.0.1", .port = 5}).status();
    EXPECT_EQ(status.GetCode(), K_INVALID) << bad;
    EXPECT_THAT(status.GetMsg(), HasSubstr("DATASYSTEM_CONNECT_TIME_MS"));
  }
  const Variable port("DATASYSTEM_PORT", "high");
  EXPECT_THAT(MakeSettings({.host = "127.0.0.1"}).status().GetMsg(), HasSubstr("DATASYSTEM_PORT"));
}

TEST(Settings, SayWhatIsMissingOrWrong) {
  const struct {
    ConnectOptions options;
    const char* reason;
  } cases[] = {
      {{}, "DATASYSTEM_HOST"},
      {{.host = "127.0.0.1"}, "DATASYSTEM_PORT"},
      {{.host = "127.0.0.1", .port = 65536}, "worker port 65536 is out of range"},
      {{.host = "127.0.0.1", .port = -1}, "worker port -1 is out of range"},
      {{.host = "no such host", .port = 1}, "worker host 'no such host' cannot be resolved"},
      {{.host = "127.0.0.1", .port = 1, .connectTimeoutMs = -1}, "connectTimeoutMs is -1"},
  };
  for (const auto& c : cases) {
    const Status status = MakeSettings(c.options).status();
    EXPECT_EQ(status.GetCode(), K_INVALID);
    EXPECT_THAT(status.GetMsg(), HasSubstr(c.reason));
  }
}

TEST(Settings, NamesAreResolved) {
  auto settings = MakeSettings({.host = "localhost", .port = 1});
  ASSERT_TRUE(settings.ok()) << settings.status().ToString();
  EXPECT_THAT(settings->worker.ToString(), testing::AnyOf("127.0.0.1:1", "[::1]:1"));
}

TEST(Settings, RefuseOptionsThatWouldGiveAFalseSenseOfSafety) {
  const ConnectOptions base{.host = "127.0.0.1", .port = 1};
  const std::pair<const char*, void (*)(ConnectOptions&)> cases[] = {
      {"token", [](ConnectOptions& o) { o.token = "x"; }},
      {"clientPublicKey", [](ConnectOptions& o) { o.clientPublicKey = "x"; }},
      {"clientPrivateKey", [](ConnectOptions& o) { o.clientPrivateKey = "x"; }},
      {"serverPublicKey", [](ConnectOptions& o) { o.serverPublicKey = "x"; }},
      {"accessKey", [](ConnectOptions& o) { o.SetAkSkAuth("a", "s", "t"); }},
      {"secretKey", [](ConnectOptions& o) { o.secretKey = "x"; }},
      {"tenantId", [](ConnectOptions& o) { o.tenantId = "x"; }},
  };
  for (const auto& [name, set] : cases) {
    ConnectOptions options = base;
    set(options);
    const Status status = MakeSettings(options).status();
    EXPECT_EQ(status.GetCode(), K_NOT_SUPPORTED);
    EXPECT_THAT(status.GetMsg(), testing::StartsWith(name));
  }
}

TEST(SensitiveValue, ComparesCopiesAndMoves) {
  SensitiveValue a("secret");
  SensitiveValue b(a);
  EXPECT_TRUE(a == b);
  EXPECT_TRUE(a != SensitiveValue("secreT"));
  EXPECT_TRUE(a != SensitiveValue("secret2"));
  SensitiveValue c(std::move(b));
  EXPECT_EQ(std::string(c.GetData(), c.GetSize()), "secret");
  EXPECT_TRUE(b.Empty());  // NOLINT: moved from, on purpose
  a = std::string("other");
  b = a;
  c = std::move(a);
  EXPECT_TRUE(b == c && a.Empty());  // NOLINT: the same
  EXPECT_TRUE(SensitiveValue(static_cast<const char*>(nullptr)).Empty());
}

}  // namespace
}  // namespace datasystem::client
