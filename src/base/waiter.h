// A coroutine that waits until somebody resumes it: without a timer, without the loop, without a system call.
// Threads: the event loop's.
#pragma once

#include <asio/async_result.hpp>
#include <asio/awaitable.hpp>
#include <asio/use_awaitable.hpp>
#include <memory>
#include <utility>

namespace datasystem {

// Type-erased because completion handlers can only be moved. Destroyed without Resume(), it destroys the coroutine.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void Resume() = 0;
};

template <typename Handler>
class HandlerWaiter final : public Waiter {
 public:
  explicit HandlerWaiter(Handler handler) : handler_(std::move(handler)) {}
  void Resume() override { std::move(handler_)(); }

 private:
  Handler handler_;
};

// Suspends; `place`, which must be empty and stay where it is, holds who waits.
inline asio::awaitable<void> WaitIn(std::unique_ptr<Waiter>& place) {
  auto suspend = [&place](auto handler) {
    place = std::make_unique<HandlerWaiter<decltype(handler)>>(std::move(handler));
  };
  co_await asio::async_initiate<const asio::use_awaitable_t<>&, void()>(suspend, asio::use_awaitable);
}

}  // namespace datasystem
