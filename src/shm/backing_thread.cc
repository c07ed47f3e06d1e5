#include "shm/backing_thread.h"

#include <pthread.h>

#include <algorithm>

#include "base/log.h"

namespace datasystem::shm {
namespace {

constexpr Duration kLookIntervalMin = std::chrono::milliseconds(100);
constexpr Duration kPressureInterval = std::chrono::seconds(1);
// Of its time the background population rests so many times as long as it works: 1 GiB takes 2.5 s.
constexpr int kRestShare = 4;

}  // namespace

BackingThread::BackingThread(Backing& backing, std::chrono::seconds return_after)
    : backing_(backing),
      look_interval_(
          std::max<Duration>(kLookIntervalMin, Duration(return_after) / Backing::kIdleLooks)) {}

BackingThread::~BackingThread() {
  {
    std::lock_guard lock(mutex_);
    stop_.store(true, std::memory_order_relaxed);
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status BackingThread::PopulateNow() {
  for (bool more = true; more && !stop_.load(std::memory_order_relaxed);) {
    ASSIGN_OR_RETURN(more, backing_.PopulateNext());
  }
  return Status::OK();
}

void BackingThread::Start() {
  thread_ = std::thread([this] { Run(); });
}

Status BackingThread::PopulatePaced() {
  std::unique_lock lock(mutex_);
  while (!stop_.load(std::memory_order_relaxed)) {
    lock.unlock();
    const TimePoint begun = Clock::Steady().Now();
    ASSIGN_OR_RETURN(const bool more, backing_.PopulateNext());
    if (!more) return Status::OK();
    const TimePoint done = Clock::Steady().Now();
    lock.lock();
    stopped_.wait_until(lock, done + kRestShare * (done - begun));
  }
  return Status::OK();
}

void BackingThread::Run() {
  (void)::pthread_setname_np(::pthread_self(), "ds-populate");
  const Status status = PopulatePaced();
  if (status.IsError()) LOG_WARNING("{}", status.GetMsg());
  if (backing_.gives_back()) ReturnWhatIsIdle();
}

void BackingThread::ReturnWhatIsIdle() {
  TimePoint next_look = Clock::Steady().Now() + look_interval_;
  std::unique_lock lock(mutex_);
  while (!stop_.load(std::memory_order_relaxed)) {
    const TimePoint now = Clock::Steady().Now();
    stopped_.wait_until(lock, std::min(next_look, now + kPressureInterval));
    lock.unlock();
    backing_.RelievePressure(stop_);
    if (Clock::Steady().Now() >= next_look) {
      backing_.ReturnIdle(stop_);
      next_look = Clock::Steady().Now() + look_interval_;
    }
    lock.lock();
  }
}

}  // namespace datasystem::shm
