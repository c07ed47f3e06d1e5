// Memory that grows in place, up to a limit: address space is reserved at once, pages come as they
// are touched. New memory is zero.
//
// Threads: the owner's.
#pragma once

#include <cstddef>

namespace datasystem::directory {

class GrowingMemory {
 public:
  // Reserves less where the process may not have that much address space (checked: at least 16
  // MiB).
  explicit GrowingMemory(size_t limit_bytes);
  GrowingMemory(const GrowingMemory&) = delete;
  ~GrowingMemory();

  std::byte* data() const { return data_; }
  size_t limit_bytes() const { return limit_; }
  // Makes the first `bytes` usable. False, and nothing changed, beyond the limit or if the system
  // refuses.
  bool Extend(size_t bytes);
  // All usable bytes are zero again, and their pages with the system.
  void Clear();

 private:
  std::byte* data_ = nullptr;
  size_t limit_;
  size_t usable_ = 0;
};

}  // namespace datasystem::directory
