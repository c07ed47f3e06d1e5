#include "hot_calls.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "c_api.h"
#include "client/copy.h"
#include "client/local_reads.h"
#include "enums.h"
#include "gil.h"
#include "read_only_buffer.h"
#include "results.h"

namespace datasystem::python {
namespace {

// More keys are looked up without the GIL: they take as long as giving it up does.
constexpr size_t kKeysWithGilMax = 64;
// Beyond, the kernel may have a while to map pages: see LocalReads::Touch().
constexpr size_t kTouchWithGilMax = 1 << 20;
// What an event loop copies itself.
constexpr size_t kCopyOnLoopMax = 256 * 1024;

// Quicker than pybind11's cast, which looks the class up in a table: methods check that `self` is of this class.
Client& ClientOf(PyObject* self) {
  auto* const instance = reinterpret_cast<py::detail::instance*>(self);
  void* const client = instance->get_value_and_holder().value_ptr();
  if (client == nullptr) throw py::type_error("KVClient.__init__() has not been called");
  return *static_cast<Client*>(client);
}

py::list KeyList(PyObject* keys) {
  if (!PyList_CheckExact(keys)) ThrowInvalidType("keys", "list");
  return py::reinterpret_borrow<py::list>(keys);
}

int32_t WaitMs(PyObject* value, const char* name) {
  return value == nullptr ? 0 : static_cast<int32_t>(IntegerOf(value, name, 0, INT32_MAX));
}

// The values of some keys, pinned where they are.
class Found {
 public:
  explicit Found(KVClient& client) : reads_(client) {}

  // False: the worker has to be asked, or the keys are too many for here, or one is no key.
  bool All(const py::list& keys) {
    if (keys.size() > kKeysWithGilMax) return false;
    for (; count_ < keys.size(); ++count_) {
      PyObject* const key = PyList_GET_ITEM(keys.ptr(), static_cast<Py_ssize_t>(count_));
      if (!PyUnicode_CheckExact(key)) return false;
      auto value = reads_.Find(TextOf(key, "key"));
      if (!value) return false;
      total_ += value->bytes.size();
      values_[count_] = std::move(*value);
    }
    return count_ > 0;
  }

  size_t count() const { return count_; }
  size_t total_bytes() const { return total_; }
  std::span<const std::byte> bytes(size_t i) const { return values_[i].bytes; }

  // Before the bytes are used.
  void Touch() {
    for (size_t i = 0; i < count_; ++i) reads_.Touch(values_[i].bytes);
  }
  // Once for each.
  ReadOnlyBuffer TakeView(size_t i) { return reads_.ToView(std::move(values_[i])); }

 private:
  client::LocalReads reads_;  // outlives what it found
  std::array<shm::PinnedValue, kKeysWithGilMax> values_;
  size_t count_ = 0;
  size_t total_ = 0;
};

py::object Decoded(std::span<const std::byte> bytes) {
  auto text = py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(reinterpret_cast<const char*>(bytes.data()),
                                                                     static_cast<Py_ssize_t>(bytes.size()), "strict"));
  if (!text) throw py::error_already_set();
  return text;
}

py::list CopiesOf(Found& found, bool convert_to_str) {
  py::list result(found.count());
  const auto put = [&](size_t i, py::object value) {
    PyList_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i), value.release().ptr());
  };
  if (convert_to_str) {
    found.Touch();
    for (size_t i = 0; i < found.count(); ++i) put(i, Decoded(found.bytes(i)));
    return result;
  }
  std::array<std::span<std::byte>, kKeysWithGilMax> copies;
  for (size_t i = 0; i < found.count(); ++i) {
    const auto size = static_cast<Py_ssize_t>(found.bytes(i).size());
    auto bytes = py::reinterpret_steal<py::object>(PyBytes_FromStringAndSize(nullptr, size));
    if (!bytes) throw py::error_already_set();
    copies[i] = {reinterpret_cast<std::byte*>(PyBytes_AS_STRING(bytes.ptr())), found.bytes(i).size()};
    put(i, std::move(bytes));
  }
  const auto copy = [&] {
    found.Touch();
    for (size_t i = 0; i < found.count(); ++i) client::Copy(copies[i], found.bytes(i));
  };
  if (found.total_bytes() <= kCopyWithGilMax) {
    copy();
  } else {
    GilRelease without_gil;
    copy();
  }
  return result;
}

py::list ViewsOf(Found& found) {
  if (found.total_bytes() <= kTouchWithGilMax) {
    found.Touch();
  } else {
    GilRelease without_gil;
    found.Touch();
  }
  py::list result(found.count());
  for (size_t i = 0; i < found.count(); ++i) {
    PyObject* const view = NewReadOnlyBuffer(found.TakeView(i), Release::kLocal);
    if (view == nullptr) throw py::error_already_set();
    PyList_SET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i), view);
  }
  return result;
}

std::vector<Optional<ReadOnlyBuffer>> Fetch(Client& client, const py::list& keys, int32_t wait_ms) {
  const std::vector<std::string> names = KeysOf(keys);
  std::vector<Optional<ReadOnlyBuffer>> found;
  ThrowIfError(client.Call([&] { return client.sdk().Get(names, found, wait_ms); }));
  return found;
}

constexpr Parameters<3> kGet{"get", {"keys", "convert_to_str", "sub_timeout_ms"}, 1};

PyObject* Get(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return Guarded([&] {
    Client& client = ClientOf(self);
    const auto [keys, convert_to_str, sub_timeout_ms] = kGet.Bind(args, count, names);
    const py::list list = KeyList(keys);
    const bool as_text = convert_to_str != nullptr && BoolOf(convert_to_str, "convert_to_str");
    const int32_t wait_ms = WaitMs(sub_timeout_ms, "sub_timeout_ms");
    {
      Found found(client.sdk());
      if (found.All(list)) return CopiesOf(found, as_text).release().ptr();
    }
    auto fetched = Fetch(client, list, wait_ms);
    return CopyOut(fetched, as_text).release().ptr();
  });
}

constexpr Parameters<2> kGetReadOnlyBuffers{"get_read_only_buffers", {"keys", "timeout_ms"}, 1};

PyObject* GetReadOnlyBuffers(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return Guarded([&] {
    Client& client = ClientOf(self);
    const auto [keys, timeout_ms] = kGetReadOnlyBuffers.Bind(args, count, names);
    const py::list list = KeyList(keys);
    const int32_t wait_ms = WaitMs(timeout_ms, "timeout_ms");
    {
      Found found(client.sdk());
      if (found.All(list)) return ViewsOf(found).release().ptr();
    }
    auto fetched = Fetch(client, list, wait_ms);
    return WrapBuffers(fetched).release().ptr();
  });
}

// All of few keys are here.
bool AllExist(KVClient& client, const py::list& keys) {
  if (keys.size() > kKeysWithGilMax || keys.empty()) return false;
  const client::LocalReads reads(client);
  for (size_t i = 0; i < keys.size(); ++i) {
    PyObject* const key = PyList_GET_ITEM(keys.ptr(), static_cast<Py_ssize_t>(i));
    if (!PyUnicode_CheckExact(key) || !reads.Has(TextOf(key, "key"))) return false;
  }
  return true;
}

py::list Truths(size_t count) {
  py::list result(count);
  for (size_t i = 0; i < count; ++i) result[i] = py::bool_(true);
  return result;
}

constexpr Parameters<1> kExist{"exist", {"keys"}, 1};

PyObject* Exist(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return Guarded([&] {
    Client& client = ClientOf(self);
    const py::list list = KeyList(kExist.Bind(args, count, names)[0]);
    if (AllExist(client.sdk(), list)) return Truths(list.size()).release().ptr();
    const std::vector<std::string> keys = KeysOf(list);
    std::vector<bool> exists;
    ThrowIfError(client.Call([&] { return client.sdk().Exist(keys, exists); }));
    py::list result(exists.size());
    for (size_t i = 0; i < exists.size(); ++i) result[i] = py::bool_(exists[i]);
    return result.release().ptr();
  });
}

constexpr Parameters<4> kSet{"set", {"key", "val", "write_mode", "ttl_second"}, 2};

PyObject* Set(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return Guarded([&] {
    Client& client = ClientOf(self);
    const auto [key, val, write_mode, ttl_second] = kSet.Bind(args, count, names);
    const std::string name(TextOf(key, "key"));
    SetParam param;
    if (write_mode != nullptr) param.writeMode = WriteModeOf(write_mode);
    if (ttl_second != nullptr) {
      param.ttlSecond = static_cast<uint32_t>(IntegerOf(ttl_second, "ttl_second", 0, UINT32_MAX));
    }
    const ValueView value(val, "val");
    ThrowIfError(client.Call([&] { return client.sdk().Set(name, value.bytes(), param); }));
    return py::none().release().ptr();
  });
}

PyMethodDef methods[] = {
    FastMethod("get", Get,
               "get($self, /, keys, convert_to_str=False, sub_timeout_ms=0)\n--\n\n"
               "A private copy of each value in the order of `keys`; None for a key that was not obtained.\n\n"
               "convert_to_str: values are UTF-8 text, returned as str.\n"
               "sub_timeout_ms: how long to wait for keys that do not exist yet.\n"
               "RuntimeError if no key was obtained."),
    FastMethod("get_read_only_buffers", GetReadOnlyBuffers,
               "get_read_only_buffers($self, /, keys, timeout_ms=0)\n--\n\n"
               "As get(), but views of the values where they are, without a copy."),
    FastMethod("exist", Exist,
               "exist($self, /, keys)\n--\n\n"
               "Which of the keys exist, in their order."),
    FastMethod("set", Set,
               "set($self, /, key, val, write_mode=yr.datasystem.WriteMode.NONE_L2_CACHE, ttl_second=0)\n--\n\n"
               "Creates or overwrites `key`; every get in the cluster that starts after sees `val`.\n\n"
               "A str is stored as UTF-8. ttl_second: seconds until the key is deleted, 0 for never."),
};

}  // namespace

void BindHotCalls(py::handle type) {
  for (PyMethodDef& method : methods) {
    const auto descriptor = py::reinterpret_steal<py::object>(
        PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), &method));
    if (!descriptor) throw py::error_already_set();
    type.attr(method.ml_name) = descriptor;
  }
}

py::object FindCopies(Client& client, const py::list& keys, bool convert_to_str) {
  Found found(client.sdk());
  if (!found.All(keys) || found.total_bytes() > kCopyOnLoopMax) return py::none();
  return CopiesOf(found, convert_to_str);
}

py::object FindViews(Client& client, const py::list& keys) {
  Found found(client.sdk());
  return found.All(keys) ? py::object(ViewsOf(found)) : py::none();
}

py::object FindExisting(Client& client, const py::list& keys) {
  return AllExist(client.sdk(), keys) ? py::object(Truths(keys.size())) : py::none();
}

}  // namespace datasystem::python
