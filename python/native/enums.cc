#include "enums.h"

#include <initializer_list>
#include <utility>

#include "arguments.h"

namespace datasystem::python {
namespace {

PyObject* write_mode_type = nullptr;  // set once, when the module is loaded

py::object AddEnum(py::module_& module, const char* name, const char* doc,
                   std::initializer_list<std::pair<const char*, int>> members) {
  py::list pairs;
  for (const auto& [member, value] : members) pairs.append(py::make_tuple(member, value));
  py::object type = py::module_::import("enum").attr("IntEnum")(name, pairs, py::arg("module") = module.attr("__name__"));
  type.attr("__doc__") = doc;
  module.attr(name) = type;
  return type;
}

}  // namespace

WriteMode WriteModeOf(py::handle value) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(value.ptr())) != write_mode_type) ThrowInvalidType("write_mode", "WriteMode");
  return static_cast<WriteMode>(PyLong_AsLong(value.ptr()));
}

void BindEnums(py::module_& module) {
  write_mode_type = AddEnum(module, "WriteMode",
                            "Where a value is kept, and whether it may be dropped.\n\n"
                            "NONE_L2_CACHE: memory only; never dropped under pressure.\n"
                            "WRITE_THROUGH_L2_CACHE: in the second-level store before the call returns.\n"
                            "WRITE_BACK_L2_CACHE: in the second-level store some time after.\n"
                            "NONE_L2_CACHE_EVICT: memory only; may be dropped under pressure.\n"
                            "WRITE_BACK_L2_CACHE_EVICT: as WRITE_BACK_L2_CACHE; may be dropped once it is stored.",
                            {{"NONE_L2_CACHE", static_cast<int>(WriteMode::NONE_L2_CACHE)},
                             {"WRITE_THROUGH_L2_CACHE", static_cast<int>(WriteMode::WRITE_THROUGH_L2_CACHE)},
                             {"WRITE_BACK_L2_CACHE", static_cast<int>(WriteMode::WRITE_BACK_L2_CACHE)},
                             {"NONE_L2_CACHE_EVICT", static_cast<int>(WriteMode::NONE_L2_CACHE_EVICT)},
                             {"WRITE_BACK_L2_CACHE_EVICT", static_cast<int>(WriteMode::WRITE_BACK_L2_CACHE_EVICT)}})
                        .release()
                        .ptr();
  AddEnum(module, "ExistenceOpt",
          "Whether a set may overwrite.\n\nNONE: create or overwrite.\nNX: only if the key does not exist.",
          {{"NONE", static_cast<int>(ExistenceOpt::NONE)}, {"NX", static_cast<int>(ExistenceOpt::NX)}});
  AddEnum(module, "CacheType",
          "Where values are kept. This version keeps them in memory only.\n\n"
          "MEMEORY: memory; the name that programs use. MEMORY is the same.",
          {{"MEMEORY", static_cast<int>(CacheType::MEMORY)},
           {"MEMORY", static_cast<int>(CacheType::MEMORY)},
           {"DISK", static_cast<int>(CacheType::DISK)}});
}

}  // namespace datasystem::python
