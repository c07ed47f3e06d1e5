// How much memory this process may still take before the kernel would kill somebody for it: what
// the machine has available and what every control group around the process (a container's limit)
// leaves.
//
// The kernel does not answer a request beyond a control group's limit with an error, it kills a
// process of the group. So the limit is read before, not tried.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace datasystem::shm {

// Of whoever leaves least.
struct HeadRoom {
  uint64_t available_bytes = ~uint64_t{0};
  uint64_t limit_bytes = ~uint64_t{0};
  bool container = false;  // a control group; else the machine
};

// Reads /proc/meminfo and the memory controllers of version 1 and 2. The groups are looked up once.
class HeadRoomSource {
 public:
  // Below `root` lie the proc and sys folders.
  explicit HeadRoomSource(const std::filesystem::path& root = "/");

  // What cannot be read counts as unlimited: then only the kernel's own refusals are left.
  HeadRoom Read() const;
  // The smallest limit of the groups around this process.
  std::optional<uint64_t> ContainerLimit() const;

 private:
  struct Group {
    std::filesystem::path folder;
    bool unified = false;  // version 2

    std::optional<uint64_t> Limit() const;
    std::optional<uint64_t> Available(uint64_t limit) const;
  };
  void AddGroups(const std::filesystem::path& mount, const std::string& mount_root,
                 std::string group, bool unified);

  std::filesystem::path meminfo_;
  std::vector<Group> groups_;
};

// Hands out head room from a reading that is a moment old, less what was taken since.
//
// Threads: any; never waits. Two threads at once may take a chunk too much: the reserve has room
// for that.
class HeadRoomBudget {
 public:
  // `clock` must outlive it. `read` may be called by any thread that uses the budget.
  HeadRoomBudget(std::function<HeadRoom()> read, const Clock& clock);

  // False if fewer than `reserves` reserves would be left. A reserve is for everybody's small
  // needs: heap, page tables, other processes of the container.
  bool Take(uint64_t bytes, uint32_t reserves);
  void GiveBack(uint64_t bytes);
  // Takes nothing.
  bool HasReserve() { return Take(0, 1); }
  // "the container has only 3 MiB left of its limit of 256 MiB"
  std::string Shortage() const;

 private:
  void Refresh();

  const std::function<HeadRoom()> read_;
  const Clock& clock_;
  // Independent figures; a mix of two readings is as good as either.
  std::atomic<int64_t> available_bytes_{0};
  std::atomic<uint64_t> limit_bytes_{0};
  std::atomic<bool> container_{false};
  std::atomic<uint64_t> taken_bytes_{0};  // since the reading
  std::atomic<Duration::rep> read_at_{0};
};

}  // namespace datasystem::shm
