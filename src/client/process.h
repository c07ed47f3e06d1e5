// What this process is and has.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace datasystem::client {

// Threads: any.

// As getpid(), without a system call but the first time in a process: what belongs to a parent must
// not be touched after fork.
pid_t ThisProcess();

// Cores that this process may use, as they were at the first call. At least 1.
size_t CoresOfThisProcess();

}  // namespace datasystem::client
