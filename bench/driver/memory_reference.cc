#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "driver/cache.h"

namespace datasystem::bench {
namespace {

constexpr size_t kCapacity = 64 << 20;

// The same kind of memory as the cache's: a memfd, all pages present.
class Memory final : public Cache {
 public:
  Memory() {
    const int fd = ::memfd_create("bench", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, kCapacity) != 0) Fail("no memory for the reference");
    void* mapped =
        ::mmap(nullptr, kCapacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    ::close(fd);
    if (mapped == MAP_FAILED) Fail("no memory for the reference");
    memory_ = static_cast<char*>(mapped);
    std::memset(memory_, 1, kCapacity);
  }
  ~Memory() override { ::munmap(memory_, kCapacity); }

  void Set(const std::string&, std::string_view value) override {
    if (value.size() > kCapacity) Fail("value too large for the reference");
    std::memcpy(memory_, value.data(), value.size());
    size_ = value.size();
    asm volatile(""
                 :
                 : "r"(memory_)
                 : "memory");  // the copy has a reader as far as the compiler knows
  }
  size_t Get(const std::string&) override {
    copy_.resize(size_);
    std::memcpy(copy_.data(), memory_, size_);
    asm volatile("" : : "r"(copy_.data()) : "memory");
    return size_;
  }
  void Delete(const std::vector<std::string>&) override { size_ = 0; }

 private:
  char* memory_;
  size_t size_ = 0;
  std::string copy_;
};

}  // namespace

std::unique_ptr<Cache> MemoryReference() { return std::make_unique<Memory>(); }

}  // namespace datasystem::bench
