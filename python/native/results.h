// What goes back to Python: exceptions for statuses, bytes objects filled by one copy, zero-copy views.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "datasystem/kv/read_only_buffer.h"
#include "datasystem/utils/optional.h"
#include "datasystem/utils/status.h"

namespace datasystem::python {

namespace py = pybind11;

// RuntimeError with the text of an error status.
void ThrowIfError(const Status& status);

// Letting go of a value may tell the worker so: that happens without the GIL.
class HeldBuffer {
 public:
  explicit HeldBuffer(ReadOnlyBuffer buffer) : buffer_(std::move(buffer)) {}
  HeldBuffer(const HeldBuffer&) = delete;
  HeldBuffer& operator=(const HeldBuffer&) = delete;
  ~HeldBuffer();

  const ReadOnlyBuffer& operator*() const { return *buffer_; }
  const ReadOnlyBuffer* operator->() const { return &*buffer_; }

 private:
  Optional<ReadOnlyBuffer> buffer_;
};

// One bytes (or str) per value, None for an absent one. Empties `values`. Needs the GIL, and releases it
// while it copies much.
py::list CopyOut(std::vector<Optional<ReadOnlyBuffer>>& values, bool as_text);

// One HeldBuffer per value, None for an absent one. Needs the GIL.
py::list WrapBuffers(std::vector<Optional<ReadOnlyBuffer>>& values);

void BindReadOnlyBuffer(py::module_& module);

}  // namespace datasystem::python
