// The thread that owns a shard: Asio handlers and the progress of a communication library in one loop.
//
// While there is work it polls both; after a short idle spin it arms the pollers and sleeps in the
// kernel until a socket, a timer, a posted function or a poller's descriptor wakes it.
#pragma once

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace datasystem {

// Something besides Asio that needs the loop's thread, e.g. a ucp_worker_h.
class Poller {
 public:
  virtual ~Poller() = default;
  // Does what can be done now; returns how much happened (0 = nothing).
  virtual size_t Poll() = 0;
  // Looks for something to do, without a system call: asked often by a loop that spins.
  virtual bool HasWork() const { return false; }
  // Called before the loop sleeps. False: events are already there, poll again instead. After true, Poll()
  // is not called until the descriptor is readable or Busy() says so: polling costs system calls.
  virtual bool PrepareToSleep() = 0;
  // Something was started since PrepareToSleep() that needs Poll() without being told by the descriptor.
  virtual bool Busy() const = 0;
  // Becomes readable when there is something to poll after PrepareToSleep() returned true.
  virtual int event_fd() const = 0;
};

// Threads: Run() on one thread; Post() and Stop() from any; the rest before Run() or on its thread.
class EventLoop {
 public:
  struct Options {
    // How long an idle loop polls at most before it sleeps; less while that finds nothing.
    std::chrono::microseconds idle_spin{50};
  };

  EventLoop();
  explicit EventLoop(Options options);
  ~EventLoop();

  asio::io_context& context() { return context_; }

  // `poller` must outlive the loop's Run(), or be removed on the loop's thread before.
  void AddPoller(Poller* poller);
  void RemovePoller(Poller* poller);

  // Runs until Stop(). Handlers posted before Stop() was called still run.
  void Run();
  void Stop();
  // Destroys what still waits: handlers and suspended coroutines, with all that they hold. Not while Run()
  // runs. Call it before what they refer to is destroyed; afterwards the loop can only be destroyed.
  void DestroyPending() { context_.shutdown(); }
  bool OnThread() const { return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

  template <typename Function>
  void Post(Function function) {
    asio::post(context_, std::move(function));
  }

 private:
  struct Watched;
  size_t PollOnce();
  // Worth another round at once.
  bool LookAround() const;

  struct Context : asio::io_context {
    Context() : asio::io_context(1) {}
    using asio::io_context::shutdown;
  };

  Options options_;
  Context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  std::vector<std::unique_ptr<Watched>> watched_;
  std::atomic<std::thread::id> thread_{};
  std::atomic<bool> stop_{false};
};

}  // namespace datasystem
