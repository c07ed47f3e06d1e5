// The thread ds-populate: it gives memory its pages before it is used, since the first touch of a
// page costs several times its copying, and gives back what is not used any more.
//
// It rests between small steps and has no low priority: a thread that loses its CPU for long while it
// holds the kernel's lock of the address space keeps the whole process from mapping memory. With
// SCHED_IDLE, on cores that were busy with other work, that stopped the event loop for 2 s.
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
  Status PopulatePaced();
  void ReturnWhatIsIdle();

  Backing& backing_;
  const Duration look_interval_;
  std::atomic<bool> stop_{false};  // set under the mutex, read without: orders nothing else
  std::mutex mutex_;
  std::condition_variable stopped_;
  std::thread thread_;
};

}  // namespace datasystem::shm
