// Bytes that belong to somebody else: made from std::string, a C string, or pointer and length.
#pragma once

#include <string_view>

namespace datasystem {

using StringView = std::string_view;

}  // namespace datasystem
