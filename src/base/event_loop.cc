#include "base/event_loop.h"

#include <asio/posix/stream_descriptor.hpp>
#include <utility>

#include "base/spin_budget.h"

namespace datasystem {
namespace {

// Handlers that run before the pollers have their turn again: there may always be one more, as of a coroutine that
// yields in a long piece of work.
constexpr size_t kHandlersPerRound = 64;
constexpr auto kLookAroundFor = std::chrono::microseconds(2);

}  // namespace

// Keeps one wait outstanding on the poller's descriptor, so that an event which comes between
// PrepareToSleep() and the sleep still wakes the loop. Asio watches edge-triggered: only a wait that is
// already there sees the edge.
struct EventLoop::Watched {
  Watched(asio::io_context& context, Poller* poller) : poller(poller), descriptor(context) {
    descriptor.assign(poller->event_fd());
  }
  // The poller owns the descriptor.
  ~Watched() { descriptor.release(); }

  // Prepared to sleep, and nothing has come or been started since.
  bool Asleep() const { return state->asleep && !poller->Busy(); }

  size_t Poll() {
    state->asleep = false;
    return poller->Poll();
  }

  bool PrepareToSleep() {
    if (!state->waiting) {
      state->waiting = true;
      // The handler may be queued already when this object goes away, so it owns what it touches.
      descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                            [state = state](asio::error_code) { *state = State(); });
    }
    state->asleep = poller->PrepareToSleep();
    return state->asleep;
  }

  struct State {
    bool waiting = false;
    bool asleep = false;
  };
  Poller* poller;
  asio::posix::stream_descriptor descriptor;
  std::shared_ptr<State> state = std::make_shared<State>();
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
  // Pollers first: what woke us is mostly theirs, and looking for sockets costs a system call.
  size_t done = 0;
  for (size_t i = 0; i < watched_.size(); ++i) {
    if (!watched_[i]->Asleep()) done += watched_[i]->Poll();
  }
  for (size_t ran = 0; ran < kHandlersPerRound && context_.poll_one() > 0; ++ran) ++done;
  return done;
}

// A full round costs several system calls; this takes about as long, for what comes through memory.
bool EventLoop::LookAround() const {
  const auto end = std::chrono::steady_clock::now() + kLookAroundFor;
  do {
    for (const auto& watched : watched_) {
      if (watched->poller->HasWork()) return true;
    }
    CpuPause();
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

void EventLoop::Run() {
  thread_ = std::this_thread::get_id();
  SpinBudget spin(options_.idle_spin);
  bool idle = false;
  while (!stop_.load(std::memory_order_acquire)) {
    if (PollOnce() > 0) {
      if (std::exchange(idle, false)) spin.Found();
      continue;
    }
    if (!std::exchange(idle, true)) spin.Begin();
    if (spin.Spinning()) {
      if (!LookAround()) spin.Yield();
      continue;
    }
    bool may_sleep = true;
    for (auto& watched : watched_) {
      if (!watched->Asleep()) may_sleep = watched->PrepareToSleep() && may_sleep;
    }
    if (!may_sleep) continue;
    context_.run_one();
    spin.Found();
    idle = false;
  }
  context_.poll();
  thread_ = std::thread::id();
}

void EventLoop::Stop() {
  stop_.store(true, std::memory_order_release);
  asio::post(context_, [] {});
}

}  // namespace datasystem
