#include "shm/segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "shm/cache_memory.h"

namespace datasystem::shm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kMiB = 1024 * 1024;

constexpr const char* kHugePagesPath = "/proc/sys/vm/nr_hugepages";

// The machine's huge pages are one for all: tests that count them run one at a time, in any process.
class SegmentOfHugePages : public testing::Test {
 protected:
  SegmentOfHugePages() : lock_(::open(kHugePagesPath, O_RDONLY | O_CLOEXEC)) {
    ::flock(lock_.get(), LOCK_EX);
  }

 private:
  UniqueFd lock_;
};

// Sets vm.nr_hugepages and restores it.
class HugePagesReserved {
 public:
  explicit HugePagesReserved(uint64_t count) {
    std::ifstream(kHugePagesPath) >> before_;
    Set(before_ + count);
  }
  ~HugePagesReserved() { Set(before_); }

 private:
  static void Set(uint64_t count) { std::ofstream(kHugePagesPath) << count << std::flush; }
  uint64_t before_ = 0;
};

TEST(Segment, IsZeroedAndRoundedDownToPages) {
  auto segment = Segment::Create({.size_bytes = kMiB + 1});
  ASSERT_TRUE(segment.ok()) << segment.status().ToString();
  EXPECT_EQ(segment->bytes().size(), kMiB);
  EXPECT_EQ(segment->bytes()[kMiB - 1], std::byte{0});
}

TEST(Segment, RefusesLessThanOnePage) {
  EXPECT_EQ(Segment::Create({.size_bytes = 100}).status().GetCode(), K_RUNTIME_ERROR);
}

TEST(Segment, CanBeNeitherTruncatedNorSealedByWhoHoldsItsDescriptor) {
  auto segment = Segment::Create({.size_bytes = kMiB});
  ASSERT_TRUE(segment.ok());
  EXPECT_NE(::ftruncate(segment->fd(), 0), 0);
  EXPECT_NE(::ftruncate(segment->fd(), 2 * kMiB), 0);
  EXPECT_NE(::fcntl(segment->fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
}

TEST(Segment, GoesOnWithSmallPagesWhenTransparentHugePagesAreOff) {
  auto segment = Segment::Create({.size_bytes = 4 * kMiB, .transparent_huge_pages = true});
  ASSERT_TRUE(segment.ok());
  segment->bytes()[0] = std::byte{1};
}

TEST_F(SegmentOfHugePages, AreRefusedWhenTooFewWithTheNumbersAndTheCommand) {
  const HugePages pages = HugePages::Read();
  if (pages.page_bytes == 0) GTEST_SKIP() << "kernel without huge pages";
  const uint64_t needed = pages.available + 3;
  auto segment = Segment::Create({.size_bytes = needed * pages.page_bytes, .huge_pages = true});
  ASSERT_FALSE(segment.ok());
  EXPECT_EQ(segment.status().GetCode(), K_RUNTIME_ERROR);
  EXPECT_THAT(segment.status().GetMsg(),
              AllOf(HasSubstr(std::to_string(needed) + " needed"),
                    HasSubstr(std::to_string(pages.available) + " available"),
                    HasSubstr(std::to_string(pages.page_bytes / 1024) + " KiB"),
                    HasSubstr("sysctl -w vm.nr_hugepages=" + std::to_string(pages.total + 3))));
}

TEST_F(SegmentOfHugePages, AreUsedWhenThereAreEnough) {
  constexpr uint64_t kPages = 8;
  const HugePagesReserved reserved(kPages);
  const HugePages before = HugePages::Read();
  if (before.available < kPages) GTEST_SKIP() << "vm.nr_hugepages cannot be raised here";
  {
    auto memory = CacheMemory::Create({.size_bytes = kPages * before.page_bytes,
                                       .arenas = 2,
                                       .huge_pages = true,
                                       .populate_at_start = true});
    ASSERT_TRUE(memory.ok()) << memory.status().ToString();
    EXPECT_EQ(HugePages::Read().available, before.available - kPages);
    EXPECT_EQ((*memory)->usage().populated_bytes, kPages * before.page_bytes);
    auto small = (*memory)->Allocate(100);
    auto large = (*memory)->Allocate(3 * before.page_bytes);
    ASSERT_TRUE(small.ok() && large.ok());
    large->bytes()[0] = small->bytes()[0] = std::byte{1};
  }
  EXPECT_EQ(HugePages::Read().available, before.available);
}

}  // namespace
}  // namespace datasystem::shm
