#include "shm/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // older C libraries do not name it
#endif

namespace datasystem::shm {

Result<MemoryFile> MemoryFile::Create(const char* name, uint64_t size_bytes, Others others) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return errors::Runtime("no memory file for {}: {}", name, std::strerror(errno));
  if (::ftruncate(fd.get(), static_cast<off_t>(size_bytes)) != 0) {
    return errors::Runtime("cannot size the memory file {} to {} bytes: {}", name, size_bytes, std::strerror(errno));
  }
  void* address = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (address == MAP_FAILED) {
    return errors::Runtime("cannot map {} bytes of {}: {}", size_bytes, name, std::strerror(errno));
  }
  MemoryFile file(std::move(fd), {static_cast<std::byte*>(address), size_bytes});
  // After the mapping above, which stays writable.
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (others == Others::kRead ? F_SEAL_FUTURE_WRITE : 0);
  if (::fcntl(file.fd(), F_ADD_SEALS, seals) != 0) {
    return errors::Runtime("cannot seal the memory file {} (Linux 5.1 is needed): {}", name, std::strerror(errno));
  }
  return file;
}

MemoryFile::~MemoryFile() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace datasystem::shm
