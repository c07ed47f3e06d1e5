#include "results.h"

#include <cstring>
#include <memory>
#include <stdexcept>

#include "gil.h"

namespace datasystem::python {
namespace {

// Below, a copy is done before another thread could have taken the GIL (about 1 µs).
constexpr size_t kCopyWithoutGilMin = 16 * 1024;

struct Copy {
  char* to;
  const void* from;
  size_t size;
};

void Run(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) std::memcpy(copy.to, copy.from, copy.size);
}

}  // namespace

void ThrowIfError(const Status& status) {
  if (status.IsError()) throw std::runtime_error(status.ToString());
}

HeldBuffer::~HeldBuffer() {
  GilRelease without_gil;
  buffer_.reset();
}

py::list CopyOut(std::vector<Optional<ReadOnlyBuffer>>& values, bool as_text) {
  py::list result(values.size());
  std::vector<Copy> copies;
  copies.reserve(values.size());
  size_t total = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) {
      result[i] = py::none();
      continue;
    }
    const size_t size = values[i]->GetSize();
    if (as_text) {
      // Decoding reads the value in place; it needs the GIL.
      result[i] = py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
          static_cast<const char*>(values[i]->ImmutableData()), size, "strict"));
      if (PyErr_Occurred() != nullptr) throw py::error_already_set();
      continue;
    }
    auto bytes = py::reinterpret_steal<py::object>(PyBytes_FromStringAndSize(nullptr, size));
    if (!bytes) throw py::error_already_set();
    copies.push_back({PyBytes_AS_STRING(bytes.ptr()), values[i]->ImmutableData(), size});
    total += size;
    result[i] = std::move(bytes);
  }
  if (total < kCopyWithoutGilMin) Run(copies);
  GilRelease without_gil;
  if (total >= kCopyWithoutGilMin) Run(copies);
  values.clear();
  return result;
}

py::list WrapBuffers(std::vector<Optional<ReadOnlyBuffer>>& values) {
  py::list result(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    result[i] = values[i] ? py::cast(std::make_unique<HeldBuffer>(std::move(*values[i]))) : py::none();
  }
  return result;
}

void BindReadOnlyBuffer(py::module_& module) {
  // A memoryview of it keeps the object, and with it the value's memory, alive.
  py::class_<HeldBuffer>(module, "ReadOnlyBuffer", py::buffer_protocol())
      .def_buffer([](HeldBuffer& buffer) {
        return py::buffer_info(static_cast<const unsigned char*>(buffer->ImmutableData()),
                               static_cast<py::ssize_t>(buffer->GetSize()));
      })
      .def("rlatch",
           [](const HeldBuffer& buffer, uint64_t timeout_sec) {
             Status status;
             {
               GilRelease without_gil;
               status = buffer->RLatch(timeout_sec);
             }
             ThrowIfError(status);
           })
      .def("unrlatch", [](const HeldBuffer& buffer) { ThrowIfError(buffer->UnRLatch()); })
      .def("__len__", [](const HeldBuffer& buffer) { return buffer->GetSize(); });
}

}  // namespace datasystem::python
