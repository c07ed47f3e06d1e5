#include "buffer.h"

#include <cstdint>
#include <string>

#include "arguments.h"
#include "client/trace_id.h"
#include "gil.h"
#include "results.h"

namespace datasystem::python {
namespace {

constexpr int64_t kInt32Max = INT32_MAX;

[[noreturn]] void Throw(StatusCode code, const std::string& message) {
  ThrowIfError(client::WithTraceId(Status(code, message)));
  throw std::logic_error("an error status is OK");
}

[[noreturn]] void ThrowSpent() {
  Throw(K_OC_ALREADY_SEALED, "the buffer has been published and gives no more access to its memory");
}

int GetBuffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    return py::handle(self).cast<BufferHandle&>().Export(self, view, flags);
  } catch (const std::exception& failure) {
    PyErr_SetString(PyExc_BufferError, failure.what());
    return -1;
  }
}

void ReleaseBuffer(PyObject* self, Py_buffer*) { py::handle(self).cast<BufferHandle&>().EndExport(); }

// Latches wait, so they do it without the GIL; `buffer` keeps the memory.
template <typename Call>
void Latch(const BufferHandle& handle, Call call) {
  const std::shared_ptr<Buffer> buffer = handle.buffer();
  Status status;
  {
    GilRelease without_gil;
    status = call(*buffer);
  }
  ThrowIfError(client::WithTraceId(status));
}

uint64_t Seconds(py::handle timeout_sec) {
  return static_cast<uint64_t>(IntegerOf(timeout_sec, "timeout_sec", 1, kInt32Max));
}

}  // namespace

BufferHandle::~BufferHandle() {
  views_.clear();
  GilRelease without_gil;  // giving memory back may tell the worker so
  buffer_.reset();
}

void BufferHandle::CheckNotPublishing() const {
  if (publishing_) Throw(K_TRY_AGAIN, "the buffer is being published");
}

int BufferHandle::Export(PyObject* self, Py_buffer* view, int flags) {
  CheckNotPublishing();
  void* const writable = buffer_->MutableData();
  const void* const data = writable != nullptr ? writable : buffer_->ImmutableData();
  if (data == nullptr) ThrowSpent();
  if (PyBuffer_FillInfo(view, self, const_cast<void*>(data), buffer_->GetSize(), writable == nullptr,
                        flags) != 0) {
    return -1;
  }
  ++exports_;
  return 0;
}

py::object BufferHandle::NewView(py::handle self, bool writable) {
  auto view = py::reinterpret_steal<py::object>(PyMemoryView_FromObject(self.ptr()));
  if (!view) throw py::error_already_set();
  if (!writable) view = view.attr("toreadonly")();
  std::erase_if(views_, [](const py::weakref& seen) { return seen().is_none(); });
  views_.emplace_back(view);
  return view;
}

py::object BufferHandle::MutableData(py::handle self) {
  CheckNotPublishing();
  if (buffer_->ImmutableData() == nullptr) ThrowSpent();
  if (buffer_->MutableData() == nullptr) {
    Throw(K_INVALID, "a buffer from get_buffers() cannot be written: use mcreate() for a new value");
  }
  return NewView(self, true);
}

py::object BufferHandle::ImmutableData(py::handle self) {
  CheckNotPublishing();
  if (buffer_->ImmutableData() == nullptr) ThrowSpent();
  return NewView(self, false);
}

void BufferHandle::MemoryCopy(py::handle value) {
  CheckNotPublishing();
  const ValueView view(value, "value");
  const std::string_view bytes = view.bytes();
  Status status;
  if (bytes.size() <= kCopyWithGilMax) {
    status = buffer_->MemoryCopy(bytes.data(), bytes.size());
  } else {
    ++exports_;
    {
      GilRelease without_gil;
      status = buffer_->MemoryCopy(bytes.data(), bytes.size());
    }
    --exports_;
  }
  ThrowIfError(client::WithTraceId(status));
}

void BufferHandle::BeginPublish() {
  CheckNotPublishing();
  for (const py::weakref& seen : views_) {
    const py::object view = seen();
    if (view.is_none()) continue;
    try {
      view.attr("release")();
    } catch (py::error_already_set& failure) {
      if (!failure.matches(PyExc_BufferError)) throw;  // else counted below
    }
  }
  if (exports_ > 0) {
    Throw(K_INVALID, "the buffer's memory is still used by " + std::to_string(exports_) +
                         " views (slices, arrays, copies): delete them before it is published");
  }
  views_.clear();
  publishing_ = true;
}

py::list WrapBuffers(std::vector<Optional<Buffer>>& buffers) {
  py::list result(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    result[i] = buffers[i] ? py::cast(std::make_unique<BufferHandle>(
                                 std::make_shared<Buffer>(std::move(*buffers[i]))))
                           : py::none();
  }
  return result;
}

void BindBuffer(py::module_& module) {
  const auto mutable_data = [](py::object self) { return self.cast<BufferHandle&>().MutableData(self); };
  py::class_<BufferHandle>(module, "Buffer", py::custom_type_setup([](PyHeapTypeObject* type) {
                             type->as_buffer.bf_getbuffer = &GetBuffer;
                             type->as_buffer.bf_releasebuffer = &ReleaseBuffer;
                             type->ht_type.tp_as_buffer = &type->as_buffer;
                           }),
                           "Memory of one value: from mcreate() to be filled and published, from "
                           "get_buffers() to be read where it is.")
      .def("mutable_data", mutable_data, "A writable view; mset_buffer() releases it.")
      .def("MutableData", mutable_data, "Another name of mutable_data().")
      .def("immutable_data",
           [](py::object self) { return self.cast<BufferHandle&>().ImmutableData(self); },
           "A read-only view; mset_buffer() releases it.")
      .def("memory_copy", &BufferHandle::MemoryCopy, py::arg("value"),
           "Copies a value to the start of the memory.")
      .def("get_size", [](const BufferHandle& handle) { return handle.buffer()->GetSize(); },
           "The number of bytes.")
      .def("__len__", [](const BufferHandle& handle) { return handle.buffer()->GetSize(); })
      .def("wlatch",
           [](const BufferHandle& handle, py::handle timeout_sec) {
             const uint64_t seconds = Seconds(timeout_sec);
             Latch(handle, [seconds](Buffer& buffer) { return buffer.WLatch(seconds); });
           },
           py::arg("timeout_sec") = 60, "Waits until no other thread of this process holds a latch.")
      .def("rlatch",
           [](const BufferHandle& handle, py::handle timeout_sec) {
             const uint64_t seconds = Seconds(timeout_sec);
             Latch(handle, [seconds](Buffer& buffer) { return buffer.RLatch(seconds); });
           },
           py::arg("timeout_sec") = 60, "Waits until no other thread of this process holds the write latch.")
      .def("unwlatch",
           [](const BufferHandle& handle) {
             Latch(handle, [](Buffer& buffer) { return buffer.UnWLatch(); });
           },
           "Releases the write latch.")
      .def("unrlatch", [](const BufferHandle& handle) {
             Latch(handle, [](Buffer& buffer) { return buffer.UnRLatch(); });
           },
           "Releases a read latch.");
}

}  // namespace datasystem::python
