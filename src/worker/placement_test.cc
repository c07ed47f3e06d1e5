#include "worker/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "transport/survey.h"

namespace datasystem::worker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Two nodes; the card mlx5_0 is on node 1.
class TwoNodes : public ::testing::Test {
 protected:
  TwoNodes() {
    Write("devices/system/node/node0/distance", "10 21");
    Write("devices/system/node/node1/distance", "21 10");
    Write("class/infiniband/mlx5_0/device/numa_node", "1");
    Write("class/net/eth0/device/numa_node", "0");
    Write("class/infiniband/rxe0/parent", "eth0");
    Write("class/net/virt0/device/numa_node", "-1");
  }
  ~TwoNodes() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }

  const fs::path root_ = fs::path(::testing::TempDir()) / "sysfs_of_placement_test";
};

TEST_F(TwoNodes, TheNodeOfADeviceIsFoundWithItsPortOrWithout) {
  EXPECT_EQ(transport::NumaNodeOf("mlx5_0:1", root_), 1);
  EXPECT_EQ(transport::NumaNodeOf("eth0", root_), 0);
  EXPECT_EQ(transport::NumaNodeOf("virt0", root_), -1);
  EXPECT_EQ(transport::NumaNodeOf("rxe0:1", root_), 0) << "software RoCE, on eth0";
  EXPECT_EQ(transport::NumaNodeOf("nothing", root_), -1);
  EXPECT_EQ(transport::NumaNodeOf("../../eth0", root_), -1);
  EXPECT_EQ(transport::NumaNodeOf("", root_), -1);
}

TEST_F(TwoNodes, DistancesAreTheKernels) {
  EXPECT_EQ(NodeDistance(1, 0, root_), 21);
  EXPECT_EQ(NodeDistance(1, 1, root_), 10);
  EXPECT_EQ(NodeDistance(1, 2, root_), 0) << "not known";
  EXPECT_EQ(NodeDistance(-1, 0, root_), 0);
}

TEST_F(TwoNodes, MemoryOnAnotherNodeThanTheDeviceIsWarnedOfWithTheRemedy) {
  const auto warning = FarMemory({{0, 384}, {1, 128}}, "mlx5_0:1", 1, root_);
  ASSERT_TRUE(warning.has_value());
  for (const char* part : {"75 % of the cache memory", "mlx5_0:1", "--cpunodebind 1 --membind 1",
                           "memory_nodes=0 (distance 21)"}) {
    EXPECT_THAT(*warning, HasSubstr(part));
  }
}

TEST_F(TwoNodes, NothingIsSaidWhereAllIsNearOrTheDeviceHasNoNode) {
  EXPECT_EQ(FarMemory({{1, 512}}, "mlx5_0:1", 1, root_), std::nullopt);
  EXPECT_EQ(FarMemory({}, "mlx5_0:1", 1, root_), std::nullopt);
  EXPECT_EQ(FarMemory({{0, 512}}, "virt0", -1, root_), std::nullopt);
}

}  // namespace
}  // namespace datasystem::worker
