// A segment of a worker's cache memory as a client maps it.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "shm/extent.h"

namespace datasystem::shm {

// Unmapped on destruction. Keeps no descriptor: the mapping holds the file.
// Threads: any, for all that is const.
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
      : bytes_(std::exchange(other.bytes_, {})),
        owned_(other.owned_),
        populate_advice_(other.populate_advice_),
        touched_(std::move(other.touched_)) {}
  MappedSegment& operator=(MappedSegment&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(owned_, other.owned_);
    std::swap(populate_advice_, other.populate_advice_);
    std::swap(touched_, other.touched_);
    return *this;
  }
  ~MappedSegment();

  std::span<std::byte> bytes() const { return bytes_; }
  // kOutOfRange if the place is not inside the segment.
  Result<std::span<std::byte>> At(uint64_t offset, uint64_t size) const;

  // Before bytes of this segment that the worker has handed out are used: has the kernel map the pages around them,
  // once for each kChunkBytes. A page that is met by an access costs up to forty times as much: 11 us for 4 KiB to be
  // written, on the virtual machine of bench/. Obtains no pages where the worker has those of whole chunks, as in data
  // segments; behind the last record of the index up to one chunk, which is then the reader's.
  void Touch(std::span<const std::byte> bytes) const {
    if (bytes.empty() || touched_ == nullptr) return;
    const auto begin = static_cast<uint64_t>(bytes.data() - bytes_.data()) / kChunkBytes;
    const auto last = (static_cast<uint64_t>(bytes.data() - bytes_.data()) + bytes.size() - 1) / kChunkBytes;
    for (uint64_t piece = begin; piece <= last; ++piece) {
      const uint64_t bit = uint64_t{1} << (piece % 64);
      if ((touched_[piece / 64].load(std::memory_order_relaxed) & bit) == 0) MapPiece(piece);
    }
  }

 private:
  static Result<MappedSegment> Map(const UniqueFd& fd, uint64_t size_bytes, int protection);
  MappedSegment(std::span<std::byte> bytes, bool owned) : bytes_(bytes), owned_(owned) {}
  void MapPiece(uint64_t piece) const;

  std::span<std::byte> bytes_;
  bool owned_;
  int populate_advice_ = 0;
  std::unique_ptr<std::atomic<uint64_t>[]> touched_;  // a bit a piece; null: Touch() does nothing
};

}  // namespace datasystem::shm
