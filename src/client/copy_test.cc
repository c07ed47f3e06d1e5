#include "client/copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace datasystem::client {
namespace {

TEST(Copy, CopiesEveryByteAndNoMoreAroundTheSizesWhereThreadsBegin) {
  constexpr size_t kMiB = 1 << 20;
  std::vector<std::byte> from(17 * kMiB + 3), to(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 31 + i / 251);
  for (const size_t size :
       {size_t{0}, size_t{1}, 8 * kMiB, 8 * kMiB + 1, 12 * kMiB - 1, 16 * kMiB, 17 * kMiB + 2}) {
    std::fill(to.begin(), to.end(), std::byte{0xEE});
    Copy(to, std::span(from).first(size));
    EXPECT_TRUE(std::equal(from.begin(), from.begin() + static_cast<ptrdiff_t>(size), to.begin()))
        << size;
    EXPECT_EQ(to[size], std::byte{0xEE}) << size;
  }
}

}  // namespace
}  // namespace datasystem::client
