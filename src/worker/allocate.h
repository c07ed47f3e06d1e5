// Memory for a value, in steps between which others have their turn: evicting a million small objects for one large
// value takes seconds, obtaining pages that nobody has used yet half a millisecond a MiB.
// Threads: the event loop's.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <cstdint>

#include "base/result.h"
#include "shm/extent.h"
#include "store/object_store.h"

namespace datasystem::worker {

// Errors as ObjectStore::Allocate().
asio::awaitable<Result<shm::Extent>> AllocateInSteps(asio::io_context& context, store::ObjectStore& store,
                                                     uint64_t size);

// What can be had without a stall. kTryAgain: room must be made first, by AllocateInSteps(). Other errors as above.
Result<shm::Extent> AllocateAtOnce(store::ObjectStore& store, uint64_t size);

}  // namespace datasystem::worker
