#include "shm/placement.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

namespace datasystem::shm {
namespace {

constexpr uint64_t kKib = 1024;
constexpr size_t kPlaces = 512;

// The same for the same `i`, so that reports can be compared.
size_t Scatter(size_t i) { return (i * 0x9E3779B97F4A7C15ULL) >> 32; }

}  // namespace

std::optional<uint64_t> PageBytesOf(std::span<const std::byte> memory) {
  // "7f0012a00000-7f0052a00000 rw-s ...", then lines of its properties. Pages of another kind may
  // have split it behind.
  const std::string head = fmt::format("{:x}-", reinterpret_cast<uintptr_t>(memory.data()));
  constexpr std::string_view kField = "KernelPageSize:";
  std::ifstream smaps("/proc/self/smaps");
  bool found = false;
  for (std::string line; std::getline(smaps, line);) {
    if (line.starts_with(head)) found = true;
    if (found && line.starts_with(kField)) {
      return std::strtoull(line.c_str() + kField.size(), nullptr, 10) * kKib;
    }
  }
  return std::nullopt;
}

NodeShares NodesOf(std::span<const std::byte> memory) {
  NodeShares shares;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t pages = memory.size() / page;
  const size_t count = std::min(kPlaces, pages);
  std::array<const void*, kPlaces> places;
  std::array<int, kPlaces> nodes;
  nodes.fill(-1);
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = pages * i / count;
    const size_t end = pages * (i + 1) / count;
    // Anywhere between: where nodes take turns, pages at equal distances would be of one node.
    places[i] = memory.data() + (begin + Scatter(i) % (end - begin)) * page;
  }
  // Without nodes to move to, it only tells where the pages are. The C library does not have it.
  if (count == 0 ||
      ::syscall(SYS_move_pages, 0, count, places.data(), nullptr, nodes.data(), 0) != 0)
    return shares;
  for (size_t i = 0; i < count; ++i) {
    if (nodes[i] >= 0) ++shares[nodes[i]];  // else an error: no page there
  }
  return shares;
}

}  // namespace datasystem::shm
