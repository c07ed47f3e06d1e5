// Random numbers from the operating system: identities that must not repeat between processes.
#pragma once

#include <cstdint>
#include <string>

namespace datasystem {

// Never 0.
uint64_t RandomId();
// RFC 4122 version 4, lower case.
std::string RandomUuid();

}  // namespace datasystem
