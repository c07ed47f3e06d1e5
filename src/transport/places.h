// Helpers for payload that lies in several pieces.
#pragma once

#include <algorithm>
#include <cstring>

#include "transport/transport.h"

namespace datasystem::transport {

// Cuts the places to `size` bytes in all. False: they have less.
inline bool CutTo(uint64_t size, Places& places) {
  size_t used = 0;
  for (; size > 0 && used < places.size(); ++used) {
    auto& place = places[used];
    place = place.first(std::min<uint64_t>(place.size(), size));
    size -= place.size();
  }
  places.resize(used);
  return size == 0;
}

// The parts one after the other into the places, which have as many bytes.
inline void Scatter(std::span<const std::span<const std::byte>> parts, const Places& places) {
  auto place = places.begin();
  size_t used = 0;  // of `place`
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      if (used == place->size()) {
        ++place;
        used = 0;
        continue;
      }
      const size_t size = std::min(part.size(), place->size() - used);
      std::memcpy(place->data() + used, part.data(), size);
      part = part.subspan(size);
      used += size;
    }
  }
}

}  // namespace datasystem::transport
