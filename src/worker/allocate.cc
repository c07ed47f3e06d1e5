#include "worker/allocate.h"

#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>

namespace datasystem::worker {
namespace {

// Others may take what was evicted here. Who has evicted ten million objects, more than a worker holds, gets the next
// memory at once.
constexpr int kEvictingStepsMax = 10'000;

}  // namespace

asio::awaitable<Result<shm::Extent>> AllocateInSteps(asio::io_context& context, store::ObjectStore& store,
                                                     uint64_t size) {
  auto extent = store.Reserve(size);
  for (int step = 0; !extent.ok() && extent.status().GetCode() == K_TRY_AGAIN; ++step) {
    if (step == kEvictingStepsMax) co_return store.Allocate(size);
    co_await asio::post(context, asio::use_awaitable);
    extent = store.Reserve(size);
  }
  while (extent.ok()) {
    const auto backed = store.Back(*extent);
    if (backed.ok() && *backed) break;
    if (!backed.ok()) {  // the machine has no more: but what others give up has its pages
      *extent = shm::Extent();
      co_return store.Allocate(size);
    }
    co_await asio::post(context, asio::use_awaitable);
  }
  co_return extent;
}

Result<shm::Extent> AllocateAtOnce(store::ObjectStore& store, uint64_t size) {
  auto extent = store.Reserve(size);
  if (extent.ok()) {
    const auto backed = store.Back(*extent);
    if (backed.ok() && *backed) return extent;
  } else if (extent.status().GetCode() != K_TRY_AGAIN) {
    return extent;
  }
  return errors::TryAgain("room for {} bytes is being made", size);
}

}  // namespace datasystem::worker
