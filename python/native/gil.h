// Lets other Python threads run while this one waits or copies.
//
// Unlike pybind11's gil_scoped_release it survives the end of the interpreter: CPython ends a daemon thread
// that asks for the GIL then by unwinding its stack, which would run into a noexcept destructor and abort the
// process. Such a thread is parked here instead, and goes with the process.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace datasystem::python {

class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  GilRelease(const GilRelease&) = delete;
  ~GilRelease() {
    try {
      PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind&) {
      for (;;) ::pause();
    }
  }

 private:
  PyThreadState* const state_;
};

}  // namespace datasystem::python
