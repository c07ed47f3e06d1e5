#include "base/line_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

namespace datasystem {
namespace {

// Ids are their own keys; many share a hash when `hash_bits` is small.
class LineTableTest : public testing::Test {
 protected:
  static constexpr size_t kLines = 4096;

  static uint64_t HashOf(uint32_t id) { return (uint64_t{id} * 0x9E3779B97F4A7C15) >> 3; }
  bool Contains(uint32_t id) const {
    return table_.Find(HashOf(id), [id](uint32_t found) { return found == id; }) == id;
  }

  std::unique_ptr<TableLine[]> lines_ = std::make_unique<TableLine[]>(kLines);
  std::unique_ptr<TableLine[]> overflow_ = std::make_unique<TableLine[]>(kLines);
  std::atomic<uint32_t> count_{0};
  const TableMemory memory_{{lines_.get(), kLines}, {overflow_.get(), kLines}, &count_};
  LineTable<uint64_t (*)(uint32_t)> table_{memory_, &HashOf};
};

TEST_F(LineTableTest, FindsWhatIsInItThroughAnyOrderOfInsertsAndErases) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<uint32_t> in;
  std::vector<uint32_t> out;
  for (uint32_t id = 1; id <= 20000; ++id) out.push_back(id);
  std::shuffle(out.begin(), out.end(), random);
  for (int step = 0; step < 60000; ++step) {
    const bool insert = in.empty() || (!out.empty() && random() % 5 < 3);
    auto& from = insert ? out : in;
    auto& to = insert ? in : out;
    const size_t pick = random() % from.size();
    const uint32_t id = from[pick];
    from[pick] = from.back();
    from.pop_back();
    to.push_back(id);
    if (insert) {
      ASSERT_TRUE(table_.Insert(HashOf(id), id));
    } else {
      table_.Erase(HashOf(id), id);
    }
  }
  EXPECT_EQ(table_.size(), in.size());
  for (const uint32_t id : in) EXPECT_TRUE(Contains(id));
  for (const uint32_t id : out) EXPECT_FALSE(Contains(id));
  size_t seen = 0;
  table_.ForEach([&](uint32_t) { ++seen; });
  EXPECT_EQ(seen, in.size());
}

TEST_F(LineTableTest, GrowsALineAtATimeAndStaysNearItsFill) {
  for (uint32_t id = 1; id <= 20000; ++id) {
    const uint32_t before = table_.lines();
    ASSERT_TRUE(table_.Insert(HashOf(id), id));
    EXPECT_LE(table_.lines() - before, 1u);
  }
  EXPECT_NEAR(table_.lines(), 20000 / 8, 10);
}

TEST_F(LineTableTest, ReplacingSwapsInPlace) {
  // Two ids of one hash: as two records of one key.
  const uint64_t hash = HashOf(5);
  ASSERT_TRUE(table_.Insert(hash, 5));
  table_.Replace(hash, 5, 6);
  EXPECT_EQ(table_.Find(hash, [](uint32_t) { return true; }), 6u);
  EXPECT_EQ(table_.size(), 1u);
}

TEST(SmallLineTable, RefusesWhatItHasNoLineForAndKeepsTheRest) {
  TableLine lines[1];
  TableLine overflow[2];
  std::atomic<uint32_t> count{0};
  LineTable<uint64_t (*)(uint32_t)> table({lines, overflow, &count}, [](uint32_t) { return uint64_t{7}; });
  for (uint32_t id = 1; id <= 3 * kIdsPerLine; ++id) ASSERT_TRUE(table.Insert(7, id));
  EXPECT_FALSE(table.Insert(7, 1000));
  EXPECT_EQ(table.size(), 3 * kIdsPerLine);
  for (uint32_t id = 1; id <= 3 * kIdsPerLine; ++id) {
    EXPECT_EQ(table.Find(7, [id](uint32_t found) { return found == id; }), id);
    table.Erase(7, id);
  }
  for (uint32_t id = 1; id <= 3 * kIdsPerLine; ++id) ASSERT_TRUE(table.Insert(7, id)) << "lines come back";
}

TEST(CraftedLineTable, KeysChosenToHaveOneHashAreRefusedBeforeAnyGetsLost) {
  constexpr uint32_t kOther = 1 << 20;  // ids from here on have another hash
  const auto hash_of = [](uint32_t id) { return uint64_t{id < kOther ? 7u : 8u}; };
  const auto lines = std::make_unique<TableLine[]>(4096);
  const auto overflow = std::make_unique<TableLine[]>(4096);
  std::atomic<uint32_t> count{0};
  LineTable<uint64_t (*)(uint32_t)> table({{lines.get(), 4096}, {overflow.get(), 4096}, &count}, hash_of);
  uint32_t id = 1;
  while (table.Insert(7, id)) {
    ASSERT_EQ(table.Find(7, [id](uint32_t found) { return found == id; }), id);
    ++id;
  }
  EXPECT_GT(id, 500u);
  EXPECT_LT(id, 1000u);
  EXPECT_TRUE(table.Insert(8, kOther)) << "others are not concerned";
}

TEST_F(LineTableTest, AReaderBesideTheWriterFindsTheIdsThatStay) {
  // Ids up to 1000 stay; others come and go, and make lines split.
  for (uint32_t id = 1; id <= 1000; ++id) ASSERT_TRUE(table_.Insert(HashOf(id), id));
  std::atomic<bool> done{false};
  uint64_t found = 0;
  uint64_t missed = 0;
  std::atomic<uint64_t> foreign{0};
  std::thread reader([&] {
    for (uint32_t id = 1; !done; id = id % 1000 + 1) {
      const bool hit = table_.view().Find(HashOf(id), [&](const LineTableView::Place& place) {
        if (place.id() > 12000) ++foreign;  // was never in the table
        return place.id() == id;
      });
      ++(hit ? found : missed);
    }
  });
  for (int round = 0; round < 20; ++round) {
    for (uint32_t id = 1001; id <= 12000; ++id) ASSERT_TRUE(table_.Insert(HashOf(id), id));
    for (uint32_t id = 1001; id <= 12000; ++id) table_.Erase(HashOf(id), id);
  }
  done = true;
  reader.join();
  EXPECT_EQ(foreign, 0u);
  // A moving id may be missed; most of the time nothing moves.
  EXPECT_LT(missed, found / 10 + 1000);
}

}  // namespace
}  // namespace datasystem
