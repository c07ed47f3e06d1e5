// What a client's operation does about a failed attempt.
#pragma once

#include "worker/node.h"

namespace datasystem::worker {

// After an attempt that began in `epoch` failed for `reason`. OK, after a wait for news: try again.
// Else the error to report: nothing that a retry could put right, or the time is up.
asio::awaitable<Status> BeforeRetry(const Node& node, Status reason, uint64_t epoch, int attempt,
                                    TimePoint deadline);

}  // namespace datasystem::worker
