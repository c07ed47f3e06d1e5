#include "shm/mapped_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

// Linux 5.14, younger than the headers of some distributions.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

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
  MappedSegment segment({static_cast<std::byte*>(address), size_bytes}, /*owned=*/true);
  segment.populate_advice_ = (protection & PROT_WRITE) != 0 ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
  segment.touched_ = std::make_unique<std::atomic<uint64_t>[]>(size_bytes / kChunkBytes / 64 + 1);
  return segment;
}

void MappedSegment::MapPiece(uint64_t piece) const {
  touched_[piece / 64].fetch_or(uint64_t{1} << (piece % 64), std::memory_order_relaxed);
  const uint64_t begin = piece * kChunkBytes;
  // Fails in kernels before 5.14, and for a piece that has gone: then each page is mapped when it is met.
  (void)::madvise(bytes_.data() + begin, std::min(kChunkBytes, bytes_.size() - begin), populate_advice_);
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
