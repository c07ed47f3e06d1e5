#include "shm/mapped_segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sys/mman.h>

#include "shm/cache_memory.h"
#include "shm/segment.h"

namespace datasystem::shm {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;

UniqueFd MakeFile(uint64_t size, int seals) {
  UniqueFd fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(MappedSegment, SeesWhatTheWorkerWroteAtALocation) {
  auto memory = CacheMemory::Create({.size_bytes = kMiB});
  ASSERT_TRUE(memory.ok());
  auto extent = (*memory)->Allocate(5);
  ASSERT_TRUE(extent.ok());
  extent->bytes()[4] = std::byte{42};
  const SegmentHandle handle = (*memory)->segments().at(extent->location().segment);

  auto mapped = MappedSegment::Map(UniqueFd(::dup(handle.fd)), handle.size_bytes);
  ASSERT_TRUE(mapped.ok()) << mapped.status().ToString();
  auto bytes = mapped->At(extent->location().offset, extent->location().size);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ((*bytes)[4], std::byte{42});
}

TEST(MappedSegment, RefusesPlacesOutsideItself) {
  auto mapped = MappedSegment::Map(MakeFile(kMiB, F_SEAL_SHRINK), kMiB);
  ASSERT_TRUE(mapped.ok());
  EXPECT_TRUE(mapped->At(0, kMiB).ok());
  const uint64_t max = ~0ULL;
  for (auto [offset, size] : {std::pair<uint64_t, uint64_t>{0, kMiB + 1}, {kMiB, 1}, {1, kMiB},
                              {max, 2}, {2, max}, {max, max}}) {
    EXPECT_EQ(mapped->At(offset, size).status().GetCode(), K_OUT_OF_RANGE) << offset << " " << size;
  }
}

TEST(MappedSegment, RefusesFilesSmallerThanAnnounced) {
  EXPECT_EQ(MappedSegment::Map(MakeFile(4096, F_SEAL_SHRINK), 8192).status().GetCode(), K_INVALID);
  EXPECT_EQ(MappedSegment::Map(MakeFile(4096, F_SEAL_SHRINK), ~0ULL).status().GetCode(), K_INVALID);
  EXPECT_EQ(MappedSegment::Map(MakeFile(4096, F_SEAL_SHRINK), 0).status().GetCode(), K_INVALID);
}

TEST(MappedSegment, RefusesFilesThatCouldShrinkLater) {
  EXPECT_EQ(MappedSegment::Map(MakeFile(4096, F_SEAL_GROW), 4096).status().GetCode(), K_INVALID);
}

TEST(MappedSegment, RefusesDescriptorsThatAreNone) {
  EXPECT_EQ(MappedSegment::Map(UniqueFd(), 4096).status().GetCode(), K_IO_ERROR);
}

// Pages of this process's mapping, by /proc.
uint64_t MappedKib(const MappedSegment& segment) {
  char address[32];
  std::snprintf(address, sizeof(address), "%lx-", reinterpret_cast<unsigned long>(segment.bytes().data()));
  std::ifstream maps("/proc/self/smaps");
  bool found = false;
  for (std::string line; std::getline(maps, line);) {
    found = found || line.starts_with(address);
    if (found && line.starts_with("Rss:")) return std::stoull(line.substr(4));
  }
  return 0;
}

TEST(MappedSegment, TouchingMapsThePagesAroundAPlaceOnce) {
  const Segment worker = Segment::Create({.size_bytes = 4 << 20}).value();
  std::memset(worker.bytes().data(), 1, worker.bytes().size());
  const auto client = MappedSegment::Map(UniqueFd(::dup(worker.fd())), worker.bytes().size()).value();
  EXPECT_EQ(MappedKib(client), 0u);
  client.Touch(client.bytes().subspan(kChunkBytes + 5, 1));
  EXPECT_EQ(MappedKib(client), kChunkBytes / 1024);
  // Across the border of two pieces, and to the end of the segment.
  client.Touch(client.bytes().subspan(2 * kChunkBytes - 1, 2));
  EXPECT_EQ(MappedKib(client), 2 * kChunkBytes / 1024);
  client.Touch(client.bytes().last(1));
  EXPECT_EQ(MappedKib(client), 3 * kChunkBytes / 1024);
}

}  // namespace
}  // namespace datasystem::shm
