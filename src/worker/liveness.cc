#include "worker/liveness.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string_view>

#include "base/log.h"
#include "worker/probe_files.h"

namespace datasystem::worker {
namespace {

// A question to the loop. Shared with the loop, which may answer when nobody asks any more.
struct Question {
  void Answer() {
    const std::lock_guard lock(mutex);
    answered = true;
    changed.notify_all();
  }
  bool WaitFor(std::chrono::milliseconds time, const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, stop, time, [this] { return answered; });
  }

  std::mutex mutex;
  std::condition_variable_any changed;
  bool answered = false;
};

Liveness::Options Sensible(Liveness::Options options) {
  options.interval = std::min(options.interval, options.timeout / 3);
  return options;
}

void Sleep(std::chrono::milliseconds time, const std::stop_token& stop) {
  Question().WaitFor(time, stop);
}

}  // namespace

Liveness::Liveness(EventLoop& loop, Options options) : loop_(loop), options_(Sensible(std::move(options))) {}

Status Liveness::Prepare() { return PrepareProbeFile(options_.path); }

void Liveness::Start() {
  if (!options_.path.empty()) thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

void Liveness::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  ::unlink(options_.path.c_str());
}

// The loop's silence is counted in rounds of this thread, not by the clock: when the whole process was
// stopped for a while, or the machine slept, nobody has been silent.
void Liveness::Run(std::stop_token stop) {
  std::shared_ptr<Question> question;
  std::chrono::milliseconds silence{0};
  bool writable = true;
  while (!stop.stop_requested()) {
    if (!question) {
      question = std::make_shared<Question>();
      loop_.Post([question] { question->Answer(); });
    }
    const bool answered = question->WaitFor(options_.interval, stop);
    if (stop.stop_requested()) return;
    if (answered) {
      question.reset();
      if (silence >= options_.timeout) LOG_WARNING("event loop answers again");
      silence = {};
    } else {
      const bool failed_before = silence >= options_.timeout;
      silence += options_.interval;
      if (!failed_before && silence >= options_.timeout) {
        LOG_ERROR("event loop has not answered, liveness check fails silent_ms={}", silence.count());
      }
    }
    const Status written = WriteProbeFile(
        options_.path, silence < options_.timeout
                           ? "liveness check success\n"
                           : fmt::format("liveness check failed: the event loop has not answered for {} ms\n",
                                         silence.count()));
    if (written.IsError() && std::exchange(writable, false)) {
      LOG_ERROR("liveness file not written, tried again reason={}", written.GetMsg());
    }
    if (written.IsOk()) writable = true;
    if (answered) Sleep(options_.interval, stop);
  }
}

}  // namespace datasystem::worker
