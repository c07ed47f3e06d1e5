#include "results.h"

#include <stdexcept>
#include <utility>

#include "client/copy.h"
#include "gil.h"
#include "read_only_buffer.h"

namespace datasystem::python {
namespace {

struct Copy {
  char* to;
  const void* from;
  size_t size;
};

void Run(const std::vector<Copy>& copies) {
  for (const auto& [to, from, size] : copies) {
    client::Copy({reinterpret_cast<std::byte*>(to), size}, {static_cast<const std::byte*>(from), size});
  }
}

}  // namespace

void ThrowIfError(const Status& status) {
  if (status.IsError()) throw std::runtime_error(status.ToString());
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
  if (total <= kCopyWithGilMax) Run(copies);
  GilRelease without_gil;
  if (total > kCopyWithGilMax) Run(copies);
  values.clear();
  return result;
}

py::list WrapBuffers(std::vector<Optional<ReadOnlyBuffer>>& values) {
  py::list result(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) {
      result[i] = py::none();
      continue;
    }
    auto buffer = py::reinterpret_steal<py::object>(
        NewReadOnlyBuffer(std::move(*values[i]), Release::kMayTellWorker));
    if (!buffer) throw py::error_already_set();
    result[i] = std::move(buffer);
  }
  return result;
}

}  // namespace datasystem::python
