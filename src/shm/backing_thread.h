// The thread ds-populate, which runs only when a CPU is idle: it gives memory its pages before it
// is used, since the first touch of a page costs several times its copying, and gives back what is
// not used any more.
//
// Threads: PopulateNow() or Start() once, by the owner.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "shm/backing.h"

namespace datasystem::shm {

class BackingThread {
 public:
  // `backing` must outlive it. What is free for `return_after` goes back, or up to an eighth later.
  BackingThread(Backing& backing, std::chrono::seconds return_after);
  ~BackingThread();  // stops the thread within one chunk

  // Populates all before it returns. kRuntimeError if memory runs out.
  Status PopulateNow();
  // The same in the background, where a failure is one warning; then returns what is idle, if that
  // is allowed.
  void Start();

 private:
  void Run();
  void ReturnWhatIsIdle();

  Backing& backing_;
  const Duration look_interval_;
  std::atomic<bool> stop_{false};  // set under the mutex, read without: orders nothing else
  std::mutex mutex_;
  std::condition_variable stopped_;
  std::thread thread_;
};

}  // namespace datasystem::shm
