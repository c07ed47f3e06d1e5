#include "shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "base/log.h"

namespace datasystem::shm {
namespace {

constexpr uint64_t kKib = 1024;

// The number behind `name:` in /proc/meminfo; 0 if there is no such line.
uint64_t MeminfoValue(std::string_view name) {
  std::ifstream meminfo("/proc/meminfo");
  std::string line;
  while (std::getline(meminfo, line)) {
    if (line.size() > name.size() && line.starts_with(name) && line[name.size()] == ':') {
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10);
    }
  }
  return 0;
}

Status TooFewHugePages(uint64_t needed, const HugePages& pages) {
  return errors::Runtime(
      "too few huge pages: {} needed, {} available, of {} KiB each. Make room with `sysctl -w "
      "vm.nr_hugepages={}`, lower the size of the shared memory, or switch huge pages off",
      needed, pages.available, pages.page_bytes / kKib, pages.total + needed - pages.available);
}

Status CheckBacking(uint64_t size_bytes, bool huge, const HugePages& pages) {
  if (huge) {
    const uint64_t needed = size_bytes / pages.page_bytes;
    return needed > pages.available ? TooFewHugePages(needed, pages) : Status::OK();
  }
  const uint64_t machine_bytes = (MeminfoValue("MemTotal") + MeminfoValue("SwapTotal")) * kKib;
  if (size_bytes > machine_bytes) {
    return errors::Runtime(
        "{} MiB of shared memory asked for, but this machine has {} MiB in all. Lower the size of the "
        "shared memory",
        size_bytes / kKib / kKib, machine_bytes / kKib / kKib);
  }
  return Status::OK();
}

// Else, where the system gives them to all shared memory, one small value would take 2 MiB.
void RefuseTransparentHugePages(std::span<std::byte> bytes) {
  (void)::madvise(bytes.data(), bytes.size(), MADV_NOHUGEPAGE);  // fails in kernels that have none
}

void AskForTransparentHugePages(std::span<std::byte> bytes) {
  const int error = ::madvise(bytes.data(), bytes.size(), MADV_HUGEPAGE) == 0 ? 0 : errno;
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string modes;
  std::getline(file, modes);
  if (error != 0 || modes.find("[never]") != std::string::npos ||
      modes.find("[deny]") != std::string::npos) {
    LOG_WARNING(
        "no transparent huge pages for shared memory, going on with small pages; to have them: `echo "
        "advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled` error={} modes={}",
        error == 0 ? "none" : std::strerror(error), modes);
  }
}

}  // namespace

HugePages HugePages::Read() {
  const uint64_t free = MeminfoValue("HugePages_Free");
  const uint64_t reserved = MeminfoValue("HugePages_Rsvd");
  return {.page_bytes = MeminfoValue("Hugepagesize") * kKib,
          .total = MeminfoValue("HugePages_Total"),
          .available = free > reserved ? free - reserved : 0};
}

Result<Segment> Segment::Create(const SegmentOptions& options) {
  HugePages huge;
  uint64_t page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (options.huge_pages) {
    huge = HugePages::Read();
    if (huge.page_bytes == 0) {
      return errors::Runtime("this kernel has no huge pages. Switch huge pages off");
    }
    page_bytes = huge.page_bytes;
  }
  const uint64_t size_bytes = options.size_bytes / page_bytes * page_bytes;
  if (size_bytes == 0) {
    return errors::Runtime("{} bytes of shared memory are less than one page of {} KiB",
                           options.size_bytes, page_bytes / kKib);
  }
  RETURN_IF_ERROR(CheckBacking(size_bytes, options.huge_pages, huge));

  const unsigned int flags =
      MFD_CLOEXEC | MFD_ALLOW_SEALING | (options.huge_pages ? MFD_HUGETLB : 0U);
  UniqueFd fd(::memfd_create("datasystem-cache", flags));
  if (!fd.valid()) {
    return errors::Runtime("no memory file for the cache: {}", std::strerror(errno));
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(size_bytes)) != 0) {
    return errors::Runtime("cannot size the cache's memory file to {} bytes: {}", size_bytes,
                           std::strerror(errno));
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return errors::Runtime("cannot seal the cache's memory file: {}", std::strerror(errno));
  }
  // Huge pages are reserved here, all of them: if another process was faster, this fails, not an access.
  void* address =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    if (options.huge_pages && error == ENOMEM) {
      return TooFewHugePages(size_bytes / page_bytes, HugePages::Read());
    }
    return errors::Runtime("cannot map {} bytes of cache memory: {}", size_bytes, std::strerror(error));
  }
  Segment segment(std::move(fd), {static_cast<std::byte*>(address), size_bytes}, page_bytes);
  if (!options.huge_pages) {
    options.transparent_huge_pages ? AskForTransparentHugePages(segment.bytes())
                                   : RefuseTransparentHugePages(segment.bytes());
  }
  return segment;
}

Segment::~Segment() {
  if (!mapping_.bytes.empty()) ::munmap(mapping_.bytes.data(), mapping_.bytes.size());
}

}  // namespace datasystem::shm
