#include "worker/object_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/test_workers.h"

namespace datasystem::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

const std::string kNotFound = "error " + std::to_string(K_NOT_FOUND);
constexpr uint64_t kHour = 3600 * 1000;
constexpr auto kAnHour = std::chrono::hours(1);
constexpr SetOptions kNew{.only_if_absent = true};

bool OnlyFetches(PeerMessage type, bool answer) { return type == PeerMessage::kFetch && !answer; }

// Keys of shard 1; worker 2 writes and worker 3 reads, unless a test says otherwise.
class ExpireTest : public testing::Test {
 protected:
  Status Expire(uint64_t worker, uint64_t ttl_ms) {
    return workers_.Run(workers_[worker].objects.Expire(key_, ttl_ms, TestWorkers::Deadline()));
  }
  TimePoint ExpiryAt(uint64_t worker) {
    const store::ObjectRef object = workers_[worker].store.Find(key_);
    return object ? object->meta().expires_at : TimePoint::min();
  }
  static TimePoint After(Duration time) { return std::chrono::steady_clock::now() + time; }

  TestWorkers workers_{3};
  const std::string key_ = workers_.KeyAt(1);
};

TEST_F(ExpireTest, ProlongsAndShortensTheLifeOfAValueWhereverItIsAsked) {
  ASSERT_TRUE(workers_.Set(2, key_, "value").IsOk());
  const uint64_t version = workers_[2].store.Find(key_)->meta().version;
  for (const uint64_t asked : {1, 2, 3}) {
    EXPECT_TRUE(Expire(asked, kHour).IsOk());
    EXPECT_GT(ExpiryAt(2), After(kAnHour - seconds(30)));
    EXPECT_LT(ExpiryAt(2), After(kAnHour + seconds(1)));
    EXPECT_TRUE(Expire(asked, 0).IsOk());
    EXPECT_EQ(ExpiryAt(2), TimePoint::max());
  }
  EXPECT_EQ(workers_[2].store.Find(key_)->meta().version, version);
  EXPECT_EQ(workers_.Get(3, key_), "value");
}

TEST_F(ExpireTest, DropsTheReplicasThatLiveByTheOldTime) {
  ASSERT_TRUE(workers_.Set(2, key_, "value", {.ttl_ms = kHour}).IsOk());
  ASSERT_EQ(workers_.Get(3, key_), "value");
  ASSERT_TRUE(workers_[3].store.Find(key_));
  EXPECT_TRUE(Expire(1, 2 * kHour).IsOk());
  EXPECT_FALSE(workers_[3].store.Find(key_));
  EXPECT_EQ(workers_.Get(3, key_), "value");
  EXPECT_GT(ExpiryAt(3), After(kAnHour + milliseconds(kHour / 2)));
}

TEST_F(ExpireTest, AShortenedLifeEndsForEverybody) {
  ASSERT_TRUE(workers_.Set(2, key_, "value").IsOk());
  ASSERT_EQ(workers_.Get(3, key_), "value");
  ASSERT_TRUE(Expire(3, 1).IsOk());
  EXPECT_TRUE(workers_.RunUntil([&] { return ExpiryAt(2) == TimePoint::min(); }));
  EXPECT_TRUE(workers_.RunUntil([&] { return !workers_.Exists(3, key_); }));
  EXPECT_EQ(workers_.Get(3, key_), kNotFound);
  EXPECT_EQ(Expire(3, kHour).GetCode(), K_NOT_FOUND);
}

TEST_F(ExpireTest, ACopyThatIsStillBeingFetchedWithTheOldTimeIsNotKept) {
  ASSERT_TRUE(workers_.Set(2, key_, "value").IsOk());
  workers_.wire().hold = [](PeerMessage type, bool answer) {
    return type == PeerMessage::kFetch && answer;
  };
  const auto get = workers_.StartGet(3, key_);
  ASSERT_TRUE(workers_.RunUntil([&] { return workers_.wire().held.size() == 1; }));
  EXPECT_TRUE(Expire(1, kHour).IsOk());
  workers_.wire().Release();
  EXPECT_EQ(TestWorkers::ValueOf(workers_.Await(get)), "value") << "it began before";
  EXPECT_FALSE(workers_[3].store.Find(key_));
}

TEST_F(ExpireTest, WaitsForTheSetThatIsAboutToPublish) {
  workers_.wire().hold = [](PeerMessage type, bool answer) {
    return type == PeerMessage::kUpdate && answer;
  };
  const auto set = workers_.StartSet(2, key_, "value");
  ASSERT_TRUE(workers_.RunUntil([&] { return workers_.wire().held.size() == 1; }));
  const auto expire =
      workers_.Start(workers_[1].objects.Expire(key_, kHour, TestWorkers::Deadline()));
  EXPECT_FALSE(*expire);
  workers_.wire().Release();
  EXPECT_TRUE(workers_.Await(set).IsOk());
  EXPECT_TRUE(workers_.Await(expire).IsOk());
  EXPECT_LT(ExpiryAt(2), TimePoint::max());
}

TEST_F(ExpireTest, AnAbsentKeyAndOneThatItsOwnerHasLostAreNotFound) {
  EXPECT_EQ(Expire(3, kHour).GetCode(), K_NOT_FOUND);
  ASSERT_TRUE(workers_.Set(2, key_, "value").IsOk());
  workers_[2].store.Clear();  // and tells nobody
  EXPECT_EQ(Expire(3, kHour).GetCode(), K_NOT_FOUND);
  EXPECT_FALSE(workers_.Exists(1, key_));
}

class SetAllTest : public testing::Test {
 protected:
  Status SetAll(uint64_t worker, std::vector<std::string> keys, SetOptions options = kNew) {
    return workers_.Await(workers_.StartSetAll(worker, std::move(keys), options));
  }
  // In the order in which versions are asked for, at different shards.
  std::vector<std::string> SomeKeys() const {
    std::vector<std::string> keys;
    for (uint64_t shard = 1; shard <= 3; ++shard) keys.push_back(workers_.KeyAt(shard));
    std::sort(keys.begin(), keys.end());
    return keys;
  }

  TestWorkers workers_{3};
  const std::vector<std::string> keys_ = SomeKeys();
};

TEST_F(SetAllTest, PublishesEveryValueUnderItsKey) {
  std::vector<std::string> reversed(keys_.rbegin(), keys_.rend());
  ASSERT_TRUE(SetAll(2, reversed).IsOk());
  for (const std::string& key : keys_) EXPECT_EQ(workers_.Get(3, key), key);
}

TEST_F(SetAllTest, FailsWholeAndNamesTheKeyThatExists) {
  for (const std::string& existing : keys_) {
    ASSERT_TRUE(workers_.Set(3, existing, "old").IsOk());
    const Status failed = SetAll(2, keys_);
    EXPECT_EQ(failed.GetCode(), K_OC_KEY_ALREADY_EXIST);
    EXPECT_THAT(failed.GetMsg(), HasSubstr(existing));
    EXPECT_EQ(workers_.Get(1, existing), "old");
    for (const std::string& key : keys_) {
      if (key == existing) continue;
      EXPECT_FALSE(workers_.Exists(1, key));
      EXPECT_TRUE(workers_.Set(1, key, "mine", kNew).IsOk()) << "at once";
    }
    for (const std::string& key : keys_) {
      ASSERT_TRUE(workers_.Run(workers_[1].objects.Delete(key, TestWorkers::Deadline())).IsOk());
    }
  }
}

TEST_F(SetAllTest, ReadersOfItsKeysWaitForTheOutcome) {
  // At the shard of the first key, so that only the others are asked for by message.
  uint64_t writer = 1;
  while (workers_.KeyAt(writer) != keys_[0]) ++writer;
  const uint64_t reader = writer % 3 + 1;
  for (const bool succeeds : {false, true}) {
    if (!succeeds) {
      ASSERT_TRUE(workers_.Set(writer, keys_[2], "old").IsOk());
    }
    workers_.wire().hold = [](PeerMessage type, bool answer) {
      return type == PeerMessage::kUpdate && !answer;
    };
    const auto set = workers_.StartSetAll(writer, keys_);
    ASSERT_TRUE(workers_.RunUntil([&] { return !workers_.wire().held.empty(); }));
    const auto get = workers_.StartGet(reader, keys_[0]);
    EXPECT_FALSE(*get || *set);
    workers_.wire().Release();
    EXPECT_EQ(workers_.Await(set).IsOk(), succeeds);
    EXPECT_EQ(TestWorkers::ValueOf(workers_.Await(get)), succeeds ? keys_[0] : kNotFound);
    EXPECT_EQ(workers_.Exists(reader, keys_[0]), succeeds);
    ASSERT_TRUE(workers_.Run(workers_[1].objects.Delete(keys_[2], TestWorkers::Deadline())).IsOk());
  }
}

TEST_F(SetAllTest, OfTwoThatOverlapExactlyOneWins) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> mine;
    std::vector<std::string> theirs;
    for (int i = 0; i < 5; ++i) {
      mine.push_back(workers_.KeyAt(1 + i % 3, 10 * round + i));
      theirs.insert(theirs.begin(), workers_.KeyAt(1 + i % 3, 10 * round + i + (i == 4)));
    }
    const uint64_t other = 2 + round % 2;  // the same worker, or another one
    workers_.wire().hold = [](PeerMessage type, bool answer) {
      return type == PeerMessage::kUpdate && !answer;
    };
    const auto first = workers_.StartSetAll(2, mine);
    const auto second = workers_.StartSetAll(other, theirs);
    workers_.wire().Release();
    const bool first_won = workers_.Await(first).IsOk();
    const bool second_won = workers_.Await(second).IsOk();
    EXPECT_NE(first_won, second_won);
    for (const std::string& key : mine)
      EXPECT_EQ(workers_.Exists(1, key), first_won || key != mine[4]);
  }
}

TEST_F(SetAllTest, IsRepeatedWhenTheRingChangesInBetween) {
  workers_.wire().hold = [](PeerMessage type, bool answer) {
    return type == PeerMessage::kUpdate && answer;
  };
  const auto set = workers_.StartSetAll(2, keys_);
  ASSERT_TRUE(workers_.RunUntil([&] { return !workers_.wire().held.empty(); }));
  workers_.NewEpoch(11);
  workers_.wire().Release();
  ASSERT_TRUE(workers_.Await(set).IsOk());
  for (const std::string& key : keys_) EXPECT_EQ(workers_.Get(3, key), key);
}

// Takes what is left of a worker's index, but for `spare` objects with keys as short as those of
// the tests.
std::vector<store::ObjectRef> FillIndex(TestWorkers& workers, uint64_t worker, size_t spare) {
  std::vector<store::ObjectRef> fill;
  for (;;) {
    shm::Extent extent = workers.ExtentOf(worker, "v");
    auto made = workers[worker].store.MakeUnlinked("key00", {}, extent);
    if (!made.ok()) break;
    fill.push_back(*std::move(made));
  }
  fill.resize(fill.size() - spare);
  return fill;
}

TEST_F(SetAllTest, NothingStaysWhenTheIndexHasRoomForSomeOfItsValuesOnly) {
  auto fill = FillIndex(workers_, 2, 2);
  EXPECT_EQ(SetAll(2, keys_).GetCode(), K_OUT_OF_MEMORY);
  for (const std::string& key : keys_) {
    EXPECT_FALSE(workers_[2].store.Find(key));
    EXPECT_FALSE(workers_.Exists(1, key));
    EXPECT_EQ(workers_.Get(3, key), kNotFound);
  }
  fill.clear();
  EXPECT_TRUE(SetAll(2, keys_).IsOk());
}

TEST(Set, WithoutRoomInTheIndexLeavesNeitherTheNewValueNorAnOlderOne) {
  TestWorkers workers(3);
  const std::string key = workers.KeyAt(1);
  ASSERT_TRUE(workers.Set(2, key, "old").IsOk());
  const auto fill = FillIndex(workers, 2, 0);
  EXPECT_EQ(workers.Set(2, key, "new").GetCode(), K_OUT_OF_MEMORY);
  EXPECT_FALSE(workers.Exists(3, key));
  for (const uint64_t worker : {2, 3}) EXPECT_EQ(workers.Get(worker, key), kNotFound);
}

TEST_F(SetAllTest, RefusesWhatCannotBeAllOrNothing) {
  EXPECT_EQ(SetAll(2, keys_, {}).GetCode(), K_INVALID) << "without NX";
  EXPECT_EQ(SetAll(2, {}).GetCode(), K_INVALID);
  EXPECT_EQ(SetAll(2, {keys_[0], keys_[1], keys_[0]}).GetCode(), K_INVALID);
  std::vector<std::string> nine;
  for (int i = 0; i < 9; ++i) nine.push_back("n" + std::to_string(i));
  EXPECT_EQ(SetAll(2, nine).GetCode(), K_INVALID);
  nine.pop_back();
  EXPECT_TRUE(SetAll(2, nine).IsOk());
}

TEST(Sizes, AreToldWithoutMovingTheValues) {
  TestWorkers workers(3);
  ASSERT_TRUE(workers.Set(3, workers.KeyAt(1), "here").IsOk());
  ASSERT_TRUE(workers.Set(2, workers.KeyAt(1, 1), "forwarded").IsOk());
  ASSERT_TRUE(workers.Set(2, workers.KeyAt(2), "at its shard").IsOk());
  ASSERT_TRUE(workers.Set(2, workers.KeyAt(3), "asked by the shard").IsOk());
  const std::vector<std::string> keys{workers.KeyAt(1), workers.KeyAt(1, 1), workers.KeyAt(2),
                                      "absent", workers.KeyAt(3)};
  const auto sizes = workers.Run(workers[3].objects.Sizes(keys, TestWorkers::Deadline()));
  ASSERT_TRUE(sizes.ok());
  ASSERT_EQ(sizes->size(), 5U);
  EXPECT_EQ((*sizes)[0].value(), 4U);
  EXPECT_EQ((*sizes)[1].value(), 9U);
  EXPECT_EQ((*sizes)[2].value(), 12U);
  EXPECT_EQ((*sizes)[3].status().GetCode(), K_NOT_FOUND);
  EXPECT_EQ((*sizes)[4].value(), 18U);
  EXPECT_EQ(workers.wire().payloads, 0);
  ASSERT_TRUE(workers.Set(2, keys[1], "again").IsOk());
  EXPECT_EQ(workers.wire().requests[PeerMessage::kInvalidate], 0) << "who asked is no holder";
}

class SharedGetsTest : public testing::Test {
 protected:
  // Gets at worker 3 of a value at worker 2, while what they ask is held back.
  std::vector<TestWorkers::Pending<Result<store::ObjectRef>>> StartGets(TestWorkers& workers,
                                                                        std::string key,
                                                                        int count) {
    workers.wire().hold = OnlyFetches;
    std::vector<TestWorkers::Pending<Result<store::ObjectRef>>> gets;
    for (int i = 0; i < count; ++i) gets.push_back(workers.StartGet(3, key));
    EXPECT_TRUE(workers.RunUntil([&] { return !workers.wire().held.empty(); }));
    return gets;
  }
};

TEST_F(SharedGetsTest, AHundredReadersCostOneTransfer) {
  TestWorkers workers(3);
  const std::string key = workers.KeyAt(1);
  ASSERT_TRUE(workers.Set(2, key, "value").IsOk());
  const auto gets = StartGets(workers, key, 100);
  workers.wire().Release();
  for (const auto& get : gets) EXPECT_EQ(TestWorkers::ValueOf(workers.Await(get)), "value");
  EXPECT_EQ(workers.wire().payloads, 1);
}

TEST_F(SharedGetsTest, WithoutReplicationACrowdCostsTwoTransfers) {
  TestWorkers workers(3, {.keep_copies = false});
  const std::string key = workers.KeyAt(1);
  ASSERT_TRUE(workers.Set(2, key, "value").IsOk());
  const auto gets = StartGets(workers, key, 100);
  workers.wire().Release();
  for (const auto& get : gets) EXPECT_EQ(TestWorkers::ValueOf(workers.Await(get)), "value");
  EXPECT_EQ(workers.wire().payloads, 2) << "one of the first, and one that began after all others";
}

TEST_F(SharedGetsTest, ALaterReaderIsNotGivenWhatWasOverwrittenMeanwhile) {
  for (const bool keep_copies : {true, false}) {
    TestWorkers workers(3, {.keep_copies = keep_copies});
    const std::string key = workers.KeyAt(1);
    ASSERT_TRUE(workers.Set(2, key, "old").IsOk());
    workers.wire().hold = [](PeerMessage type, bool answer) {
      return type == PeerMessage::kFetch && answer;
    };
    const auto early = workers.StartGet(3, key);
    ASSERT_TRUE(workers.RunUntil([&] { return !workers.wire().held.empty(); }));
    ASSERT_TRUE(workers.Set(1, key, "new").IsOk());
    const auto late = workers.StartGet(3, key);
    workers.wire().Release();
    EXPECT_EQ(TestWorkers::ValueOf(workers.Await(early)), "old");
    EXPECT_EQ(TestWorkers::ValueOf(workers.Await(late)), "new");
  }
}

TEST_F(SharedGetsTest, WhenTheFirstRunsOutOfTimeAnotherFetches) {
  TestWorkers workers(3);
  const std::string key = workers.KeyAt(1);
  ASSERT_TRUE(workers.Set(2, key, "value").IsOk());
  workers.wire().hold = OnlyFetches;
  const auto hasty = workers.StartGet(3, key, milliseconds(20));
  const auto patient = workers.StartGet(3, key);
  EXPECT_EQ(workers.Await(hasty).status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
  workers.wire().Release();
  EXPECT_EQ(TestWorkers::ValueOf(workers.Await(patient)), "value");
}

TEST_F(SharedGetsTest, AReaderWithLessTimeThanTheFirstIsNotHeldUp) {
  TestWorkers workers(3);
  const std::string key = workers.KeyAt(1);
  ASSERT_TRUE(workers.Set(2, key, "value").IsOk());
  workers.wire().hold = OnlyFetches;
  const auto patient = workers.StartGet(3, key);
  const auto hasty = workers.StartGet(3, key, milliseconds(20));
  EXPECT_EQ(workers.Await(hasty).status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
  EXPECT_FALSE(*patient);
  workers.wire().Release();
  EXPECT_EQ(TestWorkers::ValueOf(workers.Await(patient)), "value");
}

TEST_F(SharedGetsTest, NobodyIsMadeToWaitForAKeyThatOnlyAnotherWaitsFor) {
  TestWorkers workers(3);
  const std::string key = workers.KeyAt(1);
  const auto waiting = workers.StartGet(3, key, seconds(20), TestWorkers::Deadline());
  EXPECT_EQ(workers.Get(3, key), kNotFound);
  EXPECT_FALSE(*waiting);
  ASSERT_TRUE(workers.Set(2, key, "value").IsOk());
  EXPECT_EQ(TestWorkers::ValueOf(workers.Await(waiting)), "value");
}

TEST_F(SharedGetsTest, ManyMissesAtOnceCostTwoQuestions) {
  TestWorkers workers(3);
  workers.wire().hold = [](PeerMessage type, bool) { return type == PeerMessage::kGet; };
  std::vector<TestWorkers::Pending<Result<store::ObjectRef>>> gets;
  for (int i = 0; i < 100; ++i) gets.push_back(workers.StartGet(3, workers.KeyAt(1)));
  workers.wire().Release();
  for (const auto& get : gets) EXPECT_EQ(TestWorkers::ValueOf(workers.Await(get)), kNotFound);
  EXPECT_EQ(workers.wire().requests[PeerMessage::kGet], 2);
}

}  // namespace
}  // namespace datasystem::worker
