#include "cluster/registration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/roster.h"

namespace datasystem::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Member Worker(const std::string& address, uint64_t incarnation = 7) {
  return {.address = address,
          .incarnation = incarnation,
          .endpoint = std::string("\x00\xff\x10", 3),
          .protocol_min = 1,
          .protocol_max = 3,
          .version = "0.1.0"};
}

std::string Encoded(const Member& member) {
  auto text = EncodeRegistration(member);
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  return text.ok() ? *text : "";
}

TEST(Registration, IsReadableJsonThatReadsBack) {
  const Member member = Worker("10.0.0.7:31501", 0xffffffffffffffff);
  EXPECT_EQ(Encoded(member),
            R"({"format":1,"address":"10.0.0.7:31501","incarnation":"ffffffffffffffff",)"
            R"("protocol":[1,3],"version":"0.1.0","endpoint":"00ff10"})");
  const auto decoded = DecodeRegistration(member.address, Encoded(member));
  ASSERT_TRUE(decoded.ok()) << decoded.status().ToString();
  EXPECT_EQ(*decoded, member);
}

TEST(Registration, IgnoresFieldsOfLaterVersions) {
  std::string text = Encoded(Worker("[::1]:1"));
  text.insert(1, R"("zone":{"rack":[1,2]},)");
  EXPECT_TRUE(DecodeRegistration("[::1]:1", text).ok());
}

TEST(Registration, RefusesToWriteWhatNobodyCouldRead) {
  Member no_incarnation = Worker("10.0.0.7:1", 0), no_port = Worker("10.0.0.7"),
         reversed = Worker("10.0.0.7:1"), binary_version = Worker("10.0.0.7:1");
  reversed.protocol_min = 4;
  binary_version.version = "\xc3";
  for (const Member& member : {no_incarnation, no_port, reversed, binary_version}) {
    EXPECT_EQ(EncodeRegistration(member).status().GetCode(), K_INVALID);
  }
}

TEST(Registration, NamesWhatIsWrongWithTheTextOfOthers) {
  const std::string good = Encoded(Worker("10.0.0.7:1"));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::pair<std::string, std::string> cases[] = {
      {"", "not a JSON object"},
      {"[1]", "not a JSON object"},
      {"{\"format\":1", "not a JSON object"},
      {std::string(100'000, '['), "bytes are more than"},
      {std::string(30'000, '['), "not a JSON object"},
      {with("\"format\":1", "\"format\":2"), "format"},
      {with("\"format\":1", "\"format\":-1"), "format"},
      {with("10.0.0.7:1", "10.0.0.8:1"), "address"},
      {with("0000000000000007", "0000000000000000"), "incarnation"},
      {with("0000000000000007", "00000000000000007000"), "incarnation"},
      {with("0000000000000007", "0x7"), "incarnation"},
      {with("\"0000000000000007\"", "7"), "incarnation"},
      {with("[1,3]", "[1,4294967296]"), "protocol"},
      {with("[1,3]", "[1]"), "protocol"},
      {with("[1,3]", "[3,1]"), "protocol"},
      {with("00ff10", "00ff1"), "endpoint"},
      {with("00ff10", "00fg10"), "endpoint"},
      {with("00ff10", std::string(32'770, '0')), "endpoint"},
      {with("0.1.0", "\\u0007"), "version"},
  };
  for (const auto& [text, cause] : cases) {
    const Status status = DecodeRegistration("10.0.0.7:1", text).status();
    EXPECT_EQ(status.GetCode(), K_INVALID) << text.substr(0, 200);
    EXPECT_THAT(status.GetMsg(), HasSubstr(cause)) << text.substr(0, 200);
  }
}

StoreEntry Entry(const std::string& address, uint64_t revision, std::string value) {
  return {"/w/" + address, std::move(value), revision, 1};
}

TEST(Roster, FollowsJoinsReplacementsAndLeaves) {
  Roster roster("/w/");
  const Member a = Worker("10.0.0.1:1"), b = Worker("10.0.0.2:1"), b2 = Worker("10.0.0.2:1", 8);
  EXPECT_THAT(roster.Reset({.entries = {Entry(a.address, 5, Encoded(a))}, .revision = 9}),
              IsEmpty());
  EXPECT_EQ(roster.ToView().epoch, 9);
  EXPECT_THAT(roster.Apply({{.entry = Entry(b.address, 10, Encoded(b))},
                            {.entry = Entry(b.address, 12, Encoded(b2))}}),
              IsEmpty());
  EXPECT_EQ(roster.ToView().epoch, 12);
  EXPECT_THAT(roster.ToView().members, ElementsAre(a, b2));
  EXPECT_THAT(roster.Apply({{.deleted = true, .entry = Entry(a.address, 13, "")}}), IsEmpty());
  EXPECT_EQ(roster.ToView().epoch, 13);
  EXPECT_THAT(roster.ToView().members, ElementsAre(b2));
}

TEST(Roster, ComplainsOnceAboutAMalformedEntryAndStillCountsItsRevision) {
  Roster roster("/w/");
  const Member a = Worker("10.0.0.1:1");
  const StoreEntry junk = Entry("10.0.0.9:1", 7, "junk");
  const StoreSnapshot snapshot{.entries = {Entry(a.address, 5, Encoded(a)), junk}, .revision = 7};
  EXPECT_THAT(roster.Reset(snapshot), ElementsAre(HasSubstr("key=/w/10.0.0.9:1")));
  EXPECT_THAT(roster.Reset(snapshot), IsEmpty());
  EXPECT_THAT(roster.ToView().members, ElementsAre(a));
  // What was good and becomes junk is no member any more.
  EXPECT_THAT(roster.Apply({{.entry = Entry(a.address, 8, "{}")}}),
              ElementsAre(HasSubstr(a.address)));
  EXPECT_THAT(roster.ToView().members, IsEmpty());
  EXPECT_EQ(roster.ToView().epoch, 8);
}

}  // namespace
}  // namespace datasystem::cluster
