// The native half of yr.datasystem.KVClient: argument types are checked by the Python half.
#pragma once

#include <pybind11/pybind11.h>

namespace datasystem::python {

void BindKVClient(pybind11::module_& module);

}  // namespace datasystem::python
