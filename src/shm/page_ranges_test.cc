#include "shm/page_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace datasystem::shm {
namespace {

constexpr uint64_t kPage = 4096;

TEST(PageRanges, TakesFromTheEndThatWasAskedFor) {
  PageRanges pages(10 * kPage, kPage);
  EXPECT_EQ(pages.Take(2 * kPage, PageRanges::End::kLow), 0u);
  EXPECT_EQ(pages.Take(2 * kPage, PageRanges::End::kHigh), 8 * kPage);
  EXPECT_EQ(pages.free_bytes(), 6 * kPage);
  EXPECT_EQ(pages.largest_bytes(), 6 * kPage);
}

TEST(PageRanges, TakesTheSmallestRangeThatFits) {
  PageRanges pages(10 * kPage, kPage);
  ASSERT_EQ(pages.Take(10 * kPage, PageRanges::End::kLow), 0u);
  pages.GiveBack(0, 4 * kPage);
  pages.GiveBack(6 * kPage, 2 * kPage);
  EXPECT_EQ(pages.Take(2 * kPage, PageRanges::End::kLow), 6 * kPage);
}

TEST(PageRanges, RefusesWhatNoSingleRangeHolds) {
  PageRanges pages(3 * kPage, kPage);
  ASSERT_EQ(pages.Take(3 * kPage, PageRanges::End::kLow), 0u);
  pages.GiveBack(0, kPage);
  pages.GiveBack(2 * kPage, kPage);
  EXPECT_EQ(pages.free_bytes(), 2 * kPage);
  EXPECT_EQ(pages.Take(2 * kPage, PageRanges::End::kLow), std::nullopt);
}

TEST(PageRanges, JoinsNeighboursInWhateverOrderTheyComeBack) {
  std::mt19937 random(7);
  PageRanges pages(64 * kPage, kPage);
  std::vector<uint64_t> taken;
  while (auto offset = pages.Take(kPage, PageRanges::End::kLow)) taken.push_back(*offset);
  ASSERT_EQ(taken.size(), 64u);
  std::shuffle(taken.begin(), taken.end(), random);
  for (const uint64_t offset : taken) pages.GiveBack(offset, kPage);
  EXPECT_EQ(pages.largest_bytes(), 64 * kPage);
}

TEST(PageRanges, GivesAChosenPieceOnlyIfAllOfItIsFree) {
  PageRanges pages(64 * 4096, 4096);
  ASSERT_EQ(pages.Take(8 * 4096, PageRanges::End::kLow), 0u);
  EXPECT_FALSE(pages.IsFree(0, 4096));
  EXPECT_FALSE(pages.TakeAt(7 * 4096, 2 * 4096));
  EXPECT_FALSE(pages.TakeAt(60 * 4096, 5 * 4096));
  EXPECT_TRUE(pages.IsFree(8 * 4096, 56 * 4096));
  EXPECT_TRUE(pages.TakeAt(16 * 4096, 8 * 4096));
  EXPECT_FALSE(pages.IsFree(16 * 4096, 4096));
  EXPECT_FALSE(pages.TakeAt(15 * 4096, 2 * 4096));
  EXPECT_EQ(pages.free_bytes(), 48u * 4096);
  EXPECT_EQ(pages.largest_bytes(), 40u * 4096);
  EXPECT_TRUE(pages.TakeAt(24 * 4096, 40 * 4096));
  EXPECT_TRUE(pages.TakeAt(8 * 4096, 8 * 4096));
  EXPECT_EQ(pages.free_bytes(), 0u);
  pages.GiveBack(0, 64 * 4096);
  EXPECT_EQ(pages.largest_bytes(), 64u * 4096);
}

TEST(PageRangesDeathTest, CatchesPagesThatComeBackTwice) {
  PageRanges pages(4 * kPage, kPage);
  ASSERT_EQ(pages.Take(2 * kPage, PageRanges::End::kLow), 0u);
  pages.GiveBack(0, kPage);
  EXPECT_DEATH(pages.GiveBack(0, kPage), "");
  EXPECT_DEATH(pages.GiveBack(3 * kPage, 2 * kPage), "");
}

}  // namespace
}  // namespace datasystem::shm
