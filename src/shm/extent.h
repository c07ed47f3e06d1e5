// A piece of cache memory with one owner; goes back to its arena on destruction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace datasystem::shm {

// Pages are obtained by the worker, and mapped by clients, in pieces of this size, aligned to it. What has a value in it
// has all of its pages.
constexpr uint64_t kChunkBytes = 256 * 1024;

// A place in cache memory as it may be told to others: never an address.
struct Location {
  uint32_t segment = 0;
  uint64_t offset = 0;  // bytes from the start of the segment
  uint64_t size = 0;    // bytes

  bool operator==(const Location&) const = default;
};

class CacheMemory;

// Move-only. `memory` must outlive it. Threads: one at a time.
class Extent {
 public:
  Extent() = default;
  Extent(CacheMemory* memory, Location location, std::byte* data)
      : memory_(memory), location_(location), data_(data) {}
  Extent(Extent&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), location_(other.location_), data_(other.data_) {}
  Extent& operator=(Extent&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(location_, other.location_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Extent();

  bool valid() const { return memory_ != nullptr; }
  const Location& location() const { return location_; }
  size_t size() const { return location_.size; }
  std::span<std::byte> bytes() const { return {data_, location_.size}; }

  // Gives up the memory without returning it: whoever keeps the location owes it a CacheMemory::Adopt().
  [[nodiscard]] Location Release() {
    memory_ = nullptr;
    return location_;
  }

 private:
  friend class CacheMemory;
  CacheMemory* memory_ = nullptr;
  Location location_;
  std::byte* data_ = nullptr;
};

}  // namespace datasystem::shm
