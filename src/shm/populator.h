// Gives memory its pages before it is used: the first touch of a page costs several times its copying.
//
// Threads: Run() or Start() once, by the owner; populated_bytes() from any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

#include "base/result.h"

namespace datasystem::shm {

class Populator {
 public:
  // `memory` must outlive it.
  Populator(std::span<std::byte> memory, uint64_t page_bytes);
  ~Populator();  // stops the background thread within one chunk

  // Populates all before it returns. kRuntimeError if the machine runs out of memory.
  Status Run();
  // Does the same on a thread of its own that runs only when a CPU is idle; a failure is one warning.
  void Start();

  uint64_t populated_bytes() const { return populated_bytes_.load(std::memory_order_relaxed); }

 private:
  const std::span<std::byte> memory_;
  const uint64_t chunk_bytes_;
  std::atomic<uint64_t> populated_bytes_{0};
  std::atomic<bool> stop_{false};  // orders nothing else
  std::thread thread_;
};

}  // namespace datasystem::shm
