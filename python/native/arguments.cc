#include "arguments.h"

#include <stdexcept>
#include <utility>

namespace datasystem::python {

void ThrowInvalidType(const std::string& name, const char* valid) {
  throw py::type_error("The input of " + name + " has invalid type, valid type: [" + valid + "]");
}

bool BoolOf(py::handle value, const std::string& name) {
  if (!PyBool_Check(value.ptr())) ThrowInvalidType(name, "bool");
  return value.ptr() == Py_True;
}

std::string_view TextOf(py::handle value, const std::string& name) {
  if (!PyUnicode_CheckExact(value.ptr())) ThrowInvalidType(name, "str");
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
  if (text == nullptr) throw py::error_already_set();
  return {text, static_cast<size_t>(size)};
}

std::vector<std::string> KeysOf(const py::list& keys) {
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    PyObject* const key = PyList_GET_ITEM(keys.ptr(), i);
    if (!PyUnicode_CheckExact(key)) ThrowInvalidType("keys[" + std::to_string(i) + "]", "str");
    names.emplace_back(TextOf(key, "key"));
  }
  return names;
}

uint64_t UnsignedOf(py::handle value, const std::string& name) {
  if (!PyLong_CheckExact(value.ptr())) ThrowInvalidType(name, "int");
  const uint64_t number = PyLong_AsUnsignedLongLong(value.ptr());
  if (PyErr_Occurred() == nullptr) return number;
  PyErr_Clear();
  throw std::runtime_error("Invalid " + name + " size " + py::str(value).cast<std::string>() +
                           " is set, which should be between [0,18446744073709551615]");
}

int64_t IntegerOf(py::handle value, const std::string& name, int64_t low, int64_t high) {
  if (!PyLong_CheckExact(value.ptr())) ThrowInvalidType(name, "int");
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow != 0 || number < low || number > high) {
    throw std::runtime_error("Invalid " + name + " size " + std::string(py::str(value)) +
                             " is set, which should be between [" + std::to_string(low) + "," +
                             std::to_string(high) + "]");
  }
  return number;
}

ValueView::ValueView(py::handle value, const std::string& name) {
  PyObject* object = value.ptr();
  if (PyBytes_CheckExact(object)) {
    owner_ = py::reinterpret_borrow<py::object>(value);
    bytes_ = {PyBytes_AS_STRING(object), static_cast<size_t>(PyBytes_GET_SIZE(object))};
  } else if (PyUnicode_CheckExact(object)) {
    if (PyUnicode_READY(object) != 0) throw py::error_already_set();
    if (PyUnicode_IS_COMPACT_ASCII(object)) {
      owner_ = py::reinterpret_borrow<py::object>(value);
      bytes_ = {static_cast<const char*>(PyUnicode_DATA(object)),
                static_cast<size_t>(PyUnicode_GET_LENGTH(object))};
    } else {
      // Not AsUTF8AndSize: that would keep the encoded text inside the caller's string for good.
      owner_ = py::reinterpret_steal<py::object>(PyUnicode_AsUTF8String(object));
      if (!owner_) throw py::error_already_set();
      bytes_ = {PyBytes_AS_STRING(owner_.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(owner_.ptr()))};
    }
  } else if (PyObject_CheckBuffer(object)) {
    // Simple: the bytes in the order of C, whatever their format and shape.
    if (PyObject_GetBuffer(object, &buffer_, PyBUF_SIMPLE) != 0) {
      PyErr_Clear();
      throw py::type_error("The input of " + name + " is a " + Py_TYPE(object)->tp_name +
                           " with gaps or already released; pass bytes(" + name + ")");
    }
    bytes_ = {static_cast<const char*>(buffer_.buf), static_cast<size_t>(buffer_.len)};
  } else {
    ThrowInvalidType(name, "bytes, bytearray, memoryview, str");
  }
}

ValueView::ValueView(ValueView&& other) noexcept
    : owner_(std::move(other.owner_)),
      buffer_(std::exchange(other.buffer_, Py_buffer{})),
      bytes_(std::exchange(other.bytes_, {})) {}

ValueView::~ValueView() {
  if (buffer_.obj != nullptr) PyBuffer_Release(&buffer_);
}

}  // namespace datasystem::python
