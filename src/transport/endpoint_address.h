// What a process publishes so that others can reach it: its UCX worker address in an envelope of ours.
//
// UCX 1.13 trusts address bytes: changed bytes can end in an assertion that aborts the process (in six
// series of random changes, each time after 2 to 53 of them). So the envelope carries a checksum, and only
// what passes it reaches UCX.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace datasystem::transport {

std::string WrapEndpoint(std::string_view ucx_address);

// kInvalid says what is wrong with the envelope.
Result<std::string> UnwrapEndpoint(std::string_view endpoint);

}  // namespace datasystem::transport
