#include "kv_client.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "datasystem/kv_client.h"
#include "gil.h"
#include "results.h"

namespace datasystem::python {
namespace {

// The SDK's client for Python: no call holds the GIL while it waits or copies.
//
// Python threads may close a client that others use; the SDK forbids that. So calls share `mutex_` and
// Close() waits for them. No call waits for the mutex: in a forked child it may be locked for ever.
class Client {
 public:
  explicit Client(const ConnectOptions& options) : client_(std::make_unique<KVClient>(options)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    GilRelease without_gil;
    client_.reset();
  }

  void Init() {
    ThrowIfError(Call([&] { return client_->Init(); }));
  }

  void Close() {
    Status status;
    {
      GilRelease without_gil;
      std::unique_lock lock(mutex_, std::defer_lock);
      if (::getpid() == process_) lock.lock();
      status = client_->ShutDown();
    }
    ThrowIfError(status);
  }

  void Set(const std::string& key, py::handle value, WriteMode mode, uint32_t ttl_second) {
    ValueView view(value, "val");
    ThrowIfError(Call([&] {
      return client_->Set(key, view.bytes(), {.writeMode = mode, .ttlSecond = ttl_second});
    }));
  }

  // "" on failure.
  std::string SetValue(py::handle value, WriteMode mode, uint32_t ttl_second) {
    ValueView view(value, "val");
    std::string key;
    Status status = Call([&] {
      key = client_->Set(view.bytes(), {.writeMode = mode, .ttlSecond = ttl_second});
      return Status::OK();
    });
    return status.IsOk() ? key : std::string();
  }

  std::vector<std::string> MSet(const py::list& keys, const py::list& values, WriteMode mode,
                                uint32_t ttl_second, ExistenceOpt existence) {
    const std::vector<std::string> names = KeysOf(keys);
    std::vector<ValueView> views;
    std::vector<StringView> bytes;
    views.reserve(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      views.emplace_back(PyList_GET_ITEM(values.ptr(), i), "vals[" + std::to_string(i) + "]");
      bytes.push_back(views.back().bytes());
    }
    std::vector<std::string> failed;
    ThrowIfError(Call([&] {
      return client_->MSet(names, bytes, failed,
                           {.writeMode = mode, .ttlSecond = ttl_second, .existence = existence});
    }));
    return failed;
  }

  py::list Get(const py::list& keys, bool convert_to_str, int32_t sub_timeout_ms) {
    auto found = Fetch(keys, sub_timeout_ms);
    return CopyOut(found, convert_to_str);
  }

  py::list GetReadOnlyBuffers(const py::list& keys, int32_t timeout_ms) {
    auto found = Fetch(keys, timeout_ms);
    return WrapBuffers(found);
  }

  std::vector<std::string> Delete(const py::list& keys) {
    const std::vector<std::string> names = KeysOf(keys);
    std::vector<std::string> failed;
    ThrowIfError(Call([&] { return client_->Del(names, failed); }));
    return failed;
  }

  std::vector<bool> Exist(const py::list& keys) {
    const std::vector<std::string> names = KeysOf(keys);
    std::vector<bool> exists;
    ThrowIfError(Call([&] { return client_->Exist(names, exists); }));
    return exists;
  }

  std::string GenerateKey(const std::string& prefix) {
    std::string key;
    ThrowIfError(Call([&] { return client_->GenerateKey(prefix, key); }));
    return key;
  }

  Status HealthCheck() {
    return Call([&] { return client_->HealthCheck(); });
  }

 private:
  // Runs `function` without the GIL, unless the client is being closed.
  template <typename Function>
  Status Call(Function function) {
    GilRelease without_gil;
    std::shared_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return Status(K_NOT_READY, "the client is being closed by another thread");
    return function();
  }

  std::vector<Optional<ReadOnlyBuffer>> Fetch(const py::list& keys, int32_t sub_timeout_ms) {
    const std::vector<std::string> names = KeysOf(keys);
    std::vector<Optional<ReadOnlyBuffer>> found;
    ThrowIfError(Call([&] { return client_->Get(names, found, sub_timeout_ms); }));
    return found;
  }

  const pid_t process_ = ::getpid();
  std::shared_mutex mutex_;
  std::unique_ptr<KVClient> client_;
};

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
  py::enum_<WriteMode>(module, "WriteMode", "Where a value is kept, and whether it may be dropped.")
      .value("NONE_L2_CACHE", WriteMode::NONE_L2_CACHE, "memory only; never dropped under pressure")
      .value("WRITE_THROUGH_L2_CACHE", WriteMode::WRITE_THROUGH_L2_CACHE,
             "in the second-level store before the call returns")
      .value("WRITE_BACK_L2_CACHE", WriteMode::WRITE_BACK_L2_CACHE,
             "in the second-level store some time after")
      .value("NONE_L2_CACHE_EVICT", WriteMode::NONE_L2_CACHE_EVICT,
             "memory only; may be dropped under pressure")
      .value("WRITE_BACK_L2_CACHE_EVICT", WriteMode::WRITE_BACK_L2_CACHE_EVICT,
             "as WRITE_BACK_L2_CACHE; may be dropped from memory once it is stored");
  py::enum_<ExistenceOpt>(module, "ExistenceOpt", "Whether a set may overwrite.")
      .value("NONE", ExistenceOpt::NONE, "create or overwrite")
      .value("NX", ExistenceOpt::NX, "only if the key does not exist");
  py::class_<Client>(module, "KVClient")
      .def(py::init(&MakeClient))
      .def("init", &Client::Init)
      .def("close", &Client::Close)
      .def("set", &Client::Set)
      .def("set_value", &Client::SetValue)
      .def("mset", &Client::MSet)
      .def("get", &Client::Get)
      .def("get_read_only_buffers", &Client::GetReadOnlyBuffers)
      .def("delete", &Client::Delete)
      .def("exist", &Client::Exist)
      .def("generate_key", &Client::GenerateKey)
      .def("health_check", &Client::HealthCheck);
}

}  // namespace datasystem::python
