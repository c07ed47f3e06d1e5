// A segment of a worker's cache memory as a client maps it.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "shm/extent.h"

namespace datasystem::shm {

// Unmapped on destruction. Keeps no descriptor: the mapping holds the file.
class MappedSegment {
 public:
  // kInvalid if the file is smaller than `size_bytes` (a mapping beyond its end would be a SIGBUS).
  static Result<MappedSegment> Map(const UniqueFd& fd, uint64_t size_bytes);
  // The same for a segment that nobody but the worker may write: writing to it is a SIGSEGV.
  static Result<MappedSegment> MapForReading(const UniqueFd& fd, uint64_t size_bytes);
  // A mapping of somebody else, which must outlive this: for tests with one address for both sides, since the thread
  // sanitizer knows memory by its address.
  static MappedSegment Borrow(std::span<std::byte> bytes) { return MappedSegment(bytes, /*owned=*/false); }
  MappedSegment(MappedSegment&& other) noexcept
      : bytes_(std::exchange(other.bytes_, {})), owned_(other.owned_) {}
  MappedSegment& operator=(MappedSegment&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~MappedSegment();

  std::span<std::byte> bytes() const { return bytes_; }
  // kOutOfRange if the place is not inside the segment.
  Result<std::span<std::byte>> At(uint64_t offset, uint64_t size) const;

 private:
  static Result<MappedSegment> Map(const UniqueFd& fd, uint64_t size_bytes, int protection);
  MappedSegment(std::span<std::byte> bytes, bool owned) : bytes_(bytes), owned_(owned) {}
  std::span<std::byte> bytes_;
  bool owned_;
};

}  // namespace datasystem::shm
