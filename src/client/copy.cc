#include "client/copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>
#include <thread>

#include "client/process.h"

namespace datasystem::client {
namespace {

constexpr size_t kAlone = 8 << 20;  // up to here one thread copies
constexpr size_t kPartMin = 4 << 20;
constexpr size_t kThreadsMax = 4;

}  // namespace

void Copy(std::span<std::byte> to, std::span<const std::byte> from) {
  if (from.empty()) return;
  const size_t parts =
      from.size() <= kAlone ? 1 : std::min({kThreadsMax, CoresOfThisProcess(), from.size() / kPartMin});
  const size_t part = (from.size() / parts + 63) / 64 * 64;
  std::array<std::thread, kThreadsMax> helpers;
  size_t begin = 0;
  for (size_t i = 1; i < parts; ++i, begin += part) {
    try {
      helpers[i] = std::thread([=] { std::memcpy(to.data() + begin, from.data() + begin, part); });
    } catch (const std::system_error&) {
      break;  // no thread to be had: the rest is copied here
    }
  }
  std::memcpy(to.data() + begin, from.data() + begin, from.size() - begin);
  for (std::thread& helper : helpers) {
    if (helper.joinable()) helper.join();
  }
}

}  // namespace datasystem::client
