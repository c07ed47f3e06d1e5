#include "shm/populator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <vector>

#include "shm/segment.h"

namespace datasystem::shm {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = 1024 * 1024;

// Pages of `bytes` that are in memory.
size_t ResidentPages(std::span<std::byte> bytes) {
  std::vector<unsigned char> pages(bytes.size() / 4096);
  EXPECT_EQ(::mincore(bytes.data(), bytes.size(), pages.data()), 0);
  return static_cast<size_t>(std::ranges::count_if(pages, [](unsigned char p) { return p & 1; }));
}

TEST(Populator, BringsEveryPageIntoMemory) {
  auto segment = Segment::Create({.size_bytes = 3 * kMiB + 8192});
  ASSERT_TRUE(segment.ok());
  ASSERT_EQ(ResidentPages(segment->bytes()), 0u);
  Populator populator(segment->bytes(), segment->page_bytes());
  EXPECT_TRUE(populator.Run().IsOk());
  EXPECT_EQ(populator.populated_bytes(), segment->bytes().size());
  EXPECT_EQ(ResidentPages(segment->bytes()), segment->bytes().size() / segment->page_bytes());
}

TEST(Populator, SaysHowFarItCameWhenTheKernelRefusesPages) {
  auto segment = Segment::Create({.size_bytes = 4 * kMiB});
  ASSERT_TRUE(segment.ok());
  const std::span<std::byte> unmapped = segment->bytes().subspan(kMiB, kMiB);
  ASSERT_EQ(::munmap(unmapped.data(), unmapped.size()), 0);
  Populator populator(segment->bytes(), segment->page_bytes());
  const Status refused = populator.Run();
  EXPECT_EQ(refused.GetCode(), K_RUNTIME_ERROR);
  EXPECT_THAT(refused.GetMsg(), HasSubstr("of " + std::to_string(4 * kMiB) + " bytes"));
  EXPECT_GT(populator.populated_bytes(), 0u);
  EXPECT_LT(populator.populated_bytes(), 3 * kMiB);
}

}  // namespace
}  // namespace datasystem::shm
