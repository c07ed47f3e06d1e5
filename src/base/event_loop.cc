#include "base/event_loop.h"

#include <asio/posix/stream_descriptor.hpp>

#include "base/check.h"

namespace datasystem {

// Keeps one wait outstanding on the poller's descriptor, so that an event which comes between
// PrepareToSleep() and the sleep still wakes the loop. Asio watches edge-triggered: only a wait that is
// already there sees the edge.
struct EventLoop::Watched {
  Watched(asio::io_context& context, Poller* poller) : poller(poller), descriptor(context) {
    descriptor.assign(poller->event_fd());
  }
  // The poller owns the descriptor.
  ~Watched() { descriptor.release(); }

  void Wait() {
    if (*waiting) return;
    *waiting = true;
    // The handler may be queued already when this object goes away, so it owns what it touches.
    descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                          [waiting = waiting](asio::error_code) { *waiting = false; });
  }

  Poller* poller;
  asio::posix::stream_descriptor descriptor;
  std::shared_ptr<bool> waiting = std::make_shared<bool>(false);
};

EventLoop::EventLoop() : EventLoop(Options()) {}
EventLoop::EventLoop(Options options) : options_(options) {}
EventLoop::~EventLoop() = default;

void EventLoop::AddPoller(Poller* poller) {
  watched_.push_back(std::make_unique<Watched>(context_, poller));
}

void EventLoop::RemovePoller(Poller* poller) {
  std::erase_if(watched_, [poller](const auto& watched) { return watched->poller == poller; });
}

size_t EventLoop::PollOnce() {
  size_t done = context_.poll();
  for (size_t i = 0; i < watched_.size(); ++i) done += watched_[i]->poller->Poll();
  return done;
}

void EventLoop::Run() {
  thread_ = std::this_thread::get_id();
  auto idle_since = std::chrono::steady_clock::now();
  while (!stop_.load(std::memory_order_acquire)) {
    if (PollOnce() > 0) {
      idle_since = std::chrono::steady_clock::now();
      continue;
    }
    if (std::chrono::steady_clock::now() - idle_since < options_.idle_spin) continue;
    bool may_sleep = true;
    for (auto& watched : watched_) {
      watched->Wait();
      may_sleep = watched->poller->PrepareToSleep() && may_sleep;
    }
    if (!may_sleep) continue;
    context_.run_one();
    idle_since = std::chrono::steady_clock::now();
  }
  context_.poll();
  thread_ = std::thread::id();
}

void EventLoop::Stop() {
  stop_.store(true, std::memory_order_release);
  asio::post(context_, [] {});
}

}  // namespace datasystem
