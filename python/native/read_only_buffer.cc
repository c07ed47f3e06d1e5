#include "read_only_buffer.h"

#include <cstdint>
#include <new>
#include <utility>

#include "arguments.h"
#include "c_api.h"
#include "gil.h"
#include "results.h"

namespace datasystem::python {
namespace {

struct Object {
  PyObject_HEAD
  ReadOnlyBuffer value;
  Release release;
};

PyTypeObject* type = nullptr;  // set once, when the module is loaded

const ReadOnlyBuffer& ValueOf(PyObject* self) { return reinterpret_cast<Object*>(self)->value; }

void Destroy(PyObject* self) {
  auto* const object = reinterpret_cast<Object*>(self);
  if (object->release == Release::kLocal) {
    object->value.~ReadOnlyBuffer();
  } else {
    GilRelease without_gil;
    object->value.~ReadOnlyBuffer();
  }
  PyTypeObject* const own_type = Py_TYPE(self);
  own_type->tp_free(self);
  Py_DECREF(own_type);
}

int GetBuffer(PyObject* self, Py_buffer* view, int flags) {
  const ReadOnlyBuffer& value = ValueOf(self);
  return PyBuffer_FillInfo(view, self, const_cast<void*>(value.ImmutableData()), value.GetSize(), /*readonly=*/1,
                           flags);
}

Py_ssize_t Length(PyObject* self) { return ValueOf(self).GetSize(); }

PyObject* Repr(PyObject* self) {
  return PyUnicode_FromFormat("<ReadOnlyBuffer of %lld bytes>", static_cast<long long>(ValueOf(self).GetSize()));
}

void LatchForReading(const ReadOnlyBuffer& value, PyObject* timeout_sec) {
  const int64_t seconds = timeout_sec == nullptr ? 60 : IntegerOf(timeout_sec, "timeout_sec", 1, INT32_MAX);
  ThrowIfError(value.RLatch(static_cast<uint64_t>(seconds)));
}

constexpr Parameters<2> kImmutableData{"immutable_data", {"with_latch", "timeout_sec"}, 0};

PyObject* ImmutableData(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return Guarded([&]() -> PyObject* {
    const auto [with_latch, timeout_sec] = kImmutableData.Bind(args, count, names);
    if (with_latch == nullptr || !BoolOf(with_latch, "with_latch")) return PyMemoryView_FromObject(self);
    LatchForReading(ValueOf(self), timeout_sec);
    PyObject* const view = PyMemoryView_FromObject(self);
    ThrowIfError(ValueOf(self).UnRLatch());
    return view;
  });
}

constexpr Parameters<1> kRLatch{"rlatch", {"timeout_sec"}, 0};

PyObject* RLatch(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return Guarded([&] {
    LatchForReading(ValueOf(self), kRLatch.Bind(args, count, names)[0]);
    return py::none().release().ptr();
  });
}

PyObject* UnRLatch(PyObject* self, PyObject*) {
  return Guarded([&] {
    ThrowIfError(ValueOf(self).UnRLatch());
    return py::none().release().ptr();
  });
}

PyMethodDef methods[] = {
    FastMethod("immutable_data", ImmutableData,
               "immutable_data($self, /, with_latch=False, timeout_sec=60)\n--\n\n"
               "A read-only view of the value, without a copy.\n\n"
               "`with_latch` takes the read latch for the time of the call, waiting at most `timeout_sec`."),
    FastMethod("rlatch", RLatch,
               "rlatch($self, /, timeout_sec=60)\n--\n\n"
               "For programs that latch before they read; there is no writer to wait for."),
    {"unrlatch", UnRLatch, METH_NOARGS, "unrlatch($self, /)\n--\n\nReleases the read latch."},
    {}};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("A stored value, read in place.\n\n"
                                  "The bytes never change: an overwrite of the key makes a new object. Their memory is "
                                  "not reused while\nthis object, or anything made of it without a copy (a memoryview, "
                                  "numpy.asarray()), lives.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(&Destroy)},
    {Py_tp_repr, reinterpret_cast<void*>(&Repr)},
    {Py_tp_methods, methods},
    {Py_sq_length, reinterpret_cast<void*>(&Length)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(&GetBuffer)},
    {}};

PyType_Spec spec = {
    .name = "yr.datasystem.lib.libds_client_py.ReadOnlyBuffer",
    .basicsize = sizeof(Object),
    .itemsize = 0,
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

}  // namespace

PyObject* NewReadOnlyBuffer(ReadOnlyBuffer value, Release release) {
  auto* const object = PyObject_New(Object, type);
  if (object == nullptr) return nullptr;
  new (&object->value) ReadOnlyBuffer(std::move(value));
  object->release = release;
  return reinterpret_cast<PyObject*>(object);
}

void BindReadOnlyBuffer(py::module_& module) {
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (type == nullptr) throw py::error_already_set();
  type->tp_new = nullptr;  // only a client makes one
  module.attr("ReadOnlyBuffer") = py::handle(reinterpret_cast<PyObject*>(type));
}

}  // namespace datasystem::python
