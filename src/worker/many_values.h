// Answers GetMany: the small values of many keys in one message. As a directory shard it tells where the others
// are; what would have to wait is left to be asked for by itself.
// Threads: the event loop's.
#pragma once

#include "proto/peer_messages.h"
#include "worker/many_limits.h"
#include "worker/node.h"

namespace datasystem::worker {

// The request is of this epoch, from a member.
void AnswerGetMany(const Node& node, const transport::ReturnAddress& from,
                   const proto::PeerGetMany& request, const ManyLimits& limits);

}  // namespace datasystem::worker
