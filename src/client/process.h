// Which process this is, for the price of a load: what belongs to a parent must not be touched
// after fork.
#pragma once

#include <sys/types.h>

namespace datasystem::client {

// As getpid(), without a system call but the first time in a process.
//
// Threads: any.
pid_t ThisProcess();

}  // namespace datasystem::client
