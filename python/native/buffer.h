// The Python class Buffer: memory of one value, filled in place and published, or read in place.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <vector>

#include "datasystem/object/buffer.h"
#include "datasystem/utils/optional.h"

namespace datasystem::python {

namespace py = pybind11;

// After a publication the memory is no longer this program's to write. So it cannot be published while
// anything still refers to it: views from mutable_data() and immutable_data() are released by the
// publication itself, and what was made out of those (slices, NumPy arrays) makes it fail.
//
// Everything here needs the GIL; it guards all members.
class BufferHandle {
 public:
  explicit BufferHandle(std::shared_ptr<Buffer> buffer) : buffer_(std::move(buffer)) {}
  BufferHandle(const BufferHandle&) = delete;
  BufferHandle& operator=(const BufferHandle&) = delete;
  ~BufferHandle();

  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }

  // For the slots of the buffer protocol: -1 with a Python exception set.
  int Export(PyObject* self, Py_buffer* view, int flags);
  void EndExport() { --exports_; }

  // RuntimeError when the memory is spent, or not writable.
  py::object MutableData(py::handle self);
  py::object ImmutableData(py::handle self);
  void MemoryCopy(py::handle value);

  // The memory cannot be reached between the two. RuntimeError: it is in use, and how to mend that.
  void BeginPublish();
  void EndPublish() { publishing_ = false; }

 private:
  py::object NewView(py::handle self, bool writable);
  void CheckNotPublishing() const;

  std::shared_ptr<Buffer> buffer_;
  std::vector<py::weakref> views_;  // handed out, and perhaps still there
  int exports_ = 0;                 // users of the buffer protocol, and copies under way
  bool publishing_ = false;
};

// One BufferHandle per buffer, None for an absent one.
py::list WrapBuffers(std::vector<Optional<Buffer>>& buffers);

void BindBuffer(py::module_& module);

}  // namespace datasystem::python
