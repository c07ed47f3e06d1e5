// Copies between this process' memory and the cache.
#pragma once

#include <cstddef>
#include <span>

namespace datasystem::client {

// As memcpy; large values by several threads where this process may use several cores. `to` is at
// least as large as `from`, and they do not overlap.
void Copy(std::span<std::byte> to, std::span<const std::byte> from);

}  // namespace datasystem::client
