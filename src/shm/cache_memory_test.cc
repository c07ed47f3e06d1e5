#include "shm/cache_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <thread>

namespace datasystem::shm {
namespace {

using testing::HasSubstr;

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

std::unique_ptr<CacheMemory> MakeMemory(uint64_t size_bytes, uint32_t arenas = 1) {
  auto memory = CacheMemory::Create({.size_bytes = size_bytes, .arenas = arenas});
  EXPECT_TRUE(memory.ok()) << memory.status().ToString();
  return std::move(memory).value();
}

// As many extents of `size` as fit.
std::vector<Extent> Fill(CacheMemory& memory, uint64_t size) {
  std::vector<Extent> extents;
  for (auto extent = memory.Allocate(size); extent.ok(); extent = memory.Allocate(size)) {
    extents.push_back(std::move(extent).value());
  }
  return extents;
}

// Log-uniform: as many small sizes as large ones.
uint64_t RandomSize(std::mt19937_64& random, uint64_t max) {
  std::uniform_real_distribution<double> exponent(6, std::log2(static_cast<double>(max)));
  return static_cast<uint64_t>(std::exp2(exponent(random)));
}

TEST(CacheMemory, ExtentsAreAlignedDisjointAndInsideTheSegment) {
  auto memory = MakeMemory(64 * kMiB);
  std::mt19937_64 random(1);
  std::vector<Extent> extents;
  for (int i = 0; i < 500; ++i) {
    auto extent = memory->Allocate(RandomSize(random, 100 * kKiB));
    ASSERT_TRUE(extent.ok());
    extents.push_back(std::move(extent).value());
  }
  std::ranges::sort(extents, {}, [](const Extent& e) { return e.location().offset; });
  uint64_t end = 0;
  for (const Extent& extent : extents) {
    const uint64_t alignment = extent.size() < 512 ? 16 : 64;
    EXPECT_EQ(extent.location().offset % alignment, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(extent.bytes().data()) % alignment, 0u);
    EXPECT_GE(extent.location().offset, end);
    end = extent.location().offset + extent.size();
  }
  EXPECT_LE(end, memory->usage().size_bytes);
}

TEST(CacheMemory, RefusesExtentsWithoutBytes) {
  EXPECT_EQ(MakeMemory(kMiB)->Allocate(0).status().GetCode(), K_INVALID);
}

TEST(CacheMemory, RefusesMoreThanTheMachineHas) {
  auto memory = CacheMemory::Create({.size_bytes = 1ULL << 50});
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.status().GetCode(), K_RUNTIME_ERROR);
  EXPECT_THAT(memory.status().GetMsg(), HasSubstr("Lower the size"));
}

TEST(CacheMemory, ThreeExtentsOf512MiBFitInto2048MiB) {
  auto memory = MakeMemory(2048 * kMiB);
  std::vector<Extent> small;
  for (int i = 0; i < 1000; ++i) small.push_back(memory->Allocate(100).value());
  EXPECT_EQ(Fill(*memory, 512 * kMiB).size(), 3u);
}

TEST(CacheMemory, OneExtentMayTakeTheWholeSegment) {
  auto memory = MakeMemory(100 * kMiB);
  EXPECT_EQ(memory->usage().largest_free_bytes, 100 * kMiB);
  EXPECT_TRUE(memory->Allocate(100 * kMiB).ok());
}

TEST(CacheMemory, WhenFullItNamesTheSizeAndTheLargestFreePiece) {
  auto memory = MakeMemory(8 * kMiB);
  auto half = memory->Allocate(4 * kMiB);
  auto refused = memory->Allocate(5 * kMiB);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().GetCode(), K_OUT_OF_MEMORY);
  EXPECT_THAT(refused.status().GetMsg(), HasSubstr(std::to_string(5 * kMiB)));
  EXPECT_THAT(refused.status().GetMsg(), HasSubstr(std::to_string(4 * kMiB)));
  EXPECT_TRUE(memory->Allocate(4 * kMiB).ok());
  EXPECT_EQ(memory->Allocate(~0ULL).status().GetCode(), K_OUT_OF_MEMORY);
}

TEST(CacheMemory, SmallValuesArePackedTightly) {
  for (const uint64_t size : {64, 100, 1024, 4096, 10'000}) {
    auto memory = MakeMemory(32 * kMiB);
    const uint64_t rounded = (size + 63) / 64 * 64;
    EXPECT_GE(Fill(*memory, size).size() * rounded, 32 * kMiB * 80 / 100) << size;
  }
}

TEST(CacheMemory, HundredBytesTake112) {
  auto memory = MakeMemory(32 * kMiB);
  EXPECT_GE(Fill(*memory, 100).size(), 32 * kMiB / 112 * 99 / 100);
}

TEST(CacheMemory, ExtentsOutliveTheirOwnersAsLocationsUntilAdopted) {
  for (const uint64_t size : {100, 600, 14'336, 14'337, 1 << 20}) {
    auto memory = MakeMemory(4 * kMiB);
    Extent extent = memory->Allocate(size).value();
    std::memset(extent.bytes().data(), 0x5a, size);
    const Location location = extent.Release();
    EXPECT_FALSE(extent.valid());
    EXPECT_EQ(memory->usage().allocated_bytes, size);
    Extent adopted = memory->Adopt(location);
    EXPECT_EQ(adopted.location(), location);
    EXPECT_TRUE(std::ranges::all_of(adopted.bytes(), [](std::byte b) { return b == std::byte{0x5a}; }));
    adopted = Extent();
    EXPECT_EQ(memory->usage().allocated_bytes, 0u);
    EXPECT_EQ(memory->usage().reserved_bytes, 0u) << size;
  }
}

TEST(CacheMemory, TrimmedExtentsGiveBackWholePagesAndKeepTheirBytes) {
  auto memory = MakeMemory(64 * kMiB);
  Extent extent = memory->Allocate(40 * kMiB).value();
  std::memset(extent.bytes().data(), 0x5a, extent.size());
  for (const uint64_t size : {30 * kMiB, 30 * kMiB - 1, 5 * kMiB + 1, uint64_t{14'337}, uint64_t{14'336},
                              uint64_t{14'336}, uint64_t{4097}, uint64_t{4096}, uint64_t{511}, uint64_t{1}}) {
    memory->Trim(extent, size);
    EXPECT_EQ(extent.size(), size);
    const CacheMemoryUsage usage = memory->usage();
    EXPECT_EQ(usage.allocated_bytes, size);
    EXPECT_EQ(usage.reserved_bytes, (size + 4095) / 4096 * 4096);
    EXPECT_TRUE(std::ranges::all_of(extent.bytes(), [](std::byte b) { return b == std::byte{0x5a}; }));
  }
  const Location location = extent.Release();  // of a size that slabs would serve, but pages it is
  memory->Adopt(location);
  EXPECT_EQ(memory->usage().reserved_bytes, 0u);
  EXPECT_TRUE(memory->Allocate(64 * kMiB).ok());
}

TEST(CacheMemory, TrimmedSmallExtentsGoBackToTheirSlab) {
  auto memory = MakeMemory(kMiB);
  for (const uint64_t size : {100, 512, 4097, 14'336}) {
    Extent extent = memory->Allocate(size).value();
    memory->Trim(extent, size / 2);
    EXPECT_EQ(memory->usage().allocated_bytes, size / 2);
    memory->Trim(extent, 1);
    extent = Extent();
    EXPECT_EQ(memory->usage().allocated_bytes, 0u);
    EXPECT_EQ(memory->usage().reserved_bytes, 0u) << size;
  }
}

TEST(CacheMemory, LargeValuesAreRoundedUpToPagesOnly) {
  auto memory = MakeMemory(64 * kMiB);
  const uint64_t size = 513 * kKiB;
  EXPECT_EQ(Fill(*memory, size).size(), 64 * kMiB / (516 * kKiB));
}

TEST(CacheMemory, MemoryOfSmallValuesServesLargeOnesAfterwards) {
  auto memory = MakeMemory(32 * kMiB, 4);
  for (const uint64_t size : {64, 1000, 14'336, 14'337}) {
    EXPECT_GT(Fill(*memory, size).size(), 1000u);
    EXPECT_EQ(memory->usage().allocated_bytes, 0u);
    EXPECT_TRUE(memory->Allocate(32 * kMiB).ok()) << size;
  }
}

TEST(CacheMemory, IsWholeAgainAfterRandomSizesCameAndWent) {
  auto memory = MakeMemory(256 * kMiB, 2);
  std::mt19937_64 random(42);
  std::vector<Extent> extents;
  for (int i = 0; i < 20'000; ++i) {
    auto extent = memory->Allocate(RandomSize(random, 64 * kMiB));
    if (extent.ok()) extents.push_back(std::move(extent).value());
    const size_t drop = extent.ok() ? random() % 3 / 2 : extents.size() / 2;
    for (size_t n = 0; n < drop && !extents.empty(); ++n) {
      std::swap(extents[random() % extents.size()], extents.back());
      extents.pop_back();
    }
  }
  EXPECT_GT(memory->usage().allocated_bytes, 0u);
  extents.clear();
  EXPECT_EQ(memory->usage().reserved_bytes, 0u);
  EXPECT_TRUE(memory->Allocate(256 * kMiB).ok());
}

TEST(CacheMemory, AllArenasTogetherStayWithinTheBound) {
  auto memory = MakeMemory(16 * kMiB, 8);
  std::vector<std::vector<Extent>> extents(8);
  std::vector<std::thread> threads;
  for (auto& mine : extents) {
    threads.emplace_back([&] { mine = Fill(*memory, 5000); });
  }
  for (auto& thread : threads) thread.join();
  std::set<uint64_t> offsets;
  for (const auto& mine : extents) {
    for (const Extent& extent : mine) {
      EXPECT_TRUE(offsets.insert(extent.location().offset).second);
      EXPECT_LE(extent.location().offset + extent.size(), 16 * kMiB);
    }
  }
  const CacheMemoryUsage usage = memory->usage();
  EXPECT_EQ(usage.allocated_bytes, offsets.size() * 5000);
  EXPECT_LE(usage.reserved_bytes, usage.size_bytes);
  EXPECT_GE(usage.allocated_bytes, usage.size_bytes * 85 / 100);
}

TEST(CacheMemory, ThreadsMayReleaseWhatOthersAllocated) {
  auto memory = MakeMemory(64 * kMiB, 3);
  std::vector<std::vector<Extent>> extents(4);
  for (int round = 0; round < 5; ++round) {
    std::vector<std::thread> threads;
    for (size_t t = 0; t < extents.size(); ++t) {
      threads.emplace_back([&, t, round] {
        std::mt19937_64 random(round * 10 + t);
        auto& mine = extents[t];
        mine.clear();  // came from another thread
        for (int i = 0; i < 2000; ++i) {
          auto extent = memory->Allocate(RandomSize(random, 32 * kKiB));
          if (!extent.ok()) continue;
          std::memset(extent->bytes().data(), static_cast<int>(t), extent->size());
          mine.push_back(std::move(extent).value());
          if (i % 3 == 0) mine.erase(mine.begin() + static_cast<long>(random() % mine.size()));
        }
        for (const Extent& extent : mine) {
          EXPECT_TRUE(std::ranges::all_of(
              extent.bytes(), [&](std::byte b) { return b == static_cast<std::byte>(t); }));
        }
      });
    }
    for (auto& thread : threads) thread.join();
    std::rotate(extents.begin(), extents.begin() + 1, extents.end());
  }
  extents.clear();
  EXPECT_EQ(memory->usage().reserved_bytes, 0u);
  EXPECT_TRUE(memory->Allocate(64 * kMiB).ok());
}

TEST(CacheMemory, ResolvesItsLocationsAndRefusesHostileOnes) {
  auto memory = MakeMemory(kMiB);
  auto extent = memory->Allocate(1000);
  ASSERT_TRUE(extent.ok());
  auto bytes = memory->Resolve(extent->location());
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->data(), extent->bytes().data());
  EXPECT_EQ(bytes->size(), 1000u);
  EXPECT_TRUE(memory->Resolve({.segment = 0, .offset = 0, .size = kMiB}).ok());
  const uint64_t max = ~0ULL;
  for (const Location& hostile :
       {Location{1, 0, 1}, Location{0, 0, kMiB + 1}, Location{0, kMiB, 1}, Location{0, 1, kMiB},
        Location{0, max, 2}, Location{0, 2, max}, Location{0, max, max}, Location{0xffffffff, 0, 0}}) {
    EXPECT_EQ(memory->Resolve(hostile).status().GetCode(), K_OUT_OF_RANGE) << hostile.offset;
  }
}

TEST(CacheMemory, PopulatesEverythingBeforeTheStartWhenAsked) {
  auto memory = CacheMemory::Create({.size_bytes = 16 * kMiB, .populate_at_start = true});
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ((*memory)->usage().populated_bytes, 16 * kMiB);
}

TEST(CacheMemory, PopulatesInTheBackgroundWithoutTouchingValues) {
  auto memory = MakeMemory(64 * kMiB);
  auto extent = memory->Allocate(60 * kMiB);
  ASSERT_TRUE(extent.ok());
  std::memset(extent->bytes().data(), 0x5a, extent->size());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (memory->usage().populated_bytes < 64 * kMiB && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(memory->usage().populated_bytes, 64 * kMiB);
  EXPECT_TRUE(std::ranges::all_of(extent->bytes(), [](std::byte b) { return b == std::byte{0x5a}; }));
}

TEST(CacheMemory, StopsPopulatingWhenDestroyed) {
  const auto start = std::chrono::steady_clock::now();
  MakeMemory(4096 * kMiB).reset();  // populating all of it takes more than a second
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST(CacheMemoryDeathTest, CatchesTrimsAndAdoptionsThatCannotBe) {
  const auto trim = [](uint64_t size) {
    auto memory = MakeMemory(kMiB);
    Extent extent = memory->Allocate(100).value();
    memory->Trim(extent, size);
  };
  EXPECT_DEATH(trim(0), "");
  EXPECT_DEATH(trim(101), "");
  EXPECT_DEATH(MakeMemory(kMiB)->Adopt({.segment = 0, .offset = kMiB, .size = 1}), "");
  EXPECT_DEATH(MakeMemory(kMiB)->Adopt({.segment = 1, .offset = 0, .size = 1}), "");
}

TEST(CacheMemoryDeathTest, CatchesExtentsThatOutliveIt) {
  EXPECT_DEATH(
      {
        auto memory = MakeMemory(kMiB);
        auto extent = memory->Allocate(10);
        memory.reset();
      },
      "");
}

}  // namespace
}  // namespace datasystem::shm
