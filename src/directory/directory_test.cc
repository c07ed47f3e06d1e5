#include "directory/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <map>
#include <optional>

namespace datasystem::directory {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr HolderId kSelf = 1;
constexpr HolderId kOther = 2;
constexpr HolderId kThird = 3;

// Answers invalidations when told to, so that a test can look at the time in between.
class ScriptedHolders final : public HolderLink {
 public:
  explicit ScriptedHolders(asio::io_context& context) : answered_(context) {}

  asio::awaitable<Status> Invalidate(HolderId holder, std::string key, uint64_t version,
                                     TimePoint deadline) override {
    invalidated.emplace_back(holder, key, version);
    while (hold_back && std::chrono::steady_clock::now() < deadline) co_await answered_.Wait(deadline);
    const auto own = results.find(holder);
    co_return own == results.end() ? result : own->second;
  }
  asio::awaitable<Status> SetExpiry(HolderId holder, std::string key, uint64_t version, TimePoint expires_at,
                                    TimePoint deadline) override {
    expiries.push_back({holder, key, version, expires_at});
    while (hold_back_expiry && std::chrono::steady_clock::now() < deadline) co_await answered_.Wait(deadline);
    co_return expiry_result;
  }
  void Promote(HolderId holder, std::string key, uint64_t) override { promoted.emplace_back(holder, key); }

  void Answer() {
    hold_back = false;
    hold_back_expiry = false;
    answered_.NotifyAll();
  }

  std::vector<std::tuple<HolderId, std::string, uint64_t>> invalidated;
  std::vector<std::pair<HolderId, std::string>> promoted;
  struct Expiry {
    HolderId holder;
    std::string key;
    uint64_t version;
    TimePoint expires_at;
    bool operator==(const Expiry&) const = default;
  };
  std::vector<Expiry> expiries;
  bool hold_back = false;
  bool hold_back_expiry = false;
  Status result;
  std::map<HolderId, Status> results;  // instead, for these
  Status expiry_result;

 private:
  WaitList answered_;
};

class DirectoryTest : public testing::Test {
 protected:
  // Three members, but a ring that gives all keys to the shard under test.
  DirectoryTest() {
    Begin(directory_, 10, {kSelf}, kSelf);
    directory_.Settle(10);
  }
  // Coroutines that still wait refer to the test's parts.
  ~DirectoryTest() override { context_.shutdown(); }

  static cluster::View ViewOf(uint64_t epoch, const std::vector<HolderId>& ids) {
    cluster::View view;
    view.epoch = epoch;
    for (const HolderId id : ids) {
      cluster::Member member;
      member.address = "127.0.0." + std::to_string(id) + ":31501";
      member.incarnation = id;
      view.members.push_back(member);
    }
    return view;
  }
  static bool Begin(Directory& directory, uint64_t epoch, const std::vector<HolderId>& ring, HolderId self,
                    const std::vector<HolderId>& members = {kSelf, kOther, kThird}) {
    std::vector<std::string> addresses;
    for (const cluster::Member& member : ViewOf(epoch, ring).members) addresses.push_back(member.address);
    return directory.BeginEpoch(ViewOf(epoch, members), std::make_shared<cluster::HashRing>(addresses), self);
  }
  TimePoint Deadline() const { return std::chrono::steady_clock::now() + seconds(60); }

  // Starts an operation; the result is there once it has ended.
  template <typename T>
  using Pending = std::shared_ptr<std::optional<T>>;
  template <typename T>
  Pending<T> Start(asio::awaitable<T> operation) {
    auto result = std::make_shared<std::optional<T>>();
    auto run = [](asio::awaitable<T> op, Pending<T> out) -> asio::awaitable<void> {
      *out = co_await std::move(op);
    };
    asio::co_spawn(context_, run(std::move(operation), result), asio::detached);
    context_.poll();
    return result;
  }
  Pending<Result<uint64_t>> StartUpdate(std::string key, HolderId holder, bool only_if_absent = false) {
    UpdateRequest request;
    request.key = std::move(key);
    request.holder = holder;
    request.only_if_absent = only_if_absent;
    request.deadline = Deadline();
    return Start(directory_.Update(request));
  }
  uint64_t Update(std::string key, HolderId holder) { return (**StartUpdate(key, holder)).value(); }
  Pending<Result<Found>> StartLookup(std::string key, HolderId reader, TimePoint wait_until = TimePoint::min()) {
    LookupRequest request;
    request.key = std::move(key);
    request.reader = reader;
    request.keep_copy = true;
    request.wait_until = wait_until;
    request.deadline = Deadline();
    return Start(directory_.Lookup(request));
  }
  Found Lookup(std::string key, HolderId reader) { return (**StartLookup(key, reader)).value(); }
  Pending<Status> StartExpire(std::string key, TimePoint expires_at) {
    return Start(directory_.Expire(std::move(key), expires_at, Deadline()));
  }
  bool Missing(std::string key, HolderId reader = kThird) {
    return (**StartLookup(key, reader)).status().GetCode() == K_NOT_FOUND;
  }

  struct Context : asio::io_context {
    using asio::io_context::shutdown;
  };
  Context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  ScriptedHolders holders_{context_};
  Directory directory_{context_, Clock::Steady(), holders_};
};

TEST_F(DirectoryTest, FindsTheLatestHolderUnderAVersionThatGrows) {
  const uint64_t first = Update("k", kSelf);
  const uint64_t second = Update("k", kOther);
  EXPECT_GT(second, first);
  EXPECT_EQ(Lookup("k", kThird).owner, kOther);
  EXPECT_EQ(Lookup("k", kThird).version, second);
  EXPECT_TRUE(Missing("absent"));
}

TEST_F(DirectoryTest, AnUpdateIsGrantedOnlyAfterEveryOtherHolderHasDroppedItsCopy) {
  Update("k", kSelf);
  Lookup("k", kOther);  // keeps a replica
  holders_.hold_back = true;
  const auto update = StartUpdate("k", kThird);
  EXPECT_FALSE(*update);
  const auto lookup = StartLookup("k", kThird);
  EXPECT_FALSE(*lookup) << "while a change is under way, nobody may learn the old or the new place";
  holders_.Answer();
  context_.poll();
  ASSERT_TRUE(*update && (*update)->ok());
  ASSERT_TRUE(*lookup && (*lookup)->ok());
  EXPECT_EQ((**lookup)->owner, kThird);
  ASSERT_EQ(holders_.invalidated.size(), 2U);
  EXPECT_EQ(std::get<0>(holders_.invalidated[0]), kSelf);
  EXPECT_EQ(std::get<0>(holders_.invalidated[1]), kOther);
}

TEST_F(DirectoryTest, TheWriterItselfIsNotInvalidated) {
  Update("k", kOther);
  Update("k", kOther);
  EXPECT_THAT(holders_.invalidated, IsEmpty());
}

TEST_F(DirectoryTest, ChangesOfOneKeyWaitForEachOther) {
  Update("k", kSelf);
  holders_.hold_back = true;
  const auto first = StartUpdate("k", kOther);
  const auto second = StartUpdate("k", kThird);
  const auto elsewhere = StartUpdate("other key", kThird);
  EXPECT_TRUE(*elsewhere) << "another key need not wait";
  holders_.Answer();
  context_.poll();
  ASSERT_TRUE(*first && *second);
  EXPECT_GT((*second)->value(), (*first)->value());
  EXPECT_EQ(Lookup("k", kSelf).owner, kThird);
}

TEST_F(DirectoryTest, OnlyIfAbsentCreatesOnce) {
  EXPECT_TRUE((**StartUpdate("k", kSelf, true)).ok());
  EXPECT_EQ((**StartUpdate("k", kOther, true)).status().GetCode(), K_OC_KEY_ALREADY_EXIST);
  EXPECT_EQ(Lookup("k", kThird).owner, kSelf);
}

TEST_F(DirectoryTest, DeleteTellsWhetherTheKeyExistedAndDropsAllCopies) {
  Update("k", kSelf);
  Lookup("k", kOther);
  EXPECT_TRUE((**Start(directory_.Delete("k", Deadline()))).value());
  EXPECT_EQ(holders_.invalidated.size(), 2U);
  EXPECT_TRUE(Missing("k"));
  EXPECT_FALSE((**Start(directory_.Delete("k", Deadline()))).value());
  EXPECT_EQ(directory_.entries(), 0U);
}

TEST_F(DirectoryTest, AFailedInvalidationFailsTheUpdateAndLeavesTheEntry) {
  const uint64_t version = Update("k", kOther);
  holders_.result = errors::DeadlineExceeded("no answer");
  EXPECT_EQ((**StartUpdate("k", kSelf)).status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
  EXPECT_EQ(Lookup("k", kThird).version, version);
}

TEST_F(DirectoryTest, AllHoldersAreToldAtOnceAndTheFirstErrorIsReportedOnceAllHaveAnswered) {
  Update("k", kSelf);
  Lookup("k", kOther);
  Lookup("k", kThird);
  holders_.hold_back = true;
  holders_.results[kOther] = errors::DeadlineExceeded("no answer");
  const auto removal = Start(directory_.Delete("k", Deadline()));
  EXPECT_EQ(holders_.invalidated.size(), 3U) << "none waits for another";
  EXPECT_FALSE(*removal);
  holders_.Answer();
  context_.poll();
  ASSERT_TRUE(*removal);
  EXPECT_EQ((*removal)->status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
}

TEST_F(DirectoryTest, ExpireDropsTheReplicasThenTellsTheOwnerAndKeepsTheVersion) {
  const uint64_t version = Update("k", kOther);
  Lookup("k", kThird);
  const TimePoint until = Deadline();
  EXPECT_TRUE((**StartExpire("k", until)).IsOk());
  ASSERT_EQ(holders_.invalidated.size(), 1U);
  EXPECT_EQ(holders_.invalidated[0], std::tuple(kThird, std::string("k"), version));
  EXPECT_THAT(holders_.expiries, ElementsAre(ScriptedHolders::Expiry{kOther, "k", version, until}));
  EXPECT_EQ(Lookup("k", kSelf).version, version);
}

TEST_F(DirectoryTest, NobodyIsSentToACopyWhileItsExpiryChanges) {
  Update("k", kOther);
  holders_.hold_back_expiry = true;
  const auto expire = StartExpire("k", Deadline());
  const auto lookup = StartLookup("k", kThird);
  EXPECT_FALSE(*expire || *lookup);
  holders_.Answer();
  context_.poll();
  EXPECT_TRUE(*expire && *lookup);
}

TEST_F(DirectoryTest, ExpireCanShortenALifeAndMakeItEndless) {
  Update("k", kOther);
  EXPECT_TRUE((**StartExpire("k", TimePoint::max())).IsOk());
  EXPECT_FALSE(Missing("k"));
  EXPECT_TRUE((**StartExpire("k", std::chrono::steady_clock::now())).IsOk());
  EXPECT_TRUE(Missing("k"));
  EXPECT_EQ((**StartExpire("k", TimePoint::max())).GetCode(), K_NOT_FOUND) << "nothing rises again";
}

TEST_F(DirectoryTest, ExpireOfAnAbsentKeySaysSo) {
  EXPECT_EQ((**StartExpire("k", Deadline())).GetCode(), K_NOT_FOUND);
  EXPECT_EQ(directory_.entries(), 0U);
}

TEST_F(DirectoryTest, ExpireOfAKeyWhoseOwnerHasEvictedItForgetsTheKey) {
  Update("k", kOther);
  holders_.expiry_result = errors::NotFound("evicted");
  EXPECT_EQ((**StartExpire("k", Deadline())).GetCode(), K_NOT_FOUND);
  EXPECT_EQ(directory_.entries(), 0U);
}

TEST_F(DirectoryTest, AfterAFailedExpireTheEntryLivesAsLongAsItsCopiesMay) {
  Update("k", kOther);
  holders_.expiry_result = errors::DeadlineExceeded("no answer");
  EXPECT_EQ((**StartExpire("k", std::chrono::steady_clock::now())).GetCode(), K_RPC_DEADLINE_EXCEEDED);
  EXPECT_FALSE(Missing("k")) << "the owner may still have it";
  EXPECT_EQ((**StartUpdate("k", kSelf, true)).status().GetCode(), K_OC_KEY_ALREADY_EXIST);
}

TEST_F(DirectoryTest, AReplicaThatDoesNotGoFailsTheExpireBeforeTheOwnerIsTold) {
  Update("k", kOther);
  Lookup("k", kThird);
  holders_.result = errors::DeadlineExceeded("no answer");
  EXPECT_EQ((**StartExpire("k", Deadline())).GetCode(), K_RPC_DEADLINE_EXCEEDED);
  EXPECT_THAT(holders_.expiries, IsEmpty());
}

TEST_F(DirectoryTest, ALookupCanWaitForAKeyThatDoesNotExistYet) {
  const auto lookup = StartLookup("k", kThird, Deadline());
  EXPECT_FALSE(*lookup);
  Update("k", kOther);
  context_.poll();
  ASSERT_TRUE(*lookup && (*lookup)->ok());
  EXPECT_EQ((**lookup)->owner, kOther);
}

TEST_F(DirectoryTest, ForgetsCopiesThatTheirHoldersDropped) {
  const uint64_t version = Update("k", kSelf);
  Lookup("k", kOther);
  directory_.Dropped("k", version - 1, kSelf);
  EXPECT_EQ(Lookup("k", kThird).owner, kSelf) << "another version's notice changes nothing";
  directory_.Dropped("k", version, kSelf);
  EXPECT_EQ(Lookup("k", kThird).owner, kOther) << "the replica is what is left";
  EXPECT_THAT(holders_.promoted, ElementsAre(std::pair(kOther, std::string("k"))));
  directory_.Dropped("k", version, kOther);
  directory_.Dropped("k", version, kThird);
  EXPECT_TRUE(Missing("k"));
}

TEST_F(DirectoryTest, AWithdrawnVersionIsForgottenWithTheReadersThatWaitForIt) {
  const uint64_t version = Update("k", kSelf);
  Lookup("k", kOther);
  EXPECT_TRUE((**Start(directory_.Withdraw("k", version - 1, Deadline()))).IsOk());
  EXPECT_FALSE(Missing("k")) << "another version's notice changes nothing";
  EXPECT_TRUE((**Start(directory_.Withdraw("k", version, Deadline()))).IsOk());
  EXPECT_TRUE(Missing("k"));
  EXPECT_THAT(holders_.promoted, IsEmpty());
}

TEST_F(DirectoryTest, AWithdrawalWaitsForTheChangeThatIsUnderWay) {
  const uint64_t version = Update("k", kSelf);
  holders_.hold_back = true;
  holders_.result = errors::DeadlineExceeded("no answer");
  const auto update = StartUpdate("k", kOther);
  const auto withdrawal = Start(directory_.Withdraw("k", version, Deadline()));
  EXPECT_FALSE(*withdrawal);
  holders_.Answer();
  context_.poll();
  EXPECT_TRUE(*update && (*update)->status().IsError());
  EXPECT_TRUE(*withdrawal && (*withdrawal)->IsOk());
  EXPECT_TRUE(Missing("k"));
}

TEST_F(DirectoryTest, ExpiredKeysAreAbsent) {
  UpdateRequest request;
  request.key = "k";
  request.holder = kSelf;
  request.expires_at = std::chrono::steady_clock::now();
  request.deadline = Deadline();
  ASSERT_TRUE((**Start(directory_.Update(request))).ok());
  EXPECT_TRUE(Missing("k"));
  EXPECT_FALSE((**Start(directory_.Exists("k", Deadline()))).value());
  EXPECT_TRUE((**StartUpdate("k", kOther, true)).ok()) << "so it can be created anew";
}

TEST_F(DirectoryTest, AnUpdateOverAnExpiredEntryStillHasItsCopiesDropped) {
  UpdateRequest request;
  request.key = "k";
  request.holder = kOther;
  request.expires_at = std::chrono::steady_clock::now();
  request.deadline = Deadline();
  ASSERT_TRUE((**Start(directory_.Update(request))).ok());
  Update("k", kSelf);
  ASSERT_EQ(holders_.invalidated.size(), 1U) << "by its own clock the holder may read it a little longer";
  EXPECT_EQ(std::get<0>(holders_.invalidated[0]), kOther);
}

TEST_F(DirectoryTest, AGrantThatWasDiscardedDoesNotMakeTheKeyExist) {
  UpdateRequest request;
  request.key = "k";
  request.holder = kOther;
  request.only_if_absent = true;
  request.deadline = Deadline();
  request.discarded = (**Start(directory_.Update(request))).value();
  const auto again = Start(directory_.Update(request));
  ASSERT_TRUE((**again).ok());
  EXPECT_EQ((**Start(directory_.Update(request))).status().GetCode(), K_OC_KEY_ALREADY_EXIST)
      << "but only the very grant that was discarded";
}

TEST_F(DirectoryTest, WorkersThatHaveLeftAreNeitherGrantedNorListed) {
  Update("k", kSelf);
  EXPECT_EQ((**StartUpdate("k", 99)).status().GetCode(), K_TRY_AGAIN);
  EXPECT_EQ((**StartLookup("k", 99)).status().GetCode(), K_TRY_AGAIN);
  EXPECT_EQ(Lookup("k", kThird).owner, kSelf);
}

// Keys that the ring of {1} ∪ {2} gives to worker 1, resp. 2.
class RingChangeTest : public DirectoryTest {
 protected:
  std::string KeyOf(HolderId id, int skip = 0) const {
    const cluster::HashRing ring({"127.0.0.1:31501", "127.0.0.2:31501"});
    for (int i = 0;; ++i) {
      const std::string key = "key" + std::to_string(i);
      if (ring.OwnerOf(key) == "127.0.0." + std::to_string(id) + ":31501" && skip-- == 0) return key;
    }
  }
};

TEST_F(RingChangeTest, AShardOnlyShrinksWhenSomebodyJoinsAndAnswersOn) {
  const std::string mine = KeyOf(kSelf);
  const std::string theirs = KeyOf(kOther);
  Update(mine, kSelf);
  Update(theirs, kSelf);
  EXPECT_FALSE(Begin(directory_, 11, {kSelf, kOther}, kSelf)) << "nothing to collect";
  EXPECT_EQ(Lookup(mine, kOther).owner, kSelf);
  EXPECT_EQ((**StartLookup(theirs, kOther)).status().GetCode(), K_TRY_AGAIN);
  EXPECT_EQ(directory_.entries(), 1U);
}

TEST_F(RingChangeTest, ANewShardAnswersOnceAllMembersHaveReported) {
  Directory joining(context_, Clock::Steady(), holders_);
  EXPECT_TRUE(Begin(joining, 11, {kSelf, kOther}, kOther));
  const std::string key = KeyOf(kOther);
  LookupRequest request;
  request.key = key;
  request.reader = kOther;
  request.deadline = Deadline();
  const auto lookup = Start(joining.Lookup(request));
  EXPECT_FALSE(*lookup);
  joining.Report(11, kSelf, {{.key = key, .version = 77, .primary = true}});
  context_.poll();
  EXPECT_FALSE(*lookup) << "others may have something newer";
  joining.Settle(11);
  context_.poll();
  ASSERT_TRUE(*lookup && (*lookup)->ok());
  EXPECT_EQ((**lookup)->owner, kSelf);
  EXPECT_EQ((**lookup)->version, 77U);
}

TEST_F(RingChangeTest, TheHighestReportedVersionWinsAndOlderCopiesMustGo) {
  Directory joining(context_, Clock::Steady(), holders_);
  Begin(joining, 11, {kSelf, kOther}, kOther);
  const std::string key = KeyOf(kOther);
  EXPECT_THAT(joining.Report(11, kSelf, {{.key = key, .version = 7, .primary = true}}), IsEmpty());
  const auto older = joining.Report(11, kOther, {{.key = key, .version = 9, .primary = true}});
  ASSERT_EQ(older.size(), 1U);
  EXPECT_EQ(older[0].holder, kSelf);
  EXPECT_EQ(older[0].version, 7U);
  const auto late = joining.Report(11, kThird, {{.key = key, .version = 8}});
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late[0].holder, kThird);
}

TEST_F(RingChangeTest, ReportsOfAnotherEpochAreIgnored) {
  Directory joining(context_, Clock::Steady(), holders_);
  Begin(joining, 11, {kSelf, kOther}, kOther);
  joining.Report(10, kSelf, {{.key = KeyOf(kOther), .version = 7, .primary = true}});
  EXPECT_EQ(joining.entries(), 0U);
}

TEST_F(RingChangeTest, AReportCannotBringBackWhatTheShardKnowsToBeDeleted) {
  const std::string key = KeyOf(kSelf);
  const uint64_t version = Update(key, kOther);
  ASSERT_TRUE((**Start(directory_.Delete(key, Deadline()))).value());
  EXPECT_TRUE(Begin(directory_, 11, {kSelf, kOther}, kSelf, {kSelf, kOther})) << "somebody left";
  directory_.Report(11, kOther, {{.key = key, .version = version, .primary = true}});
  EXPECT_TRUE(Missing(key, kOther));
}

TEST_F(RingChangeTest, ReportedVersionsOfEpochsToComeAreIgnored) {
  Directory joining(context_, Clock::Steady(), holders_);
  Begin(joining, 11, {kSelf, kOther}, kOther);
  joining.Report(11, kSelf, {{.key = KeyOf(kOther), .version = UINT64_MAX, .primary = true}});
  EXPECT_EQ(joining.entries(), 0U);
}

TEST_F(RingChangeTest, AfterADeathTheReplicasOfTheLostOwnerBecomePrimary) {
  Begin(directory_, 11, {kSelf, kOther, kThird}, kSelf);
  std::string key;
  for (int i = 0; key.empty(); ++i) {
    if ((**StartUpdate("key" + std::to_string(i), kOther)).ok()) key = "key" + std::to_string(i);
  }
  Lookup(key, kThird);
  EXPECT_TRUE(Begin(directory_, 12, {kSelf, kThird}, kSelf, {kSelf, kThird})) << "its ranges grew";
  EXPECT_EQ(Lookup(key, kSelf).owner, kThird) << "what the shard had before needs no report";
  EXPECT_THAT(holders_.promoted, IsEmpty()) << "the members may not be in this epoch yet";
  directory_.Settle(12);
  EXPECT_THAT(holders_.promoted, ElementsAre(std::pair(kThird, key)));
  directory_.Settle(12);
  EXPECT_EQ(holders_.promoted.size(), 1U) << "once is enough";
}

TEST_F(RingChangeTest, AnUpdateThatTheRingOvertookMustBeRepeated) {
  const std::string mine = KeyOf(kSelf);
  Update(mine, kSelf);
  holders_.hold_back = true;
  const auto update = StartUpdate(mine, kOther);
  Begin(directory_, 11, {kSelf, kOther}, kSelf);
  holders_.Answer();
  context_.poll();
  ASSERT_TRUE(*update);
  EXPECT_EQ((*update)->status().GetCode(), K_TRY_AGAIN);
}

TEST_F(RingChangeTest, AnExpireThatTheRingOvertookMustBeRepeated) {
  const std::string mine = KeyOf(kSelf);
  Update(mine, kOther);
  holders_.hold_back_expiry = true;
  const auto expire = StartExpire(mine, Deadline());
  Begin(directory_, 11, {kSelf, kOther}, kSelf);
  holders_.Answer();
  context_.poll();
  ASSERT_TRUE(*expire);
  EXPECT_EQ((*expire)->GetCode(), K_TRY_AGAIN);
}

TEST_F(RingChangeTest, ASuccessorsVersionsAreAboveItsPredecessors) {
  const uint64_t before = Update(KeyOf(kOther), kSelf);
  Directory joining(context_, Clock::Steady(), holders_);
  Begin(joining, 11, {kSelf, kOther}, kOther);
  joining.Settle(11);
  UpdateRequest request;
  request.key = KeyOf(kOther);
  request.holder = kSelf;
  request.deadline = Deadline();
  EXPECT_GT((**Start(joining.Update(request))).value(), before);
}

TEST_F(RingChangeTest, AWorkerThatLostItsLeaseForgetsEverything) {
  Update("k", kSelf);
  directory_.Reset();
  EXPECT_EQ(directory_.entries(), 0U);
  EXPECT_EQ((**StartUpdate("k", kSelf)).status().GetCode(), K_TRY_AGAIN);
  EXPECT_TRUE(Begin(directory_, 12, {kSelf, kOther}, kSelf)) << "like a first join";
}

}  // namespace
}  // namespace datasystem::directory
