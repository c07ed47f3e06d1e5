#include "shm/placement.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "shm/segment.h"

namespace datasystem::shm {
namespace {

constexpr uint64_t kMib = 1 << 20;

TEST(Placement, ThePageSizeIsTheOneThatTheKernelMapsBy) {
  const auto small = Segment::Create({.size_bytes = 4 * kMib});
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(PageBytesOf(small->bytes()), static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)));
  const HugePages huge = HugePages::Read();
  if (huge.available == 0) GTEST_SKIP() << "no huge pages are free: sysctl -w vm.nr_hugepages=4";
  const auto large = Segment::Create({.size_bytes = huge.page_bytes, .huge_pages = true});
  ASSERT_TRUE(large.ok());
  EXPECT_EQ(PageBytesOf(large->bytes()), huge.page_bytes);
}

TEST(Placement, OfMemoryThatIsNotMappedThereIsNoPageSize) {
  EXPECT_EQ(PageBytesOf({reinterpret_cast<const std::byte*>(16), 4096}), std::nullopt);
}

TEST(Placement, OnlyPagesThatAreThereHaveANode) {
  const auto segment = Segment::Create({.size_bytes = 4 * kMib});
  ASSERT_TRUE(segment.ok());
  EXPECT_TRUE(NodesOf(segment->bytes()).empty());
  std::memset(segment->bytes().data(), 1, 2 * kMib);
  uint32_t places = 0;
  for (const auto& [node, count] : NodesOf(segment->bytes())) places += count;
  EXPECT_EQ(places, 256U) << "half of the 512 places looked at";
}

TEST(Placement, OfNothingThereAreNoNodes) { EXPECT_TRUE(NodesOf({}).empty()); }

}  // namespace
}  // namespace datasystem::shm
