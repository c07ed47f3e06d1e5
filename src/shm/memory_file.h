// A memory file (memfd) and its mapping, both of fixed size, to be passed to other processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace datasystem::shm {

// Zeroed; pages appear as they are touched. Unmapped and closed on destruction.
class MemoryFile {
 public:
  // Who else may map it: everybody for writing, or nobody but this mapping (F_SEAL_FUTURE_WRITE, Linux 5.1).
  enum class Others { kWrite, kRead };

  // kRuntimeError with cause and remedy.
  static Result<MemoryFile> Create(const char* name, uint64_t size_bytes, Others others);
  MemoryFile(MemoryFile&& other) noexcept
      : fd_(std::move(other.fd_)), bytes_(std::exchange(other.bytes_, {})) {}
  MemoryFile& operator=(MemoryFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryFile();

  int fd() const { return fd_.get(); }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  MemoryFile(UniqueFd fd, std::span<std::byte> bytes) : fd_(std::move(fd)), bytes_(bytes) {}

  UniqueFd fd_;
  std::span<std::byte> bytes_;
};

}  // namespace datasystem::shm
