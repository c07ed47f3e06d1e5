#include "directory/entry_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <random>
#include <string>

namespace datasystem::directory {
namespace {

using testing::ElementsAre;

uint64_t ResidentBytes() {
  uint64_t total_pages = 0;
  uint64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::string KeyNumber(uint64_t number) {
  std::string digits = std::to_string(number);
  return "key-" + std::string(12 - digits.size(), '0') + digits;  // 16 bytes
}

TEST(EntryTable, TakesAtMost100BytesAnEntryBeyondTheKey) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "its shadow of the memory is resident too";
#endif
  constexpr uint64_t kEntries = 200'000;
  const uint64_t before = ResidentBytes();
  EntryTable table;
  for (uint64_t i = 0; i < kEntries; ++i)
    ASSERT_NE(table.Insert(KeyNumber(i), i, TimePoint::max(), 1), 0U);
  const double an_entry = static_cast<double>(ResidentBytes() - before) / kEntries;
  RecordProperty("bytes_per_entry_with_key", std::to_string(an_entry));
  EXPECT_LE(an_entry - 16, 100);
}

TEST(EntryTable, MemoryOfErasedEntriesServesNewOnes) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "what was freed stays resident for a while, to be watched";
#endif
  constexpr uint64_t kEntries = 100'000;
  EntryTable table;
  uint64_t before = 0;
  for (uint64_t round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < kEntries; ++i) {
      ASSERT_NE(table.Insert(KeyNumber(round * kEntries + i), i, TimePoint::max(), 1), 0U);
    }
    if (round == 0) before = ResidentBytes();
    table.ForEach([&](EntryTable::Id id) { table.Erase(id); });
    EXPECT_EQ(table.size(), 0U);
  }
  EXPECT_LT(ResidentBytes(), before + (2 << 20));
}

TEST(EntryTable, KeysOfEveryLengthAreKeptUpToTheLimit) {
  EntryTable table;
  for (size_t size = 0; size <= EntryTable::kKeyMax; ++size) {
    const TimePoint expires_at = size % 2 == 0 ? TimePoint::max() : TimePoint(Duration(size));
    ASSERT_NE(table.Insert(std::string(size, 'k'), size, expires_at, 1), 0U);
  }
  for (size_t size = 0; size <= EntryTable::kKeyMax; ++size) {
    const EntryTable::Id id = table.Find(std::string(size, 'k'));
    ASSERT_NE(id, 0U);
    EXPECT_EQ(table.VersionOf(id), size);
    EXPECT_EQ(table.KeyOf(id).size(), size);
  }
  EXPECT_EQ(table.Insert(std::string(EntryTable::kKeyMax + 1, 'k'), 1, TimePoint::max(), 1), 0U);
}

TEST(EntryTable, TheOwnerIsTheFirstOfTheHoldersAndTheNextOneTakesItsPlace) {
  EntryTable table;
  const EntryTable::Id id = table.Insert("k", 1, TimePoint::max(), 11);
  table.AddHolder(id, 12);
  table.AddHolder(id, 13);
  table.AddHolder(id, 12);
  EXPECT_THAT(table.HoldersOf(id), ElementsAre(11, 12, 13));
  table.MakeOwner(id, 13);
  table.MakeOwner(id, 14);
  EXPECT_THAT(table.HoldersOf(id), ElementsAre(14, 13, 11, 12));
  EXPECT_TRUE(table.RemoveHolder(id, 14));
  EXPECT_TRUE(table.RemoveHolder(id, 11));
  EXPECT_TRUE(table.RemoveHolder(id, 99)) << "who holds nothing";
  EXPECT_THAT(table.HoldersOf(id), ElementsAre(13, 12));
  EXPECT_TRUE(table.RemoveHolder(id, 13));
  EXPECT_FALSE(table.RemoveHolder(id, 12)) << "the last one";
  EXPECT_THAT(table.HoldersOf(id), ElementsAre(12));
}

TEST(EntryTable, AnExpiryThatComesOrGoesMovesTheEntryWithAllItHas) {
  EntryTable table;
  EntryTable::Id id = table.Insert("sixteen bytes -k", 7, TimePoint::max(), 11);
  table.AddHolder(id, 12);
  table.SetHasPrimary(id, true);
  for (const TimePoint expires_at :
       {TimePoint(Duration(5)), TimePoint(Duration(6)), TimePoint::max()}) {
    id = table.SetExpiry(id, expires_at);
    EXPECT_EQ(table.Find("sixteen bytes -k"), id);
    EXPECT_EQ(table.ExpiryOf(id), expires_at);
    EXPECT_EQ(table.VersionOf(id), 7U);
    EXPECT_TRUE(table.HasPrimary(id));
    EXPECT_THAT(table.HoldersOf(id), ElementsAre(11, 12));
  }
}

TEST(EntryTable, HoldersThatLeftMakeRoomForOthers) {
  EntryTable table;
  for (HolderId holder = 1; holder <= 200'000; ++holder) {
    const EntryTable::Id id = table.Insert("k", 1, TimePoint::max(), holder);
    ASSERT_EQ(table.OwnerOf(id), holder);
    table.Erase(id);
    table.ForgetHoldersBut([](HolderId) { return false; });
  }
}

TEST(EntryTable, IsEmptyAndAsGoodAsNewAfterItWasCleared) {
  EntryTable table;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 10'000; ++i)
      ASSERT_NE(table.Insert(KeyNumber(i), i, TimePoint::max(), 1), 0U);
    table.Clear();
    EXPECT_EQ(table.size(), 0U);
    EXPECT_EQ(table.Find(KeyNumber(1)), 0U);
  }
}

TEST(EntryTable, BehavesLikeAMapUnderRandomChanges) {
  struct Expected {
    uint64_t version;
    TimePoint expires_at;
    std::vector<HolderId> holders;
  };
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  EntryTable table;
  std::map<std::string, Expected> map;
  for (int step = 0; step < 200'000; ++step) {
    const uint64_t number = random() % 5000;
    const std::string key = std::to_string(number) + std::string(number % 90, 'x');
    const HolderId holder = 1 + random() % 6;
    const TimePoint expires_at =
        random() % 2 == 0 ? TimePoint::max() : TimePoint(Duration(random() % 1000));
    const EntryTable::Id id = table.Find(key);
    const auto expected = map.find(key);
    ASSERT_EQ(id != 0, expected != map.end());
    if (id == 0) {
      ASSERT_NE(table.Insert(key, step, expires_at, holder), 0U);
      map[key] = {static_cast<uint64_t>(step), expires_at, {holder}};
      continue;
    }
    auto& [version, expiry, holders] = expected->second;
    ASSERT_EQ(table.VersionOf(id), version);
    ASSERT_EQ(table.ExpiryOf(id), expiry);
    ASSERT_EQ(table.HoldersOf(id), holders);
    switch (random() % 4) {
      case 0:
        table.Erase(id);
        map.erase(expected);
        break;
      case 1:
        table.SetExpiry(id, expires_at);
        expiry = expires_at;
        break;
      case 2:
        table.MakeOwner(id, holder);
        std::erase(holders, holder);
        holders.insert(holders.begin(), holder);
        break;
      default:
        const bool last = holders == std::vector<HolderId>{holder};
        ASSERT_EQ(table.RemoveHolder(id, holder), !last);
        if (!last) std::erase(holders, holder);
    }
  }
  size_t seen = 0;
  table.ForEach(
      [&](EntryTable::Id id) { seen += map.contains(std::string(table.KeyOf(id))) ? 1 : 0; });
  EXPECT_EQ(seen, map.size());
  EXPECT_EQ(table.size(), map.size());
}

TEST(GrowingMemory, GrowsInPlaceIsZeroAndEndsAtItsLimit) {
  GrowingMemory memory(32 << 20);
  ASSERT_TRUE(memory.Extend(1));
  std::byte* const first = memory.data();
  *first = std::byte{1};
  ASSERT_TRUE(memory.Extend(32 << 20));
  EXPECT_EQ(memory.data(), first);
  EXPECT_EQ(memory.data()[(32 << 20) - 1], std::byte{0});
  EXPECT_FALSE(memory.Extend((32 << 20) + 1));
  memory.Clear();
  EXPECT_EQ(*first, std::byte{0});
}

}  // namespace
}  // namespace datasystem::directory
