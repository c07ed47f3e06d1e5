// Methods written for Python's C API, where pybind11's search for an overload would cost more than the call itself.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <new>
#include <string>

namespace datasystem::python {

namespace py = pybind11;

using FastFunction = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names);

// `doc` begins with the signature for inspect.signature().
inline PyMethodDef FastMethod(const char* name, FastFunction function, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)), METH_FASTCALL | METH_KEYWORDS,
          doc};
}

// The names of a method's parameters, of which the first `required` must be given.
template <size_t N>
struct Parameters {
  const char* method;
  std::array<const char*, N> names;
  size_t required;

  // The arguments in the order of the parameters, borrowed; null for one that was not given. TypeError as Python's own
  // functions raise it.
  std::array<PyObject*, N> Bind(PyObject* const* args, Py_ssize_t count, PyObject* keywords) const {
    std::array<PyObject*, N> bound{};
    if (static_cast<size_t>(count) > N) {
      Fail("takes at most " + std::to_string(N) + " arguments (" + std::to_string(count) + " given)");
    }
    std::copy_n(args, count, bound.begin());
    for (Py_ssize_t i = 0; keywords != nullptr && i < PyTuple_GET_SIZE(keywords); ++i) {
      PyObject* const keyword = PyTuple_GET_ITEM(keywords, i);
      const size_t at = static_cast<size_t>(
          std::find_if(names.begin(), names.end(),
                       [&](const char* name) { return PyUnicode_CompareWithASCIIString(keyword, name) == 0; }) -
          names.begin());
      if (at == N) Fail("got an unexpected keyword argument '" + std::string(py::str(keyword)) + "'");
      if (bound[at] != nullptr) Fail(std::string("got multiple values for argument '") + names[at] + "'");
      bound[at] = args[count + i];
    }
    for (size_t i = 0; i < required; ++i) {
      if (bound[i] == nullptr) Fail(std::string("missing required argument '") + names[i] + "'");
    }
    return bound;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const { throw py::type_error(method + ("() " + what)); }
};

// Runs the body of such a method: what it throws becomes Python's exception.
template <typename Body>
PyObject* Guarded(Body body) noexcept {
  try {
    return body();
  } catch (py::error_already_set& failure) {
    failure.restore();
  } catch (const py::builtin_exception& failure) {
    failure.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& failure) {
    PyErr_SetString(PyExc_RuntimeError, failure.what());
  }
  return nullptr;
}

}  // namespace datasystem::python
