// A value that may be absent: what batch calls return for a key that was not obtained.
#pragma once

#include <optional>

namespace datasystem {

template <typename T>
using Optional = std::optional<T>;

}  // namespace datasystem
