// A memory file of the worker and its mapping here. Other processes get the descriptor.
//
// Its size is sealed, and so are its seals: who holds the descriptor can neither truncate it, which would
// make every access a SIGBUS, nor forbid the others to write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/unique_fd.h"

namespace datasystem::shm {

struct SegmentOptions {
  uint64_t size_bytes = 0;  // rounded down to pages
  bool huge_pages = false;
  bool transparent_huge_pages = false;
};

// What /proc/meminfo says of huge pages of the default size.
struct HugePages {
  uint64_t page_bytes = 0;  // 0: this kernel has none
  uint64_t total = 0;
  uint64_t available = 0;  // free and not reserved by anyone

  static HugePages Read();
};

class Segment {
 public:
  // kRuntimeError with cause and remedy when the machine cannot back it.
  static Result<Segment> Create(const SegmentOptions& options);
  Segment(Segment&&) noexcept = default;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  int fd() const { return fd_.get(); }
  std::span<std::byte> bytes() const { return mapping_.bytes; }
  uint64_t page_bytes() const { return page_bytes_; }

 private:
  struct Mapping {
    std::span<std::byte> bytes;
    explicit Mapping(std::span<std::byte> mapped) : bytes(mapped) {}
    Mapping(Mapping&& other) noexcept : bytes(std::exchange(other.bytes, {})) {}
  };
  Segment(UniqueFd fd, std::span<std::byte> bytes, uint64_t page_bytes)
      : fd_(std::move(fd)), mapping_(bytes), page_bytes_(page_bytes) {}

  UniqueFd fd_;
  Mapping mapping_;
  uint64_t page_bytes_;
};

}  // namespace datasystem::shm
