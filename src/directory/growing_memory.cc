// Pages beyond what was asked for are not accessible, so that a machine that does not overcommit
// counts only what may be used.
#include "directory/growing_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/check.h"

namespace datasystem::directory {
namespace {

// One system call for so many bytes; a multiple of any page size.
constexpr size_t kStep = 4 << 20;
constexpr size_t kLeast = 16 << 20;

}  // namespace

GrowingMemory::GrowingMemory(size_t limit_bytes)
    : limit_((limit_bytes + kStep - 1) / kStep * kStep) {
  for (;; limit_ = limit_ / 2 / kStep * kStep) {
    CHECK(limit_ >= kLeast);
    void* reserved =
        ::mmap(nullptr, limit_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) continue;
    data_ = static_cast<std::byte*>(reserved);
    return;
  }
}

GrowingMemory::~GrowingMemory() { ::munmap(data_, limit_); }

bool GrowingMemory::Extend(size_t bytes) {
  if (bytes <= usable_) return true;
  if (bytes > limit_) return false;
  const size_t wanted = (bytes + kStep - 1) / kStep * kStep;
  if (::mprotect(data_ + usable_, wanted - usable_, PROT_READ | PROT_WRITE) != 0) return false;
  usable_ = wanted;
  return true;
}

void GrowingMemory::Clear() {
  if (usable_ > 0) CHECK(::madvise(data_, usable_, MADV_DONTNEED) == 0);
}

}  // namespace datasystem::directory
