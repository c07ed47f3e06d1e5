#include "client/process.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace datasystem::client {
namespace {

using Word = std::atomic<pid_t>;

// A page that the kernel clears in a child, however it was forked. Null: the system has none.
Word* MakeWord() {
  const auto size = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (::madvise(page, size, MADV_WIPEONFORK) == 0) return static_cast<Word*>(page);
  ::munmap(page, size);
  return nullptr;
}

}  // namespace

pid_t ThisProcess() {
  static Word* const word = MakeWord();
  if (word == nullptr) return ::getpid();
  pid_t process = word->load(std::memory_order_relaxed);
  if (process == 0) {
    process = ::getpid();
    word->store(process, std::memory_order_relaxed);
  }
  return process;
}

size_t CoresOfThisProcess() {
  static const size_t cores = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof(set), &set) != 0) return size_t{1};
    return static_cast<size_t>(std::max(CPU_COUNT(&set), 1));
  }();
  return cores;
}

}  // namespace datasystem::client
