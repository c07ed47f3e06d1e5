// The calls that programs make most: set, get, get_read_only_buffers, exist. They are written for the C API, without a
// wrapper in Python, and read what is on this node with the GIL held: giving it up costs as much as the read, and then
// other threads may keep it for milliseconds. It is given up for what waits, and for what copies much.
#pragma once

#include <pybind11/pybind11.h>

#include "client.h"

namespace datasystem::python {

namespace py = pybind11;

// Adds them to the class of Client objects.
void BindHotCalls(py::handle type);

// For an event loop: the list that get() or get_read_only_buffers() would return, or None when the worker would have to
// be asked, or much would have to be copied.
py::object FindCopies(Client& client, const py::list& keys, bool convert_to_str);
py::object FindViews(Client& client, const py::list& keys);
// The same for exist().
py::object FindExisting(Client& client, const py::list& keys);

}  // namespace datasystem::python
