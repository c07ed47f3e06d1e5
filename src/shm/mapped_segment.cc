#include "shm/mapped_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

namespace datasystem::shm {

Result<MappedSegment> MappedSegment::Map(const UniqueFd& fd, uint64_t size_bytes) {
  return Map(fd, size_bytes, PROT_READ | PROT_WRITE);
}

Result<MappedSegment> MappedSegment::MapForReading(const UniqueFd& fd, uint64_t size_bytes) {
  return Map(fd, size_bytes, PROT_READ);
}

Result<MappedSegment> MappedSegment::Map(const UniqueFd& fd, uint64_t size_bytes, int protection) {
  if (size_bytes == 0) return errors::Invalid("a segment has at least one byte");
  struct stat file {};
  if (::fstat(fd.get(), &file) != 0) return errors::FromErrno(errno, "looking at a segment's file");
  if (file.st_size < 0 || static_cast<uint64_t>(file.st_size) < size_bytes) {
    return errors::Invalid("a segment's file has {} bytes, {} were announced", file.st_size, size_bytes);
  }
  // Without the seal the file could be cut later, and every access beyond its end would be a SIGBUS.
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return errors::Invalid("a segment's file is not sealed against shrinking");
  }
  void* address = ::mmap(nullptr, size_bytes, protection, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) return errors::FromErrno(errno, "mapping a segment");
  return MappedSegment({static_cast<std::byte*>(address), size_bytes}, /*owned=*/true);
}

MappedSegment::~MappedSegment() {
  if (owned_ && !bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Result<std::span<std::byte>> MappedSegment::At(uint64_t offset, uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) {
    return errors::OutOfRange("offset {} size {} is outside the segment of {} bytes", offset, size,
                              bytes_.size());
  }
  return bytes_.subspan(offset, size);
}

}  // namespace datasystem::shm
