// Bytes from one process to another through memory that both have mapped: one writes, one reads, no system call.
//
// The writer publishes a message whole. A reader that is going to sleep says so, looks once more, and must then be
// woken by other means: the writer learns it from Write().
//
// Neither side believes the other: a position out of range is reported, and what is read is a copy.
// Threads: one writer, one reader.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

namespace datasystem::shm {

struct RingLayout {
  static constexpr uint64_t kCapacity = 32 << 10;  // bytes; a power of two

  // Bytes since the beginning.
  alignas(64) std::atomic<uint64_t> written{0};
  alignas(64) std::atomic<uint64_t> read{0};
  alignas(64) std::atomic<uint32_t> asleep{0};  // 1: the reader wants to be woken
  alignas(64) std::array<std::byte, kCapacity> bytes;

  // Nobody else uses it yet.
  void Reset() {
    written.store(0, std::memory_order_relaxed);
    read.store(0, std::memory_order_relaxed);
    asleep.store(0, std::memory_order_release);
  }
};

class RingWriter {
 public:
  explicit RingWriter(RingLayout& ring) : ring_(&ring) {}

  // False: it has no room for them now. `wake`: the reader sleeps, and does not know.
  bool Write(std::span<const std::span<const std::byte>> parts, bool& wake) {
    uint64_t size = 0;
    for (const auto& part : parts) size += part.size();
    const uint64_t used = written_ - ring_->read.load(std::memory_order_acquire);
    if (used > RingLayout::kCapacity || size > RingLayout::kCapacity - used) return false;
    for (const auto& part : parts) Put(part);
    ring_->written.store(written_, std::memory_order_release);
    // Either the reader, who looks once more after it has said that it sleeps, sees the bytes, or we see its word.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    wake = ring_->asleep.load(std::memory_order_relaxed) != 0 &&
           ring_->asleep.exchange(0, std::memory_order_acq_rel) != 0;
    return true;
  }

 private:
  void Put(std::span<const std::byte> part) {
    while (!part.empty()) {
      const uint64_t at = written_ % RingLayout::kCapacity;
      const size_t size = std::min<uint64_t>(part.size(), RingLayout::kCapacity - at);
      std::memcpy(ring_->bytes.data() + at, part.data(), size);
      written_ += size;
      part = part.subspan(size);
    }
  }

  RingLayout* ring_;
  uint64_t written_ = 0;
};

class RingReader {
 public:
  explicit RingReader(RingLayout& ring) : ring_(&ring) {}

  // Cheap: a look at one cache line.
  bool HasBytes() const { return ring_->written.load(std::memory_order_acquire) != read_; }
  // Bytes that can be read. None: the writer's position is out of range, the ring is of no use any more.
  std::optional<size_t> Available() const {
    const uint64_t available = ring_->written.load(std::memory_order_acquire) - read_;
    if (available > RingLayout::kCapacity) return std::nullopt;
    return available;
  }
  // At most Available().
  void Read(std::span<std::byte> into) {
    while (!into.empty()) {
      const uint64_t at = read_ % RingLayout::kCapacity;
      const size_t size = std::min<uint64_t>(into.size(), RingLayout::kCapacity - at);
      std::memcpy(into.data(), ring_->bytes.data() + at, size);
      read_ += size;
      into = into.subspan(size);
    }
    ring_->read.store(read_, std::memory_order_release);
  }

  // From here on the writer wakes this side. Look once more before sleeping.
  void SayAsleep() {
    ring_->asleep.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void SayAwake() {
    if (ring_->asleep.load(std::memory_order_relaxed) != 0) ring_->asleep.store(0, std::memory_order_relaxed);
  }

 private:
  RingLayout* ring_;
  uint64_t read_ = 0;
};

// Of one connection.
struct ChannelLayout {
  RingLayout to_worker;
  RingLayout to_client;
};

}  // namespace datasystem::shm
