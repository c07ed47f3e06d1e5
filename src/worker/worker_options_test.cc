#include "worker/worker_options.h"

#include <gtest/gtest.h>

namespace datasystem::worker {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1024 * kMiB;

TEST(Watermarks, FollowTheRatiosInSmallCaches) {
  const Watermarks marks = Watermarks::Of(10 * kGiB, 0.9, 0.8, 10 * kGiB);
  EXPECT_EQ(marks.high_bytes, 9 * kGiB);
  EXPECT_EQ(marks.low_bytes, 8 * kGiB);
}

TEST(Watermarks, KeepNoMoreThanTheReserveFreeInLargeOnes) {
  const Watermarks marks = Watermarks::Of(1000 * kGiB, 0.9, 0.8, 10 * kGiB);
  EXPECT_EQ(marks.high_bytes, 990 * kGiB);
  EXPECT_EQ(marks.low_bytes, 980 * kGiB);
}

TEST(Watermarks, StayInOrderAtTheEdges) {
  const Watermarks never = Watermarks::Of(kGiB, 1, 0, 10 * kGiB);
  EXPECT_EQ(never.high_bytes, kGiB);
  EXPECT_EQ(never.low_bytes, 0u);
  const Watermarks tiny = Watermarks::Of(4096, 0.9, 0.8, 100 * kMiB);
  EXPECT_LE(tiny.low_bytes, tiny.high_bytes);
}

}  // namespace
}  // namespace datasystem::worker
