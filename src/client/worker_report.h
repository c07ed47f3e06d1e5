// What a worker tells about itself.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace datasystem::client {

// The worker's status as a JSON document (docs/status.md), over a connection made for it.
Result<std::string> FetchWorkerReport(const std::string& host, int32_t port,
                                      std::chrono::milliseconds timeout);

}  // namespace datasystem::client
