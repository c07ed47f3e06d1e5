// Coroutines that wait for something to change, each with its own deadline.
//
// Threads: the event loop's. Ownership: outlives its waiters (checked).
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <list>

#include "base/check.h"
#include "base/clock.h"

namespace datasystem {

class WaitList {
 public:
  explicit WaitList(asio::io_context& context) : context_(context) {}
  WaitList(const WaitList&) = delete;
  ~WaitList() { CHECK(timers_.empty()); }

  // Resumes after the next NotifyAll (true), or at the deadline (false). Check the condition again.
  asio::awaitable<bool> Wait(TimePoint deadline) {
    asio::steady_timer timer(context_, deadline);
    const Entry entry(timers_, &timer);  // taken out even if the suspended coroutine is destroyed
    asio::error_code error;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
    co_return error == asio::error::operation_aborted;
  }

  void NotifyAll() {
    for (asio::steady_timer* timer : timers_) timer->cancel();
  }

  bool empty() const { return timers_.empty(); }

 private:
  using Timers = std::list<asio::steady_timer*>;
  class Entry {
   public:
    Entry(Timers& timers, asio::steady_timer* timer)
        : timers_(timers), place_(timers.insert(timers.end(), timer)) {}
    Entry(const Entry&) = delete;
    ~Entry() { timers_.erase(place_); }

   private:
    Timers& timers_;
    const Timers::iterator place_;
  };

  asio::io_context& context_;
  Timers timers_;
};

// A plain pause.
inline asio::awaitable<void> Pause(asio::io_context& context, Duration duration) {
  asio::steady_timer timer(context, duration);
  asio::error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

}  // namespace datasystem
