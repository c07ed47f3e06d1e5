#include "store/object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <stop_token>
#include <thread>

namespace datasystem::store {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kMiB = 1024 * 1024;

class ObjectStoreTest : public testing::Test {
 protected:
  // 16 MiB: values of 1 MiB fit 16 times.
  ObjectStoreTest() : memory_(shm::CacheMemory::Create({.size_bytes = 16 * kMiB}).value()),
                      index_(shm::Index::Create({.bytes_max = 4 * kMiB}).value()) {}

  // Sets a value whose bytes are all `fill`.
  Status Set(std::string_view key, uint64_t size, ObjectMeta meta = {}, int fill = 1) {
    ASSIGN_OR_RETURN(shm::Extent extent, store_.Allocate(size));
    std::ranges::fill(extent.bytes(), static_cast<std::byte>(fill));
    return store_.Publish(key, meta, extent).status();
  }
  Status SetEvictable(std::string_view key, uint64_t size) { return Set(key, size, {.evictable = true}); }
  // Without the mark that Find leaves.
  bool Holds(std::string_view key) const {
    bool found = false;
    store_.ForEach([&](const Object& object) { found |= object.key() == key; });
    return found;
  }

  std::unique_ptr<shm::CacheMemory> memory_;
  std::unique_ptr<shm::Index> index_;
  FakeClock clock_;
  std::vector<std::string> dropped_;
  ObjectStore store_{*memory_, *index_, clock_, [this](const Object& o) { dropped_.emplace_back(o.key()); }};
};

bool AllBytesAre(const ObjectRef& object, int fill) {
  return std::ranges::all_of(object.bytes(), [=](std::byte b) { return b == std::byte(fill); });
}

TEST_F(ObjectStoreTest, FindsWhatWasPublishedAndNothingElse) {
  ASSERT_TRUE(Set("a", 1000, {.version = 7}, 3).IsOk());
  const ObjectRef found = store_.Find("a");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->key(), "a");
  EXPECT_EQ(found->meta().version, 7u);
  EXPECT_EQ(found->size(), 1000u);
  EXPECT_TRUE(AllBytesAre(found, 3));
  EXPECT_FALSE(store_.Find("b"));
  EXPECT_FALSE(store_.Find(""));
}

TEST_F(ObjectStoreTest, FindsEveryOneOfManyKeys) {
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(Set("key" + std::to_string(i), 64).IsOk());
  for (int i = 0; i < 5000; i += 2) EXPECT_TRUE(store_.Erase("key" + std::to_string(i), 0));
  for (int i = 0; i < 5000; ++i) EXPECT_EQ(bool(store_.Find("key" + std::to_string(i))), i % 2 == 1);
  EXPECT_EQ(store_.stats().objects, 2500u);
}

TEST_F(ObjectStoreTest, RefusesValuesWithoutBytes) {
  EXPECT_EQ(store_.Allocate(0).status().GetCode(), K_INVALID);
}

TEST_F(ObjectStoreTest, OverwritingLeavesTheOldBytesToWhoReadsThem) {
  ASSERT_TRUE(Set("a", 1000, {.version = 1}, 1).IsOk());
  const ObjectRef old = store_.Find("a");
  ASSERT_TRUE(Set("a", 1000, {.version = 2}, 2).IsOk());
  EXPECT_TRUE(AllBytesAre(old, 1));
  EXPECT_TRUE(AllBytesAre(store_.Find("a"), 2));
  EXPECT_EQ(store_.Find("a")->meta().version, 2u);
  EXPECT_EQ(store_.stats().objects, 1u);
  EXPECT_THAT(dropped_, IsEmpty());
}

TEST_F(ObjectStoreTest, MemoryReturnsWithTheLastReference) {
  ASSERT_TRUE(Set("a", 12 * kMiB, {}, 1).IsOk());
  ObjectRef first = store_.Find("a");
  ObjectRef second = first;
  EXPECT_TRUE(store_.Erase("a", 0));
  EXPECT_FALSE(store_.Find("a"));
  first = {};
  EXPECT_EQ(store_.Allocate(12 * kMiB).status().GetCode(), K_OUT_OF_MEMORY);
  EXPECT_TRUE(AllBytesAre(second, 1));
  second = {};
  EXPECT_EQ(memory_->usage().allocated_bytes, 0u);
  EXPECT_TRUE(store_.Allocate(12 * kMiB).ok());
}

TEST_F(ObjectStoreTest, EraseLeavesVersionsNewerThanAskedFor) {
  ASSERT_TRUE(Set("a", 10, {.version = 5}).IsOk());
  EXPECT_FALSE(store_.Erase("a", 4));
  EXPECT_TRUE(store_.Find("a"));
  EXPECT_TRUE(store_.Erase("a", 5));
  EXPECT_FALSE(store_.Erase("a", 5));
}

TEST_F(ObjectStoreTest, EvictsTheOldestThatNobodyAskedFor) {
  for (const char* key : {"a", "b", "c", "d"}) ASSERT_TRUE(SetEvictable(key, 4 * kMiB).IsOk());
  store_.Find("a");
  store_.Find("c");
  ASSERT_TRUE(SetEvictable("e", 4 * kMiB).IsOk());
  ASSERT_TRUE(SetEvictable("f", 4 * kMiB).IsOk());
  EXPECT_THAT(dropped_, ElementsAre("b", "d"));
  // The hand goes on behind d: e and f are next, then, as their memory lies apart, a: its mark is gone.
  ASSERT_TRUE(SetEvictable("g", 8 * kMiB).IsOk());
  EXPECT_THAT(dropped_, ElementsAre("b", "d", "e", "f", "a"));
  EXPECT_EQ(store_.stats().evictions, 5u);
}

TEST_F(ObjectStoreTest, EvictsMarkedObjectsWhenAllAreMarked) {
  for (const char* key : {"a", "b"}) ASSERT_TRUE(SetEvictable(key, 8 * kMiB).IsOk());
  store_.Find("a");
  store_.Find("b");
  ASSERT_TRUE(SetEvictable("c", 8 * kMiB).IsOk());
  EXPECT_THAT(dropped_, ElementsAre("a"));
}

TEST_F(ObjectStoreTest, EvictionPassesOverWhatIsBeingRead) {
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(SetEvictable(key, 5 * kMiB).IsOk());
  ObjectRef reader = store_.Find("a");
  ASSERT_TRUE(SetEvictable("d", 5 * kMiB).IsOk());
  EXPECT_THAT(dropped_, ElementsAre("b"));
  EXPECT_TRUE(Holds("a"));
  EXPECT_TRUE(AllBytesAre(reader, 1));
}

TEST_F(ObjectStoreTest, ReplicasAreEvictableWithoutSayingSo) {
  ASSERT_TRUE(Set("a", 12 * kMiB, {.role = Role::kReplica}).IsOk());
  ASSERT_TRUE(Set("b", 12 * kMiB).IsOk());
  EXPECT_THAT(dropped_, ElementsAre("a"));
}

TEST_F(ObjectStoreTest, APromotedReplicaStays) {
  ASSERT_TRUE(Set("replica", 8 * kMiB, {.version = 5, .role = Role::kReplica}).IsOk());
  EXPECT_FALSE(store_.Promote("replica", 4)) << "another version";
  EXPECT_FALSE(store_.Promote("absent", 5));
  EXPECT_TRUE(store_.Promote("replica", 5));
  EXPECT_EQ(Set("large", 12 * kMiB).GetCode(), K_OUT_OF_MEMORY);
  EXPECT_TRUE(Holds("replica"));
}

TEST_F(ObjectStoreTest, ObjectsThatMustStayStayAndTheErrorNamesWhatWouldFit) {
  ASSERT_TRUE(Set("stays", 10 * kMiB).IsOk());
  ASSERT_TRUE(SetEvictable("goes", 2 * kMiB).IsOk());
  const Status refused = Set("big", 7 * kMiB);
  EXPECT_EQ(refused.GetCode(), K_OUT_OF_MEMORY);
  EXPECT_THAT(refused.GetMsg(), HasSubstr(std::to_string(7 * kMiB)));
  EXPECT_THAT(refused.GetMsg(), HasSubstr(std::to_string(6 * kMiB)));
  EXPECT_TRUE(Holds("stays"));
  EXPECT_TRUE(Holds("goes"));  // not evicted in vain
  EXPECT_TRUE(Set("fits", 6 * kMiB).IsOk());
  EXPECT_THAT(dropped_, ElementsAre("goes"));
}

TEST_F(ObjectStoreTest, WhenAllIsReadTheErrorNamesWhatWouldFit) {
  ASSERT_TRUE(SetEvictable("a", 10 * kMiB).IsOk());
  ASSERT_TRUE(SetEvictable("b", 2 * kMiB).IsOk());
  const ObjectRef reader = store_.Find("a");
  const Status refused = Set("big", 8 * kMiB);
  EXPECT_EQ(refused.GetCode(), K_OUT_OF_MEMORY);
  EXPECT_THAT(refused.GetMsg(), HasSubstr("fit has " + std::to_string(6 * kMiB)));
  EXPECT_TRUE(AllBytesAre(reader, 1));
}

TEST_F(ObjectStoreTest, WritingManyTimesTheCapacityOfMixedSizesNeverFails) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> exponent(0, std::log2(4.0 * kMiB));
  uint64_t written = 0;
  for (int i = 0; written < 10 * 16 * kMiB; ++i) {
    const auto size = static_cast<uint64_t>(std::exp2(exponent(random)));
    const std::string key = "key" + std::to_string(i % 700);
    const Status status = SetEvictable(key, size);
    ASSERT_TRUE(status.IsOk()) << status.ToString();
    store_.Find("key" + std::to_string(random() % 700));
    written += size;
  }
  EXPECT_EQ(dropped_.size(), store_.stats().evictions);
  EXPECT_GT(dropped_.size(), 0u);
  EXPECT_EQ(store_.stats().object_bytes, memory_->usage().allocated_bytes);
}

TEST_F(ObjectStoreTest, ManySmallValuesMakeRoomForALargeOne) {
  for (int i = 0; i < 20'000; ++i) ASSERT_TRUE(SetEvictable("key" + std::to_string(i), 1000).IsOk());
  ASSERT_TRUE(SetEvictable("large", 15 * kMiB).IsOk());
  EXPECT_TRUE(Holds("large"));
}

TEST_F(ObjectStoreTest, ReserveEvictsInStepsUntilALargeValueFits) {
  for (int i = 0; i < 15'000; ++i) ASSERT_TRUE(SetEvictable("key" + std::to_string(i), 1000).IsOk());
  dropped_.clear();
  int steps = 0;
  auto extent = store_.Reserve(15 * kMiB);
  for (; extent.status().GetCode() == K_TRY_AGAIN; extent = store_.Reserve(15 * kMiB)) {
    ++steps;
    ASSERT_LE(dropped_.size(), steps * ObjectStore::kEvictedPerStepMax);
  }
  ASSERT_TRUE(extent.ok()) << extent.status().ToString();
  EXPECT_GT(steps, 10);
}

TEST_F(ObjectStoreTest, ReserveDropsExpiredObjectsInSteps) {
  const ObjectMeta ending = {.expires_at = clock_.Now() + seconds(1)};
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(Set("key" + std::to_string(i), 1000, ending).IsOk());
  ASSERT_TRUE(SetEvictable("alive", 1000).IsOk());
  clock_.Advance(seconds(1));
  int steps = 0;
  auto extent = store_.Reserve(9 * kMiB);
  for (; extent.status().GetCode() == K_TRY_AGAIN; extent = store_.Reserve(9 * kMiB)) ++steps;
  ASSERT_TRUE(extent.ok()) << extent.status().ToString();
  EXPECT_GT(steps, 5);
  EXPECT_TRUE(Holds("alive"));
}

TEST_F(ObjectStoreTest, ObjectsThatAreMarkedAgainAndAgainAreEvictedNevertheless) {
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(SetEvictable("key" + std::to_string(i), kMiB).IsOk());
  const std::span<std::byte> bytes = index_->marks_bytes();
  std::jthread vandal([bytes](std::stop_token stop) {
    const std::span marks(reinterpret_cast<uint64_t*>(bytes.data()), bytes.size() / sizeof(uint64_t));
    while (!stop.stop_requested()) {
      for (uint64_t& word : marks) std::atomic_ref(word).store(~uint64_t{0}, std::memory_order_relaxed);
    }
  });
  for (int i = 0; i < 2000; ++i) {
    const Status set = SetEvictable("new" + std::to_string(i), kMiB);
    ASSERT_TRUE(set.IsOk()) << set.ToString();
  }
}

TEST_F(ObjectStoreTest, ASmallValueThatFindsNoSlabIsToldWhy) {
  Status refused;
  for (int i = 0; refused.IsOk(); ++i) refused = Set("key" + std::to_string(i), 10'000);
  EXPECT_EQ(refused.GetCode(), K_OUT_OF_MEMORY);
  EXPECT_THAT(refused.GetMsg(), HasSubstr("no cache memory for 10000 bytes"));
  EXPECT_THAT(refused.GetMsg(), HasSubstr("may not be evicted"));
}

TEST_F(ObjectStoreTest, ExpiredObjectsAreAbsentFromTheirTimeOn) {
  ASSERT_TRUE(Set("a", 10, {.expires_at = clock_.Now() + seconds(5)}).IsOk());
  clock_.Advance(seconds(5) - std::chrono::nanoseconds(1));
  EXPECT_TRUE(store_.Find("a"));
  clock_.Advance(std::chrono::nanoseconds(1));
  EXPECT_FALSE(store_.Find("a"));
  EXPECT_THAT(dropped_, ElementsAre("a"));
  EXPECT_EQ(store_.stats().expirations, 1u);
  EXPECT_EQ(store_.stats().objects, 0u);
}

TEST_F(ObjectStoreTest, ExpiredObjectsCanBeNeitherErasedNorProlonged) {
  ASSERT_TRUE(Set("a", 10, {.expires_at = clock_.Now() + seconds(1)}).IsOk());
  ASSERT_TRUE(Set("b", 10, {.expires_at = clock_.Now() + seconds(1)}).IsOk());
  clock_.Advance(seconds(1));
  EXPECT_FALSE(store_.Erase("a", 100));
  EXPECT_FALSE(store_.SetExpiry("b", clock_.Now() + seconds(1)));
}

TEST_F(ObjectStoreTest, SweepDropsInOrderOfExpiryAndSaysWhenToComeBack) {
  const TimePoint start = clock_.Now();
  ASSERT_TRUE(Set("c", 10, {.expires_at = start + seconds(3)}).IsOk());
  ASSERT_TRUE(Set("a", 10, {.expires_at = start + seconds(1)}).IsOk());
  ASSERT_TRUE(Set("b", 10, {.expires_at = start + seconds(2)}).IsOk());
  ASSERT_TRUE(Set("never", 10).IsOk());
  EXPECT_EQ(store_.SweepExpired(10), start + seconds(1));
  clock_.Advance(seconds(2));
  EXPECT_EQ(store_.SweepExpired(1), start + seconds(2));  // limit reached: at once
  EXPECT_EQ(store_.SweepExpired(10), start + seconds(3));
  EXPECT_THAT(dropped_, ElementsAre("a", "b"));
  clock_.Advance(seconds(100));
  EXPECT_EQ(store_.SweepExpired(10), TimePoint::max());
  EXPECT_TRUE(store_.Find("never"));
}

TEST_F(ObjectStoreTest, ANewExpiryReplacesTheOldOne) {
  const TimePoint start = clock_.Now();
  ASSERT_TRUE(Set("a", 10, {.expires_at = start + seconds(1)}).IsOk());
  EXPECT_TRUE(store_.SetExpiry("a", start + seconds(9)));
  EXPECT_EQ(store_.SweepExpired(10), start + seconds(9));
  EXPECT_TRUE(store_.SetExpiry("a", TimePoint::max()));
  EXPECT_EQ(store_.SweepExpired(10), TimePoint::max());
  EXPECT_FALSE(store_.SetExpiry("b", start));
}

TEST_F(ObjectStoreTest, OverwritingEndsTheOldExpiry) {
  ASSERT_TRUE(Set("a", 10, {.expires_at = clock_.Now() + seconds(1)}).IsOk());
  ASSERT_TRUE(Set("a", 10).IsOk());
  clock_.Advance(seconds(2));
  EXPECT_EQ(store_.SweepExpired(10), TimePoint::max());
  EXPECT_TRUE(store_.Find("a"));
}

TEST_F(ObjectStoreTest, ExpiredObjectsGoBeforeLiveOnesWhenMemoryIsShort) {
  ASSERT_TRUE(SetEvictable("live", 8 * kMiB).IsOk());
  ASSERT_TRUE(Set("ended", 8 * kMiB, {.expires_at = clock_.Now() + seconds(1)}).IsOk());
  clock_.Advance(seconds(1));
  ASSERT_TRUE(Set("new", 8 * kMiB).IsOk());
  EXPECT_THAT(dropped_, ElementsAre("ended"));
}

TEST_F(ObjectStoreTest, ClearUnlinksEverythingButWhatIsReadStaysIntact) {
  ASSERT_TRUE(Set("a", 1000, {.expires_at = clock_.Now() + seconds(1)}, 4).IsOk());
  ASSERT_TRUE(SetEvictable("b", 1000).IsOk());
  ASSERT_TRUE(Set("c", 1000).IsOk());
  const ObjectRef reader = store_.Find("a");
  EXPECT_EQ(store_.Clear(), 3u);
  EXPECT_FALSE(store_.Find("a"));
  EXPECT_TRUE(AllBytesAre(reader, 4));
  EXPECT_EQ(store_.stats().objects, 0u);
  EXPECT_EQ(store_.stats().object_bytes, 0u);
  EXPECT_EQ(memory_->usage().allocated_bytes, 1000u);
  EXPECT_EQ(store_.SweepExpired(10), TimePoint::max());
  ASSERT_TRUE(Set("a", 10).IsOk());
  EXPECT_TRUE(store_.Find("a"));
}

TEST_F(ObjectStoreTest, StatsCountObjectsAndBytes) {
  ASSERT_TRUE(Set("a", 100).IsOk());
  ASSERT_TRUE(Set("b", 200).IsOk());
  ASSERT_TRUE(Set("a", 50).IsOk());
  EXPECT_EQ(store_.stats().objects, 2u);
  EXPECT_EQ(store_.stats().object_bytes, 250u);
}

}  // namespace
}  // namespace datasystem::store
