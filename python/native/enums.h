// WriteMode, ExistenceOpt and CacheType: real enumerations of Python (enum.IntEnum), so that they can be iterated,
// pickled and shown in signatures.
#pragma once

#include <pybind11/pybind11.h>

#include "datasystem/object/object_enum.h"

namespace datasystem::python {

// TypeError unless `value` is a member.
WriteMode WriteModeOf(pybind11::handle value);

void BindEnums(pybind11::module_& module);

}  // namespace datasystem::python
