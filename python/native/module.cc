// yr.datasystem.lib.libds_client_py: the C++ SDK for Python. Users see the classes of yr/datasystem/*.py,
// which check argument types and carry the documentation.
#include <pybind11/pybind11.h>

#include "client/worker_report.h"
#include "datasystem/context/context.h"
#include "datasystem/utils/status.h"
#include "kv_client.h"
#include "results.h"

namespace datasystem::python {
namespace {

void BindStatus(py::module_& module) {
  py::class_<Status>(module, "Status", "The outcome of a call that does not raise.")
      .def("is_ok", &Status::IsOk)
      .def("is_error", &Status::IsError)
      .def("to_string", &Status::ToString, "'code: [<what kind>], msg: [<what happened>]'")
      .def("__str__", &Status::ToString)
      .def("__repr__", [](const Status& status) { return "<Status " + status.ToString() + ">"; });
}

}  // namespace

PYBIND11_MODULE(libds_client_py, module) {
  BindStatus(module);
  BindReadOnlyBuffer(module);
  BindKVClient(module);
  module.def("set_trace_id",
             [](const std::string& trace_id) { ThrowIfError(Context::SetTraceId(trace_id)); });
}

}  // namespace datasystem::python
