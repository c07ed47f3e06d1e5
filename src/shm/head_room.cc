#include "shm/head_room.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>

namespace datasystem::shm {
namespace {

constexpr uint64_t kKib = 1024;
constexpr uint64_t kMib = 1024 * kKib;
// Version 1 says "no limit" by the largest multiple of a page.
constexpr uint64_t kNoLimit = uint64_t{1} << 62;
// Reading costs about 60 µs, as much as backing a few chunks.
constexpr auto kReadingAgeMax = std::chrono::milliseconds(100);
constexpr uint64_t kReadingBytesMax = 16 * kMib;
constexpr uint64_t kReserveMin = 16 * kMib;
constexpr uint64_t kReserveMax = 64 * kMib;

uint64_t ReserveBytes(uint64_t limit_bytes) {
  return std::clamp(limit_bytes / 16, kReserveMin, kReserveMax);
}

// The number that a file consists of; nothing for "max" and for what is no file.
std::optional<uint64_t> NumberIn(const std::filesystem::path& path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (!(file >> number) || number >= kNoLimit) return std::nullopt;
  return number;
}

// The sum of the numbers behind the given names, which begin a line each.
uint64_t SumIn(const std::filesystem::path& path, std::initializer_list<std::string_view> names) {
  std::ifstream file(path);
  uint64_t sum = 0;
  std::string line;
  while (std::getline(file, line)) {
    for (const std::string_view name : names) {
      if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ' ') {
        sum += std::strtoull(line.c_str() + name.size(), nullptr, 10);
      }
    }
  }
  return sum;
}

bool HasWord(const std::string& list, std::string_view word) {
  std::istringstream words(list);
  for (std::string each; std::getline(words, each, ',');) {
    if (each == word) return true;
  }
  return false;
}

struct CgroupMount {
  std::string root;  // the group that is mounted
  std::string point;
  bool unified = false;
};

// Lines like "34 30 0:31 /group /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory".
std::vector<CgroupMount> MemoryMounts(const std::filesystem::path& mountinfo) {
  std::vector<CgroupMount> mounts;
  std::ifstream file(mountinfo);
  for (std::string line; std::getline(file, line);) {
    const size_t separator = line.find(" - ");
    if (separator == std::string::npos) continue;
    std::istringstream before(line);
    std::istringstream after(line.substr(separator + 3));
    std::string skip, type, source, options;
    CgroupMount mount;
    before >> skip >> skip >> skip >> mount.root >> mount.point;
    after >> type >> source >> options;
    mount.unified = type == "cgroup2";
    if (mount.unified || (type == "cgroup" && HasWord(options, "memory"))) mounts.push_back(mount);
  }
  return mounts;
}

}  // namespace

HeadRoomSource::HeadRoomSource(const std::filesystem::path& root)
    : meminfo_(root / "proc/meminfo") {
  const auto mounts = MemoryMounts(root / "proc/self/mountinfo");
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:memory:/group", "0::/group"
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = line.starts_with("0::");
    if (!unified && !HasWord(controllers, "memory")) continue;
    for (const CgroupMount& mount : mounts) {
      if (mount.unified != unified) continue;
      AddGroups(root / mount.point.substr(1), mount.root, line.substr(second + 1), unified);
      break;
    }
  }
}

void HeadRoomSource::AddGroups(const std::filesystem::path& mount, const std::string& mount_root,
                               std::string group, bool unified) {
  // Inside a container the mount often shows the container's group only, under its name on the
  // host.
  if (mount_root != "/" && (group + "/").starts_with(mount_root + "/"))
    group.erase(0, mount_root.size());
  std::filesystem::path folder =
      (mount / std::filesystem::path(group).relative_path()).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::error_code ignored;
  const bool inside = folder.native().starts_with(mount.native());
  if (!inside || !std::filesystem::is_directory(folder, ignored)) folder = mount;
  // The limits of all groups above apply as well.
  for (; folder.native().size() >= mount.native().size(); folder = folder.parent_path()) {
    groups_.push_back({.folder = folder, .unified = unified});
  }
}

std::optional<uint64_t> HeadRoomSource::Group::Limit() const {
  if (!unified) return NumberIn(folder / "memory.limit_in_bytes");
  const auto max = NumberIn(folder / "memory.max");
  const auto high =
      NumberIn(folder / "memory.high");  // beyond it a process is slowed down to a crawl
  if (!max || !high) return max ? max : high;
  return std::min(*max, *high);
}

std::optional<uint64_t> HeadRoomSource::Group::Available(uint64_t limit) const {
  const auto usage = NumberIn(folder / (unified ? "memory.current" : "memory.usage_in_bytes"));
  if (!usage) return std::nullopt;
  uint64_t available = limit > *usage ? limit - *usage : 0;
  // Files that the kernel cached count as used, but go before anybody is killed. That file is long,
  // and on large machines slow to read: only where it matters.
  if (available < limit / 8 + 4 * kReserveMax) {
    available += unified
                     ? SumIn(folder / "memory.stat", {"inactive_file", "active_file"})
                     : SumIn(folder / "memory.stat", {"total_inactive_file", "total_active_file"});
  }
  return std::min(available, limit);
}

HeadRoom HeadRoomSource::Read() const {
  HeadRoom least;
  const uint64_t machine_bytes = SumIn(meminfo_, {"MemTotal:"}) * kKib;
  if (machine_bytes > 0) {
    least = {.available_bytes = SumIn(meminfo_, {"MemAvailable:"}) * kKib,
             .limit_bytes = machine_bytes};
  }
  for (const Group& group : groups_) {
    const auto limit = group.Limit();
    const auto available = limit ? group.Available(*limit) : std::nullopt;
    if (available && *available < least.available_bytes) {
      least = {.available_bytes = *available, .limit_bytes = *limit, .container = true};
    }
  }
  return least;
}

std::optional<uint64_t> HeadRoomSource::ContainerLimit() const {
  std::optional<uint64_t> least;
  for (const Group& group : groups_) {
    const auto limit = group.Limit();
    if (limit) least = std::min(*limit, least.value_or(*limit));
  }
  return least;
}

HeadRoomBudget::HeadRoomBudget(std::function<HeadRoom()> read, const Clock& clock)
    : read_(std::move(read)), clock_(clock) {
  read_at_.store((clock_.Now() - kReadingAgeMax).time_since_epoch().count(),
                 std::memory_order_relaxed);
  Refresh();
}

bool HeadRoomBudget::Take(uint64_t bytes, uint32_t reserves) {
  Refresh();
  const uint64_t reserve = reserves * ReserveBytes(limit_bytes_.load(std::memory_order_relaxed));
  const int64_t available = available_bytes_.load(std::memory_order_relaxed);
  if (available < static_cast<int64_t>(bytes + reserve)) return false;
  available_bytes_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  taken_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

void HeadRoomBudget::GiveBack(uint64_t bytes) {
  available_bytes_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

void HeadRoomBudget::Refresh() {
  const TimePoint now = clock_.Now();
  Duration::rep read_at = read_at_.load(std::memory_order_relaxed);
  const bool fresh = now - TimePoint(Duration(read_at)) < kReadingAgeMax;
  if (fresh && taken_bytes_.load(std::memory_order_relaxed) < kReadingBytesMax) return;
  // One thread reads; the others go on with what is known. A lock might be held by an idle thread.
  if (!read_at_.compare_exchange_strong(read_at, now.time_since_epoch().count(),
                                        std::memory_order_relaxed)) {
    return;
  }
  taken_bytes_.store(0, std::memory_order_relaxed);
  const HeadRoom reading = read_();
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / 2;
  limit_bytes_.store(reading.limit_bytes, std::memory_order_relaxed);
  container_.store(reading.container, std::memory_order_relaxed);
  available_bytes_.store(static_cast<int64_t>(std::min(reading.available_bytes, kMost)),
                         std::memory_order_relaxed);
}

std::string HeadRoomBudget::Shortage() const {
  const int64_t left = std::max<int64_t>(0, available_bytes_.load(std::memory_order_relaxed));
  const uint64_t limit = limit_bytes_.load(std::memory_order_relaxed);
  return fmt::format(
      "the {} has only {} MiB left of its {} MiB, of which {} MiB are kept free for other needs",
      container_.load(std::memory_order_relaxed) ? "container" : "machine",
      left / static_cast<int64_t>(kMib), limit / kMib, ReserveBytes(limit) / kMib);
}

}  // namespace datasystem::shm
