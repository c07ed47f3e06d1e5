#include "kv_client.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "buffer.h"
#include "client/pending_get.h"
#include "datasystem/kv_client.h"
#include "gil.h"
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
    auto found = Finish();
    return CopyOut(found, convert_to_str);
  }
  py::list FinishViewing() {
    auto found = Finish();
    return WrapBuffers(found);
  }

 private:
  std::vector<Optional<ReadOnlyBuffer>> Finish() {
    std::vector<Optional<ReadOnlyBuffer>> found;
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
    const ValueViews views(values);
    std::vector<std::string> failed;
    ThrowIfError(Call([&] {
      return client_->MSet(names, views.bytes, failed,
                           {.writeMode = mode, .ttlSecond = ttl_second, .existence = existence});
    }));
    return failed;
  }

  void MSetTx(const py::list& keys, const py::list& values, WriteMode mode, uint32_t ttl_second,
              ExistenceOpt existence) {
    const std::vector<std::string> names = KeysOf(keys);
    const ValueViews views(values);
    ThrowIfError(Call([&] {
      return client_->MSetTx(names, views.bytes,
                             {.writeMode = mode, .ttlSecond = ttl_second, .existence = existence});
    }));
  }

  py::list Get(const py::list& keys, bool convert_to_str, int32_t sub_timeout_ms) {
    auto found = Fetch<ReadOnlyBuffer>(keys, sub_timeout_ms);
    return CopyOut(found, convert_to_str);
  }

  py::list GetReadOnlyBuffers(const py::list& keys, int32_t timeout_ms) {
    auto found = Fetch<ReadOnlyBuffer>(keys, timeout_ms);
    return WrapBuffers(found);
  }

  // None: not all of them are on this node.
  py::object FindCopies(const py::list& keys, bool convert_to_str) {
    auto found = FindAll(keys);
    return found.empty() ? py::object(py::none()) : CopyOut(found, convert_to_str);
  }

  py::object FindViews(const py::list& keys) {
    auto found = FindAll(keys);
    return found.empty() ? py::object(py::none()) : WrapBuffers(found);
  }

  std::unique_ptr<PendingGetHandle> StartGet(const py::list& keys, int32_t sub_timeout_ms) {
    std::vector<std::string> names = KeysOf(keys);
    std::unique_ptr<client::PendingGet> pending;
    ThrowIfError(Call([&] {
      return client::PendingGet::Start(*client_, std::move(names), sub_timeout_ms, pending);
    }));
    return std::make_unique<PendingGetHandle>(std::move(pending));
  }

  // Memory for all of them, or an error.
  py::list MCreate(const py::list& keys, const py::list& sizes, WriteMode mode, uint32_t ttl_second) {
    const std::vector<std::string> names = KeysOf(keys);
    std::vector<uint64_t> lengths;
    for (size_t i = 0; i < sizes.size(); ++i) {
      lengths.push_back(static_cast<uint64_t>(
          IntegerOf(sizes[i], "sizes[" + std::to_string(i) + "]", 1, INT64_MAX)));
    }
    std::vector<std::shared_ptr<Buffer>> buffers;
    const SetParam param{.writeMode = mode, .ttlSecond = ttl_second};
    ThrowIfError(Call([&] { return client_->MCreate(names, lengths, param, buffers); }));
    py::list result(buffers.size());
    for (size_t i = 0; i < buffers.size(); ++i) {
      result[i] = py::cast(std::make_unique<BufferHandle>(std::move(buffers[i])));
    }
    return result;
  }

  // Publishes as many as it can; the error is that of the first that failed.
  void MSetBuffer(const py::list& buffers) {
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
    ThrowIfError(Call([&] { return client_->MSet(spent); }));
  }

  py::list GetBuffers(const py::list& keys, int32_t timeout_ms) {
    auto found = Fetch<Buffer>(keys, timeout_ms);
    return WrapBuffers(found);
  }

  // Of ReadParam tuples.
  py::list Read(const py::list& params) {
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
    ThrowIfError(Call([&] { return client_->Read(slices, found); }));
    return WrapBuffers(found);
  }

  std::vector<std::string> Expire(const py::list& keys, uint32_t ttl_second) {
    const std::vector<std::string> names = KeysOf(keys);
    std::vector<std::string> failed;
    ThrowIfError(Call([&] { return client_->Expire(names, ttl_second, failed); }));
    return failed;
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

  // Costs no message and no wait, so it may hold the GIL.
  std::vector<Optional<ReadOnlyBuffer>> FindAll(const py::list& keys) {
    const std::vector<std::string> names = KeysOf(keys);
    std::vector<Optional<ReadOnlyBuffer>> found;
    std::shared_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) client::PendingGet::FindAll(*client_, names, found);
    return found;
  }

  template <typename View>
  std::vector<Optional<View>> Fetch(const py::list& keys, int32_t sub_timeout_ms) {
    const std::vector<std::string> names = KeysOf(keys);
    std::vector<Optional<View>> found;
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
  py::enum_<CacheType>(module, "CacheType", "Where values are kept. This version keeps them in memory only.")
      .value("MEMEORY", CacheType::MEMORY, "memory; the name that programs use")
      .value("MEMORY", CacheType::MEMORY, "memory")
      .value("DISK", CacheType::DISK, "disk");
  py::class_<PendingGetHandle>(module, "PendingGet")
      .def("fileno", &PendingGetHandle::fileno)
      .def("remaining_ms", &PendingGetHandle::remaining_ms)
      .def("finish_copying", &PendingGetHandle::FinishCopying)
      .def("finish_viewing", &PendingGetHandle::FinishViewing);
  py::class_<Client>(module, "KVClient")
      .def(py::init(&MakeClient))
      .def("init", &Client::Init)
      .def("close", &Client::Close)
      .def("set", &Client::Set)
      .def("set_value", &Client::SetValue)
      .def("mset", &Client::MSet)
      .def("msettx", &Client::MSetTx)
      .def("read", &Client::Read)
      .def("expire", &Client::Expire)
      .def("get", &Client::Get)
      .def("find_copies", &Client::FindCopies)
      .def("find_views", &Client::FindViews)
      .def("start_get", &Client::StartGet)
      .def("mcreate", &Client::MCreate)
      .def("mset_buffer", &Client::MSetBuffer)
      .def("get_buffers", &Client::GetBuffers)
      .def("get_read_only_buffers", &Client::GetReadOnlyBuffers)
      .def("delete", &Client::Delete)
      .def("exist", &Client::Exist)
      .def("generate_key", &Client::GenerateKey)
      .def("health_check", &Client::HealthCheck);
}

}  // namespace datasystem::python
