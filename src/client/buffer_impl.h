// What is behind the buffers of the public interface.
#pragma once

#include <atomic>

#include "client/claim.h"
#include "client/latch.h"
#include "client/put.h"
#include "datasystem/kv/read_only_buffer.h"
#include "datasystem/object/buffer.h"

namespace datasystem {

// A value from a get: in shared memory behind a pin of either kind, or in memory of its own.
struct ReadOnlyBuffer::Impl {
  std::span<const std::byte> bytes;
  client::Claim pin;
  client::LocalPin local_pin;
  std::unique_ptr<std::byte[]> own;
};

struct Buffer::Impl {
  // From a get: `read_only` is set. From a create: the rest is; `own` when the value is small or
  // the worker elsewhere, else `reservation`.
  std::shared_ptr<const ReadOnlyBuffer::Impl> read_only;

  std::string key;
  proto::SetParam param;
  uint64_t size = 0;
  client::Reservation reservation;
  std::unique_ptr<std::byte[]> own;
  // Published, or being published: set by the one call of Set that goes on.
  std::atomic<bool> spent = false;

  client::Latch latch;

  std::span<std::byte> writable() const {
    if (read_only != nullptr || spent) return {};
    return memory();
  }
  // Of one from a create, until it is published.
  std::span<std::byte> memory() const {
    return own != nullptr ? std::span(own.get(), size) : reservation.bytes;
  }
};

}  // namespace datasystem
