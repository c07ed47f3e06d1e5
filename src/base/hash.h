// The hash of keys: XXH3, 64 bits. It places keys on the ring, so every worker of a cluster must use the
// same one; changing it is a change of protocol.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace datasystem {

inline uint64_t HashKey(std::string_view key) { return XXH3_64bits(key.data(), key.size()); }

struct KeyHash {
  using is_transparent = void;
  size_t operator()(std::string_view key) const { return HashKey(key); }
};

}  // namespace datasystem
