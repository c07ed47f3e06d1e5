#include "shm/populator.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14; older C libraries do not name it
#endif

namespace datasystem::shm {
namespace {

// The kernel holds the address space's lock for the length of a chunk, and an idle thread may lose its
// CPU meanwhile: small chunks keep the wait of whoever maps memory short. 256 KiB take about 90 µs.
constexpr uint64_t kChunkBytes = 256 * 1024;

}  // namespace

Populator::Populator(std::span<std::byte> memory, uint64_t page_bytes)
    : memory_(memory), chunk_bytes_(std::max(kChunkBytes, page_bytes)) {}

Populator::~Populator() {
  stop_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

Status Populator::Run() {
  const uint64_t chunks = (memory_.size() + chunk_bytes_ - 1) / chunk_bytes_;
  for (uint64_t step = 0; step < chunks && !stop_.load(std::memory_order_relaxed); ++step) {
    // From both ends to the middle: large extents are taken from the low end, slabs from the high one.
    const uint64_t chunk = step % 2 == 0 ? step / 2 : chunks - 1 - step / 2;
    const uint64_t offset = chunk * chunk_bytes_;
    const uint64_t size = std::min<uint64_t>(chunk_bytes_, memory_.size() - offset);
    int result = 0;
    do {
      result = ::madvise(memory_.data() + offset, size, MADV_POPULATE_WRITE);
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
      return errors::Runtime(
          "only {} of {} bytes of shared memory could be populated: {}. Lower the size of the shared "
          "memory, raise the memory limit, or do without population (it needs Linux 5.14)",
          populated_bytes(), memory_.size(), std::strerror(errno));
    }
    populated_bytes_.fetch_add(size, std::memory_order_relaxed);
  }
  return Status::OK();
}

void Populator::Start() {
  thread_ = std::thread([this] {
    const sched_param priority{};
    // Refused only by a sandbox; then it runs as everybody else does, which is slower, not wrong.
    (void)::pthread_setschedparam(::pthread_self(), SCHED_IDLE, &priority);
    (void)::pthread_setname_np(::pthread_self(), "ds-populate");
    const Status status = Run();
    if (status.IsError()) LOG_WARNING("{}", status.GetMsg());
  });
}

}  // namespace datasystem::shm
