#include "shm/backing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <optional>
#include <string>
#include <thread>

#include "shm/backing_thread.h"
#include "shm/cache_memory.h"

namespace datasystem::shm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kChunk = 256 * 1024;
constexpr uint64_t kAll = ~uint64_t{0};  // no limit of a step

// Bytes of memory that the file has. (mincore() does not see pages that fallocate() obtained.)
uint64_t FileBytes(int fd) {
  struct stat state {};
  EXPECT_EQ(::fstat(fd, &state), 0);
  return static_cast<uint64_t>(state.st_blocks) * 512;
}

// Touching all of `bytes` obtains no memory: it was there.
void ExpectThere(int fd, std::span<std::byte> bytes) {
  const uint64_t before = FileBytes(fd);
  for (size_t i = 0; i < bytes.size(); i += 4096) bytes[i] = std::byte{1};
  EXPECT_EQ(FileBytes(fd), before);
}

// A segment, and a container that has as much left as the test says.
class BackingTest : public testing::Test {
 protected:
  static constexpr uint64_t kSize = 8 * kMiB;
  static constexpr uint64_t kLimit = 256 * kMiB;  // so a reserve is 16 MiB

  void Make(BackingOptions options = {}) {
    options.head_room = [this] { return HeadRoom{available_, kLimit, true}; };
    options.clock = &clock_;
    backing_.emplace(segment_, pages_, options);
  }
  // The container has this much beyond the reserve, and it is noticed at once.
  void Leave(uint64_t bytes) {
    available_ = 16 * kMiB + bytes;
    clock_.Advance(std::chrono::seconds(1));
  }
  uint64_t Take(uint64_t size) { return pages_.Take(size, PageRanges::End::kLow).value(); }
  uint64_t ResidentBytes() { return FileBytes(segment_.fd()); }
  void ExpectThere(uint64_t offset, uint64_t size) {
    shm::ExpectThere(segment_.fd(), segment_.bytes().subspan(offset, size));
  }
  void Look(uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) backing_->ReturnIdle(stop_);
  }

  uint64_t available_ = kLimit;
  FakeClock clock_;
  std::atomic<bool> stop_{false};
  Segment segment_ = Segment::Create({.size_bytes = kSize}).value();
  PageRanges pages_{kSize, 4096};
  std::optional<Backing> backing_;
};

class BackingBothWays : public BackingTest, public testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Fallocate, BackingBothWays, testing::Bool());

TEST_P(BackingBothWays, ObtainsExactlyTheChunksOfAnExtent) {
  Make({.fallocate = GetParam()});
  const uint64_t offset = Take(3 * kChunk + 4096);
  ASSERT_TRUE(*backing_->Back(offset, 3 * kChunk + 4096, kAll));
  EXPECT_EQ(backing_->backed_bytes(), 4 * kChunk);
  EXPECT_EQ(ResidentBytes(), 4 * kChunk);
  ExpectThere(offset, 3 * kChunk + 4096);
}

TEST_F(BackingTest, WorksInStepsThatAnEventLoopCanAfford) {
  Make();
  const uint64_t offset = Take(kSize);
  int steps = 1;
  while (!*backing_->Back(offset, kSize, kMiB)) {
    EXPECT_EQ(backing_->backed_bytes(), steps * kMiB);
    ++steps;
  }
  EXPECT_EQ(steps, 8);
  EXPECT_EQ(ResidentBytes(), kSize);
}

TEST_F(BackingTest, ASmallContainerIsAnErrorThatNamesItsLimitAndTheCachesSize) {
  Make();
  Leave(2 * kMiB);
  const uint64_t offset = Take(4 * kMiB);
  const auto refused = backing_->Back(offset, 4 * kMiB, kAll);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().GetCode(), K_OUT_OF_MEMORY);
  EXPECT_THAT(
      refused.status().GetMsg(),
      AllOf(
          HasSubstr("configured for 8 MiB"), HasSubstr("2 MiB are there"),
          HasSubstr("the container has only 16 MiB left of its 256 MiB, of which 16 MiB are kept"),
          HasSubstr("Raise the memory limit or lower")));
  EXPECT_EQ(ResidentBytes(), 2 * kMiB);
  Leave(2 * kMiB);
  EXPECT_TRUE(*backing_->Back(offset, 4 * kMiB, kAll));
}

TEST_F(BackingTest, FreeChunksLendTheirMemoryWhenTheContainerHasNoMore) {
  Make();
  const uint64_t first = Take(4 * kMiB);
  ASSERT_TRUE(*backing_->Back(first, 4 * kMiB, kAll));
  const uint64_t second = Take(4 * kMiB);
  Leave(0);
  EXPECT_FALSE(backing_->Back(second, 4 * kMiB, kAll).ok());
  pages_.GiveBack(first, 4 * kMiB);
  EXPECT_TRUE(*backing_->Back(second, 4 * kMiB, kAll));
  EXPECT_EQ(backing_->backed_bytes(), 4 * kMiB);
  EXPECT_EQ(ResidentBytes(), 4 * kMiB);
  ExpectThere(second, 4 * kMiB);
}

TEST_F(BackingTest, WhatADevicePinnedIsNeverMoved) {
  Make({.gives_back = false});
  const uint64_t first = Take(4 * kMiB);
  ASSERT_TRUE(*backing_->Back(first, 4 * kMiB, kAll));
  pages_.GiveBack(first, 4 * kMiB);
  pages_.TakeAt(4 * kMiB, 4 * kMiB);
  Leave(0);
  EXPECT_FALSE(backing_->Back(4 * kMiB, 4 * kMiB, kAll).ok());
  EXPECT_EQ(ResidentBytes(), 4 * kMiB);
}

TEST_F(BackingTest, TheKernelsRefusalIsAnErrorOfTheAllocation) {
  Make({.fallocate = false});
  ASSERT_EQ(::munmap(segment_.bytes().data() + kMiB, kMiB), 0);
  const uint64_t offset = Take(2 * kMiB);
  const auto refused = backing_->Back(offset, 2 * kMiB, kAll);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().GetCode(), K_OUT_OF_MEMORY);
  EXPECT_THAT(refused.status().GetMsg(), HasSubstr("Cannot allocate memory"));
}

TEST_F(BackingTest, PopulatesEverythingAndKeepsItForFirstWrites) {
  Make();
  while (*backing_->PopulateNext()) {
  }
  EXPECT_EQ(ResidentBytes(), kSize);
  Look(3 * Backing::kIdleLooks);
  EXPECT_EQ(backing_->backed_bytes(), kSize);
  EXPECT_EQ(ResidentBytes(), kSize);
}

TEST_F(BackingTest, PopulationStopsWhileTwoReservesAreLeft) {
  Make();
  Leave(17 * kMiB);
  Result<bool> more = true;
  while (more.ok()) more = backing_->PopulateNext();
  EXPECT_EQ(more.status().GetCode(), K_RUNTIME_ERROR);
  EXPECT_THAT(more.status().GetMsg(), AllOf(HasSubstr("of " + std::to_string(kSize) + " bytes"),
                                            HasSubstr("the container has only")));
  EXPECT_EQ(ResidentBytes(), kMiB);
}

TEST_F(BackingTest, SaysHowFarItCameWhenTheKernelRefusesToPopulate) {
  Make();
  ASSERT_EQ(::munmap(segment_.bytes().data() + 2 * kMiB, kMiB), 0);
  BackingThread thread(*backing_, std::chrono::seconds(1));
  const Status refused = thread.PopulateNow();
  EXPECT_EQ(refused.GetCode(), K_RUNTIME_ERROR);
  EXPECT_THAT(refused.GetMsg(), HasSubstr("of " + std::to_string(kSize) + " bytes"));
  EXPECT_EQ(backing_->backed_bytes(), 4 * kMiB);  // from both ends
}

TEST_F(BackingTest, UsedMemoryGoesBackWhenItWasFreeAtEveryLook) {
  Make();
  const uint64_t offset = Take(2 * kMiB);
  ASSERT_TRUE(*backing_->Back(offset, 2 * kMiB, kAll));
  pages_.GiveBack(offset, 2 * kMiB);
  Look(Backing::kIdleLooks);
  EXPECT_EQ(ResidentBytes(), 2 * kMiB);
  Look(1);
  EXPECT_EQ(ResidentBytes(), 0u);
  EXPECT_EQ(backing_->backed_bytes(), 0u);
  EXPECT_EQ(pages_.free_bytes(), kSize);
  EXPECT_EQ(pages_.largest_bytes(), kSize);
}

TEST_F(BackingTest, MemoryInUseStaysAndUseBetweenLooksStartsTheCountAnew) {
  Make();
  const uint64_t kept = Take(kMiB + 4096);
  const uint64_t reused = Take(kMiB);
  ASSERT_TRUE(*backing_->Back(kept, kMiB + 4096, kAll) && *backing_->Back(reused, kMiB, kAll));
  pages_.GiveBack(reused, kMiB);
  Look(Backing::kIdleLooks);
  ASSERT_TRUE(pages_.TakeAt(reused, kMiB) && *backing_->Back(reused, kMiB, kAll));
  pages_.GiveBack(reused, kMiB);
  Look(Backing::kIdleLooks);
  EXPECT_EQ(backing_->backed_bytes(), 2 * kMiB + kChunk);
  Look(1);
  EXPECT_EQ(backing_->backed_bytes(), kMiB + kChunk);
  ExpectThere(kept, kMiB + 4096);
}

TEST_F(BackingTest, EvenUnusedMemoryGoesBackWhenTheContainerRunsShort) {
  Make();
  while (*backing_->PopulateNext()) {
  }
  const uint64_t used = Take(kMiB);
  ASSERT_TRUE(*backing_->Back(used, kMiB, kAll));
  backing_->RelievePressure(stop_);
  EXPECT_EQ(backing_->backed_bytes(), kSize);
  available_ = 14 * kMiB;
  clock_.Advance(std::chrono::seconds(1));
  backing_->RelievePressure(stop_);
  EXPECT_EQ(backing_->backed_bytes(), kSize - 2 * kMiB);
  available_ = 0;
  clock_.Advance(std::chrono::seconds(1));
  backing_->RelievePressure(stop_);
  EXPECT_EQ(backing_->backed_bytes(), kMiB);
  ExpectThere(used, kMiB);
}

TEST(CacheMemoryBacking, ExtentsHaveTheirPagesAndIdleOnesGoBackByThemselves) {
  auto memory = CacheMemory::Create({.size_bytes = 32 * kMiB,
                                     .return_idle_after = std::chrono::seconds(0),
                                     .head_room =
                                         [] {
                                           return HeadRoom{17 * kMiB, 256 * kMiB, true};
                                         }})
                    .value();
  {
    auto extent = memory->Allocate(kMiB);  // all that is beyond the reserve
    ASSERT_TRUE(extent.ok()) << extent.status().ToString();
    ExpectThere(memory->segments()[0].fd, extent->bytes());
    EXPECT_GE(memory->usage().populated_bytes, kMiB);
  }
  const auto deadline = Clock::Steady().Now() + std::chrono::seconds(60);
  while (memory->usage().populated_bytes > 0 && Clock::Steady().Now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(memory->usage().populated_bytes, 0u);
}

TEST(CacheMemoryBacking, AnAllocationThatCannotBeBackedChangesNothing) {
  for (const uint64_t size : {uint64_t{100}, 2 * kMiB}) {
    auto memory = CacheMemory::Create({.size_bytes = 32 * kMiB,
                                       .head_room =
                                           [] {
                                             return HeadRoom{16 * kMiB, 256 * kMiB, true};
                                           }})
                      .value();
    const auto refused = memory->Allocate(size);
    EXPECT_EQ(refused.status().GetCode(), K_OUT_OF_MEMORY);
    EXPECT_THAT(refused.status().GetMsg(), HasSubstr("the container has only"));
    EXPECT_EQ(memory->usage().allocated_bytes, 0u);
    EXPECT_EQ(memory->usage().reserved_bytes, 0u);
    auto reserved = memory->Reserve(size);
    ASSERT_TRUE(reserved.ok());
    EXPECT_FALSE(memory->Back(*reserved).ok());
  }
}

TEST(CacheMemoryBacking, TooLittleForPopulationAtStartIsRefused) {
  auto memory =
      CacheMemory::Create({.size_bytes = 32 * kMiB, .populate_at_start = true, .head_room = [] {
                             return HeadRoom{33 * kMiB, 256 * kMiB, true};
                           }});
  ASSERT_FALSE(memory.ok());
  EXPECT_THAT(memory.status().GetMsg(), HasSubstr("of its 256 MiB"));
}

}  // namespace
}  // namespace datasystem::shm
