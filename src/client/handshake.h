// The first exchange on every connection.
#pragma once

#include <vector>

#include "client/connection.h"

namespace datasystem::client {

// Fills in what every Hello says and returns the worker's answer once it is checked: accepted, with a
// protocol version that we speak. `fds`, if given, receives the descriptors of the segments, exactly one
// for each segment of the answer (anything else is an error).
// The worker's refusal passes through; kClientWorkerVersionMismatch names both versions.
Result<proto::HelloReply> ShakeHands(Connection& connection, proto::Hello hello,
                                     const Deadline& deadline, std::vector<UniqueFd>* fds = nullptr);

}  // namespace datasystem::client
