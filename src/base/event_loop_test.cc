#include "base/event_loop.h"

#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <future>

#include "base/unique_fd.h"

namespace datasystem {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

// Work arrives through an eventfd, as with UCX.
class EventFdPoller final : public Poller {
 public:
  EventFdPoller() : fd_(::eventfd(0, EFD_NONBLOCK)) {}
  void Signal() {
    const uint64_t one = 1;
    ASSERT_EQ(::write(fd_.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  }
  size_t Poll() override {
    uint64_t count = 0;
    if (::read(fd_.get(), &count, sizeof(count)) != sizeof(count)) return 0;
    seen_ += count;
    return 1;
  }
  bool PrepareToSleep() override { return true; }
  bool Busy() const override { return false; }
  int event_fd() const override { return fd_.get(); }
  uint64_t seen() const { return seen_; }

 private:
  UniqueFd fd_;
  std::atomic<uint64_t> seen_{0};
};

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

bool Eventually(const std::function<bool()>& predicate) {
  const auto end = steady_clock::now() + 10s;
  while (!predicate()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

class EventLoopTest : public ::testing::Test {
 protected:
  void SetUp() override {
    loop_.AddPoller(&poller_);
    thread_ = std::thread([this] { loop_.Run(); });
  }
  void TearDown() override {
    loop_.Stop();
    thread_.join();
  }
  // How long the loop needs to react, when it sleeps.
  template <typename Function>
  steady_clock::duration Latency(Function trigger) {
    asio::steady_timer pause(idle_);
    pause.expires_after(5ms);  // lets the loop fall asleep
    pause.wait();
    std::promise<steady_clock::time_point> done;
    const auto start = steady_clock::now();
    trigger(done);
    return done.get_future().get() - start;
  }

  asio::io_context idle_;
  EventFdPoller poller_;
  EventLoop loop_;
  std::thread thread_;
};

TEST_F(EventLoopTest, SeesEveryEventOfAPollerThatSleepsInBetween) {
  for (uint64_t i = 1; i <= 2000; ++i) {
    poller_.Signal();
    ASSERT_TRUE(Eventually([&] { return poller_.seen() == i; })) << i;
  }
}

TEST_F(EventLoopTest, WakesAtOnceForAPostedFunctionATimerAndASocket) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const UniqueFd writer(pair[1]);
  asio::posix::stream_descriptor reader(loop_.context(), pair[0]);
  asio::steady_timer timer(loop_.context());
  // Far below any polling interval, far above what a busy machine makes of a wake-up.
  EXPECT_LT(Latency([&](auto& done) { loop_.Post([&] { done.set_value(steady_clock::now()); }); }), 50ms);
  EXPECT_LT(Latency([&](auto& done) {
              loop_.Post([&] {
                timer.expires_after(2ms);
                timer.async_wait([&](asio::error_code) { done.set_value(steady_clock::now()); });
              });
            }),
            50ms);
  EXPECT_LT(Latency([&](auto& done) {
              loop_.Post([&] {
                reader.async_wait(asio::posix::stream_descriptor::wait_read,
                                  [&](asio::error_code) { done.set_value(steady_clock::now()); });
              });
              ASSERT_EQ(::write(writer.get(), "x", 1), 1);
            }),
            50ms);
}

TEST_F(EventLoopTest, GivesPollersTheirTurnWhileSomethingYieldsAgainAndAgain) {
  std::atomic<bool> stop = false;
  std::atomic<bool> stopped = false;
  std::atomic<int> yields = 0;
  std::function<void()> yield = [&] {
    ++yields;
    if (stop) {
      stopped = true;
    } else {
      asio::post(loop_.context(), yield);
    }
  };
  loop_.Post(yield);
  EXPECT_TRUE(Eventually([&] { return yields > 1000; }));
  poller_.Signal();
  EXPECT_TRUE(Eventually([&] { return poller_.seen() == 1; }));
  stop = true;
  EXPECT_TRUE(Eventually([&] { return stopped.load(); }));
}

TEST_F(EventLoopTest, UsesNoCpuWhileIdle) {
  poller_.Signal();
  ASSERT_TRUE(Eventually([&] { return poller_.seen() == 1; }));
  const double before = CpuSeconds();
  asio::steady_timer pause(idle_, 300ms);
  pause.wait();
  EXPECT_LT(CpuSeconds() - before, 0.03);
}

TEST_F(EventLoopTest, ForgetsAPollerWhoseEventIsAlreadyQueued) {
  for (int i = 0; i < 200; ++i) {
    std::promise<void> done;
    auto extra = std::make_unique<EventFdPoller>();
    loop_.Post([&] { loop_.AddPoller(extra.get()); });
    ASSERT_LT(Latency([&](auto& reacted) { loop_.Post([&] { reacted.set_value(steady_clock::now()); }); }), 10s);
    extra->Signal();
    loop_.Post([&] {
      loop_.RemovePoller(extra.get());
      extra.reset();
      done.set_value();
    });
    done.get_future().get();
  }
}

TEST_F(EventLoopTest, RunsWhatWasPostedBeforeStop) {
  std::atomic<int> ran = 0;
  for (int i = 0; i < 100; ++i) loop_.Post([&] { ++ran; });
  loop_.Stop();
  EXPECT_TRUE(Eventually([&] { return ran == 100; }));
}

}  // namespace
}  // namespace datasystem
