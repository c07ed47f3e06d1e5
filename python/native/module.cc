// yr.datasystem.lib.libds_client_py: the C++ SDK for Python. Users see the classes of yr/datasystem/*.py,
// which check argument types and carry the documentation.
#include <pybind11/pybind11.h>

#include <chrono>
#include <string>
#include <utility>

#include "buffer.h"
#include "client/worker_report.h"
#include "datasystem/context/context.h"
#include "datasystem/utils/status.h"
#include "enums.h"
#include "gil.h"
#include "kv_client.h"
#include "read_only_buffer.h"
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

std::string WorkerReport(const std::string& host, int32_t port, int64_t timeout_ms) {
  Result<std::string> report = [&] {
    GilRelease without_gil;
    return client::FetchWorkerReport(host, port, std::chrono::milliseconds(timeout_ms));
  }();
  ThrowIfError(report.status());
  return *std::move(report);
}

}  // namespace

PYBIND11_MODULE(libds_client_py, module) {
  GilRelease::Prepare();
  py::module_::import("atexit").attr("register")(py::cpp_function(&GilRelease::EndCalls));
  BindEnums(module);
  BindStatus(module);
  BindReadOnlyBuffer(module);
  BindBuffer(module);
  BindKVClient(module);
  module.def("set_trace_id",
             [](const std::string& trace_id) { ThrowIfError(Context::SetTraceId(trace_id)); });
  module.def("worker_report", &WorkerReport, "The worker's status as a JSON document (docs/status.md).");
}

}  // namespace datasystem::python
