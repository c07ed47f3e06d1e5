#include "base/random.h"

#include <fmt/core.h>
#include <sys/random.h>

#include "base/check.h"

namespace datasystem {
namespace {

void FillRandom(void* to, size_t size) {
  // At most 256 bytes never come back short once the kernel's pool is ready.
  CHECK(::getrandom(to, size, 0) == static_cast<ssize_t>(size));
}

}  // namespace

uint64_t RandomId() {
  uint64_t id = 0;
  while (id == 0) FillRandom(&id, sizeof(id));
  return id;
}

std::string RandomUuid() {
  uint64_t half[2];
  FillRandom(half, sizeof(half));
  half[0] = (half[0] & ~0xF000ULL) | 0x4000ULL;
  half[1] = (half[1] & ~(0xC0ULL << 56)) | (0x80ULL << 56);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", half[0] >> 32, (half[0] >> 16) & 0xFFFF,
                     half[0] & 0xFFFF, half[1] >> 48, half[1] & 0xFFFFFFFFFFFFULL);
}

}  // namespace datasystem
