// What goes back to Python: exceptions for statuses, bytes objects filled by one copy, zero-copy views.
#pragma once

#include <pybind11/pybind11.h>

#include <cstddef>
#include <string>
#include <vector>

#include "datasystem/kv/read_only_buffer.h"
#include "datasystem/utils/optional.h"
#include "datasystem/utils/status.h"

namespace datasystem::python {

namespace py = pybind11;

// More than this is copied without the GIL. A thread that waits for it would not get it earlier anyway: it asks for it
// after milliseconds (sys.getswitchinterval), and so much takes a few microseconds.
constexpr size_t kCopyWithGilMax = 64 * 1024;

// RuntimeError with the text of an error status.
void ThrowIfError(const Status& status);

// One bytes (or str) per value, None for an absent one. Empties `values`. Needs the GIL, and releases it
// while it copies much.
py::list CopyOut(std::vector<Optional<ReadOnlyBuffer>>& values, bool as_text);

// One ReadOnlyBuffer per value, None for an absent one. Needs the GIL.
py::list WrapBuffers(std::vector<Optional<ReadOnlyBuffer>>& values);

}  // namespace datasystem::python
