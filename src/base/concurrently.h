// Runs a coroutine for each index 0..count-1, at most `window` at a time, and returns when all have ended.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <memory>

#include "base/wait_list.h"

namespace datasystem {

// `run(index)` returns asio::awaitable<void>; it is kept alive until the last one has ended.
template <typename Run>
asio::awaitable<void> ForEachConcurrently(asio::io_context& context, size_t count, size_t window,
                                          Run run) {
  if (count == 1) {  // the common case needs no machinery
    co_await run(size_t{0});
    co_return;
  }
  struct Shared {
    Shared(asio::io_context& context, Run run) : run(std::move(run)), ended(context) {}
    Run run;
    size_t next = 0;
    size_t running = 0;
    WaitList ended;
  };
  auto shared = std::make_shared<Shared>(context, std::move(run));
  const auto lane = [](std::shared_ptr<Shared> shared, size_t count) -> asio::awaitable<void> {
    while (shared->next < count) co_await shared->run(shared->next++);
    if (--shared->running == 0) shared->ended.NotifyAll();
  };
  for (size_t i = 0; i < std::min(count, window); ++i) {
    ++shared->running;
    asio::co_spawn(context, lane(shared, count), asio::detached);
  }
  while (shared->running > 0) co_await shared->ended.Wait(TimePoint::max());
}

}  // namespace datasystem
