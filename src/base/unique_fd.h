// A file descriptor with one owner; closed on destruction.
#pragma once

#include <unistd.h>

#include <utility>

namespace datasystem {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset() { UniqueFd().swap(*this); }
  void swap(UniqueFd& other) { std::swap(fd_, other.fd_); }

 private:
  int fd_ = -1;
};

}  // namespace datasystem
