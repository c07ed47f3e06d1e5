#include "shm/head_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace datasystem::shm {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1024 * 1024;

// The files of a machine with 8 GiB, 4 available.
class HeadRoomSourceTest : public testing::Test {
 protected:
  HeadRoomSourceTest() {
    std::string name = (fs::temp_directory_path() / "head_room_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    Write("proc/meminfo",
          "MemTotal:        8388608 kB\nMemFree:          100 kB\nMemAvailable:    4194304 kB\n");
  }
  ~HeadRoomSourceTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void Unified(const std::string& folder, const std::string& max, uint64_t current_mib,
               uint64_t cached_mib = 0) {
    Write(folder + "/memory.max", max);
    Write(folder + "/memory.current", std::to_string(current_mib * kMiB));
    Write(folder + "/memory.stat", "anon 5\nfile 99999999999\ninactive_file " +
                                       std::to_string(cached_mib * kMiB) + "\nactive_file 0\n");
  }
  static std::string MiBs(uint64_t n) { return std::to_string(n * kMiB) + "\n"; }

  fs::path root_;
};

TEST_F(HeadRoomSourceTest, WithoutControlGroupsTheMachineDecides) {
  const HeadRoomSource source(root_);
  const HeadRoom room = source.Read();
  EXPECT_EQ(room.available_bytes, 4096 * kMiB);
  EXPECT_EQ(room.limit_bytes, 8192 * kMiB);
  EXPECT_FALSE(room.container);
  EXPECT_FALSE(source.ContainerLimit());
}

TEST_F(HeadRoomSourceTest, NothingThatCanBeReadMeansNoLimit) {
  EXPECT_EQ(HeadRoomSource(root_ / "nowhere").Read().available_bytes, ~uint64_t{0});
}

TEST_F(HeadRoomSourceTest, TheTightestGroupUpwardsDecidesInVersion2) {
  Write("proc/self/mountinfo",
        "25 1 0:2 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
  Write("proc/self/cgroup", "0::/pod/worker\n");
  Unified("sys/fs/cgroup/pod", MiBs(2000), 1900);
  Unified("sys/fs/cgroup/pod/worker", MiBs(1000), 300);
  const HeadRoomSource source(root_);
  const HeadRoom room = source.Read();
  EXPECT_EQ(room.available_bytes, 100 * kMiB);
  EXPECT_EQ(room.limit_bytes, 2000 * kMiB);
  EXPECT_TRUE(room.container);
  EXPECT_EQ(source.ContainerLimit(), 1000 * kMiB);
}

TEST_F(HeadRoomSourceTest, CachedFilesCountAsAvailable) {
  Write("proc/self/mountinfo", "25 1 0:2 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  Write("proc/self/cgroup", "0::/\n");
  Unified("sys/fs/cgroup", MiBs(1000), 990, 200);
  EXPECT_EQ(HeadRoomSource(root_).Read().available_bytes, 210 * kMiB);
}

TEST_F(HeadRoomSourceTest, AGroupWithoutLimitIsSkippedAndTheSoftLimitCounts) {
  Write("proc/self/mountinfo", "25 1 0:2 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  Write("proc/self/cgroup", "0::/a\n");
  Unified("sys/fs/cgroup/a", "max\n", 7000);
  EXPECT_FALSE(HeadRoomSource(root_).Read().container);
  Write("sys/fs/cgroup/a/memory.high", MiBs(7500));
  EXPECT_EQ(HeadRoomSource(root_).Read().available_bytes, 500 * kMiB);
}

TEST_F(HeadRoomSourceTest, ReadsVersion1BesideOtherControllers) {
  Write("proc/self/mountinfo",
        "33 30 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "34 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "40 30 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  Write("proc/self/cgroup", "5:cpu:/other\n4:memory:/pod/worker\n0::/\n");
  Write("sys/fs/cgroup/memory/pod/worker/memory.limit_in_bytes", MiBs(500));
  Write("sys/fs/cgroup/memory/pod/worker/memory.usage_in_bytes", MiBs(400));
  Write("sys/fs/cgroup/memory/pod/worker/memory.stat",
        "inactive_file 77777777777\ntotal_inactive_file 0\n");
  Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("sys/fs/cgroup/memory/memory.usage_in_bytes", MiBs(9000));
  const HeadRoom room = HeadRoomSource(root_).Read();
  EXPECT_EQ(room.available_bytes, 100 * kMiB);
  EXPECT_EQ(room.limit_bytes, 500 * kMiB);
}

TEST_F(HeadRoomSourceTest, FindsItsGroupWhenTheContainerSeesOnlyItsOwnPart) {
  for (const std::string mounted : {"/docker/abc", "/"}) {
    Write("proc/self/mountinfo",
          "34 30 0:31 " + mounted + " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    Write("proc/self/cgroup", "4:memory:/docker/abc\n");
    Write("sys/fs/cgroup/memory/memory.limit_in_bytes", MiBs(500));
    Write("sys/fs/cgroup/memory/memory.usage_in_bytes", MiBs(500));
    EXPECT_EQ(HeadRoomSource(root_).Read().available_bytes, 0u) << mounted;
  }
}

TEST(HeadRoomSource, ReadsThisMachine) {
  const HeadRoom room = HeadRoomSource().Read();
  EXPECT_GT(room.available_bytes, 0u);
  EXPECT_LT(room.available_bytes, room.limit_bytes);
}

TEST(HeadRoomBudget, KeepsTheReserveAndReadsAgainWhenTheReadingIsOld) {
  FakeClock clock;
  HeadRoom room{.available_bytes = 100 * kMiB, .limit_bytes = 320 * kMiB, .container = true};
  int readings = 0;
  HeadRoomBudget budget([&] { return ++readings, room; }, clock);
  EXPECT_FALSE(budget.Take(81 * kMiB, 1));  // a reserve is 20 MiB
  EXPECT_FALSE(budget.Take(61 * kMiB, 2));
  EXPECT_TRUE(budget.Take(10 * kMiB, 1));
  EXPECT_EQ(readings, 1);
  EXPECT_FALSE(budget.Take(71 * kMiB, 1));
  budget.GiveBack(10 * kMiB);
  EXPECT_TRUE(budget.Take(15 * kMiB, 1));
  EXPECT_EQ(readings, 1);
  room.available_bytes = 21 * kMiB;
  EXPECT_FALSE(budget.Take(2 * kMiB, 1));  // after so many bytes it looks again
  EXPECT_EQ(readings, 2);
  EXPECT_TRUE(budget.HasReserve());
  room.available_bytes = 19 * kMiB;
  clock.Advance(std::chrono::milliseconds(100));
  EXPECT_FALSE(budget.HasReserve());
  EXPECT_THAT(budget.Shortage(), HasSubstr("the container has only 19 MiB left of its 320 MiB"));
}

}  // namespace
}  // namespace datasystem::shm
