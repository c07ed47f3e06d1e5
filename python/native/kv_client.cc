#include "kv_client.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "buffer.h"
#include "client.h"
#include "client/pending_get.h"
#include "enums.h"
#include "gil.h"
#include "hot_calls.h"
#include "results.h"

namespace datasystem::python {
namespace {

// The values of a list, read in place.
struct ValueViews {
  explicit ValueViews(const py::list& values) {
    views.reserve(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      views.emplace_back(PyList_GET_ITEM(values.ptr(), static_cast<Py_ssize_t>(i)),
                         "vals[" + std::to_string(i) + "]");
      bytes.push_back(views.back().bytes());
    }
  }
  std::vector<ValueView> views;
  std::vector<StringView> bytes;
};

// A get under way, for an event loop: see client/pending_get.h.
class PendingGetHandle {
 public:
  explicit PendingGetHandle(std::unique_ptr<client::PendingGet> pending) : pending_(std::move(pending)) {}
  PendingGetHandle(const PendingGetHandle&) = delete;
  PendingGetHandle& operator=(const PendingGetHandle&) = delete;
  ~PendingGetHandle() {
    GilRelease without_gil;
    pending_.reset();
  }

  int fileno() const { return pending_->fd(); }
  int64_t remaining_ms() const { return pending_->remaining_ms(); }
  py::list FinishCopying(bool convert_to_str) {
    auto found = Finish<ReadOnlyBuffer>();
    return CopyOut(found, convert_to_str);
  }
  py::list FinishViewing() {
    auto found = Finish<ReadOnlyBuffer>();
    return WrapBuffers(found);
  }
  py::list FinishBuffers() {
    auto found = Finish<Buffer>();
    return WrapBuffers(found);
  }

 private:
  template <typename View>
  std::vector<Optional<View>> Finish() {
    std::vector<Optional<View>> found;
    Status status;
    {
      GilRelease without_gil;
      status = pending_->Finish(found);
    }
    ThrowIfError(status);
    return found;
  }

  std::unique_ptr<client::PendingGet> pending_;
};

SetParam ParamOf(py::handle mode, uint32_t ttl_second, int existence = 0) {
  return {.writeMode = WriteModeOf(mode),
          .ttlSecond = ttl_second,
          .existence = static_cast<ExistenceOpt>(existence)};
}

// "" on failure.
std::string SetValue(Client& client, py::handle value, py::handle mode, uint32_t ttl_second) {
  const ValueView view(value, "val");
  const SetParam param = ParamOf(mode, ttl_second);
  std::string key;
  const Status status = client.Call([&] {
    key = client.sdk().Set(view.bytes(), param);
    return Status::OK();
  });
  return status.IsOk() ? key : std::string();
}

std::vector<std::string> MSet(Client& client, const py::list& keys, const py::list& values, py::handle mode,
                              uint32_t ttl_second, int existence) {
  const std::vector<std::string> names = KeysOf(keys);
  const ValueViews views(values);
  const SetParam param = ParamOf(mode, ttl_second, existence);
  std::vector<std::string> failed;
  ThrowIfError(client.Call([&] { return client.sdk().MSet(names, views.bytes, failed, param); }));
  return failed;
}

void MSetTx(Client& client, const py::list& keys, const py::list& values, py::handle mode, uint32_t ttl_second,
            int existence) {
  const std::vector<std::string> names = KeysOf(keys);
  const ValueViews views(values);
  const SetParam param = ParamOf(mode, ttl_second, existence);
  ThrowIfError(client.Call([&] { return client.sdk().MSetTx(names, views.bytes, param); }));
}

std::unique_ptr<PendingGetHandle> StartGet(Client& client, const py::list& keys, int32_t sub_timeout_ms) {
  std::vector<std::string> names = KeysOf(keys);
  std::unique_ptr<client::PendingGet> pending;
  ThrowIfError(client.Call([&] {
    return client::PendingGet::Start(client.sdk(), std::move(names), sub_timeout_ms, pending);
  }));
  return std::make_unique<PendingGetHandle>(std::move(pending));
}

// Memory for all of them, or an error.
py::list MCreate(Client& client, const py::list& keys, const py::list& sizes, py::handle mode,
                 uint32_t ttl_second) {
  const std::vector<std::string> names = KeysOf(keys);
  std::vector<uint64_t> lengths;
  for (size_t i = 0; i < sizes.size(); ++i) {
    lengths.push_back(
        static_cast<uint64_t>(IntegerOf(sizes[i], "sizes[" + std::to_string(i) + "]", 1, INT64_MAX)));
  }
  std::vector<std::shared_ptr<Buffer>> buffers;
  const SetParam param = ParamOf(mode, ttl_second);
  ThrowIfError(client.Call([&] { return client.sdk().MCreate(names, lengths, param, buffers); }));
  py::list result(buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    result[i] = py::cast(std::make_unique<BufferHandle>(std::move(buffers[i])));
  }
  return result;
}

// Publishes as many as it can; the error is that of the first that failed.
void MSetBuffer(Client& client, const py::list& buffers) {
  // Their own references: another thread may change the list meanwhile.
  std::vector<py::object> owners;
  for (size_t i = 0; i < buffers.size(); ++i) {
    py::object buffer = buffers[i];
    if (!py::isinstance<BufferHandle>(buffer)) {
      ThrowInvalidType("buffers[" + std::to_string(i) + "]", "Buffer");
    }
    owners.push_back(std::move(buffer));
  }
  struct Publishing {
    std::vector<BufferHandle*> handles;
    ~Publishing() {
      for (BufferHandle* handle : handles) handle->EndPublish();
    }
  } publishing;
  for (const py::object& owner : owners) {
    auto& handle = owner.cast<BufferHandle&>();
    handle.BeginPublish();
    publishing.handles.push_back(&handle);
  }
  std::vector<std::shared_ptr<Buffer>> spent;
  for (BufferHandle* handle : publishing.handles) spent.push_back(handle->buffer());
  ThrowIfError(client.Call([&] { return client.sdk().MSet(spent); }));
}

py::list GetBuffers(Client& client, const py::list& keys, int32_t timeout_ms) {
  const std::vector<std::string> names = KeysOf(keys);
  std::vector<Optional<Buffer>> found;
  ThrowIfError(client.Call([&] { return client.sdk().Get(names, found, timeout_ms); }));
  return WrapBuffers(found);
}

// Of ReadParam tuples.
py::list Read(Client& client, const py::list& params) {
  std::vector<ReadParam> slices;
  for (size_t i = 0; i < params.size(); ++i) {
    const std::string name = "read_params[" + std::to_string(i) + "]";
    const py::handle item = PyList_GET_ITEM(params.ptr(), static_cast<Py_ssize_t>(i));
    if (!py::isinstance<py::tuple>(item) || py::len(item) != 3) ThrowInvalidType(name, "ReadParam");
    const auto param = py::reinterpret_borrow<py::tuple>(item);
    py::list key;
    key.append(param[0]);
    slices.push_back({.key = KeysOf(key).front(),
                      .offset = UnsignedOf(param[1], name + ".offset"),
                      .size = UnsignedOf(param[2], name + ".size")});
  }
  std::vector<Optional<ReadOnlyBuffer>> found;
  ThrowIfError(client.Call([&] { return client.sdk().Read(slices, found); }));
  return WrapBuffers(found);
}

std::vector<std::string> Expire(Client& client, const py::list& keys, uint32_t ttl_second) {
  const std::vector<std::string> names = KeysOf(keys);
  std::vector<std::string> failed;
  ThrowIfError(client.Call([&] { return client.sdk().Expire(names, ttl_second, failed); }));
  return failed;
}

std::vector<std::string> Delete(Client& client, const py::list& keys) {
  const std::vector<std::string> names = KeysOf(keys);
  std::vector<std::string> failed;
  ThrowIfError(client.Call([&] { return client.sdk().Del(names, failed); }));
  return failed;
}

std::string GenerateKey(Client& client, const std::string& prefix) {
  std::string key;
  ThrowIfError(client.Call([&] { return client.sdk().GenerateKey(prefix, key); }));
  return key;
}

std::unique_ptr<Client> MakeClient(std::string host, int32_t port, int32_t connect_timeout_ms,
                                   const std::string& token, std::string client_public_key,
                                   const std::string& client_private_key, std::string server_public_key,
                                   std::string access_key, const std::string& secret_key,
                                   std::string tenant_id, bool enable_cross_node_connection,
                                   int32_t request_timeout_ms, bool enable_exclusive_connection) {
  return std::make_unique<Client>(ConnectOptions{
      .host = std::move(host),
      .port = port,
      .connectTimeoutMs = connect_timeout_ms,
      .requestTimeoutMs = request_timeout_ms,
      .token = token,
      .clientPublicKey = std::move(client_public_key),
      .clientPrivateKey = client_private_key,
      .serverPublicKey = std::move(server_public_key),
      .accessKey = std::move(access_key),
      .secretKey = secret_key,
      .tenantId = std::move(tenant_id),
      .enableCrossNodeConnection = enable_cross_node_connection,
      .enableExclusiveConnection = enable_exclusive_connection,
  });
}

}  // namespace

void BindKVClient(py::module_& module) {
  py::class_<PendingGetHandle>(module, "PendingGet")
      .def("fileno", &PendingGetHandle::fileno)
      .def("remaining_ms", &PendingGetHandle::remaining_ms)
      .def("finish_copying", &PendingGetHandle::FinishCopying)
      .def("finish_viewing", &PendingGetHandle::FinishViewing)
      .def("finish_buffers", &PendingGetHandle::FinishBuffers);
  py::class_<Client> type(module, "KVClient");
  type.def(py::init(&MakeClient))
      .def("init", [](Client& client) { ThrowIfError(client.Call([&] { return client.sdk().Init(); })); })
      .def("close", [](Client& client) { ThrowIfError(client.Close()); })
      .def("set_value", &SetValue)
      .def("mset", &MSet)
      .def("msettx", &MSetTx)
      .def("mcreate", &MCreate)
      .def("mset_buffer", &MSetBuffer)
      .def("get_buffers", &GetBuffers)
      .def("read", &Read)
      .def("expire", &Expire)
      .def("delete", &Delete)
      .def("generate_key", &GenerateKey)
      .def("health_check",
           [](Client& client) { return client.Call([&] { return client.sdk().HealthCheck(); }); })
      .def("_find_copies", &FindCopies)
      .def("_find_views", &FindViews)
      .def("_find_existing", &FindExisting)
      .def("_start_get", &StartGet);
  BindHotCalls(type);
}

}  // namespace datasystem::python
