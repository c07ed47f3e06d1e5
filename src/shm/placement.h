// Where memory really is: the size of its pages, the NUMA nodes that they are on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

namespace datasystem::shm {

// The page size by which the kernel maps `memory`, which begins a mapping of this process; nothing
// if it is not said. Reads /proc/self/smaps, whose cost grows with the pages that are there: for
// the start.
std::optional<uint64_t> PageBytesOf(std::span<const std::byte> memory);

// NUMA node -> how many of the looked-at places are on it. Places whose page is not there yet are
// left out.
using NodeShares = std::map<int, uint32_t>;

// Looks at a few hundred places that are spread evenly: a fraction of a millisecond, whatever the
// size. Empty where the system forbids the question (move_pages, in some containers).
NodeShares NodesOf(std::span<const std::byte> memory);

}  // namespace datasystem::shm
