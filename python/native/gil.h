// Lets other Python threads run while this one waits or copies.
//
// Unlike pybind11's gil_scoped_release it survives the end of the interpreter. CPython ends a daemon thread
// that asks for the GIL then by unwinding its stack, which aborts the process in frames of C++. So once
// EndCalls() has run, at exit, a thread that comes back from a call is parked instead, and goes with the process.
#pragma once

#include <Python.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace datasystem::python {

class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  GilRelease(const GilRelease&) = delete;
  ~GilRelease() {
    returning_.fetch_add(1);  // before the look at ending_: EndCalls() does it the other way round
    if (ending_.load() && !::pthread_equal(::pthread_self(), last_thread_)) {
      returning_.fetch_sub(1);
      for (;;) ::pause();
    }
    PyEval_RestoreThread(state_);
    returning_.fetch_sub(1);
  }

  // Once, when the module is loaded.
  static void Prepare() {
    // A forked child has none of the threads that its parent counted.
    ::pthread_atfork(nullptr, nullptr, [] { returning_.store(0); });
  }

  // For atexit, with the GIL: lets those who wait for the GIL have it a last time, and nobody after them.
  static void EndCalls() {
    last_thread_ = ::pthread_self();
    ending_.store(true);
    PyThreadState* const state = PyEval_SaveThread();
    while (returning_.load() > 0) ::usleep(100);
    PyEval_RestoreThread(state);
  }

 private:
  static inline std::atomic<bool> ending_{false};
  static inline std::atomic<int> returning_{0};
  static inline pthread_t last_thread_{};

  PyThreadState* const state_;
};

}  // namespace datasystem::python
