// The Python class ReadOnlyBuffer: a stored value, read in place. Written for the C API: one is made for each read.
#pragma once

#include <pybind11/pybind11.h>

#include "datasystem/kv/read_only_buffer.h"

namespace datasystem::python {

namespace py = pybind11;

// Whether letting go of a value may send a message to the worker, and so shall happen without the GIL.
enum class Release { kLocal, kMayTellWorker };

// Null, with an exception set, when there is no memory.
PyObject* NewReadOnlyBuffer(ReadOnlyBuffer value, Release release);

void BindReadOnlyBuffer(py::module_& module);

}  // namespace datasystem::python
