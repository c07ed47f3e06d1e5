#include "datasystem/kv_client.h"

#include <unistd.h>

#include <atomic>
#include <mutex>
#include <unordered_set>

#include "base/random.h"
#include "client/buffer_impl.h"
#include "client/fetch.h"
#include "client/put.h"
#include "client/settings.h"
#include "client/trace_id.h"
#include "session/key_rules.h"

namespace datasystem {

using client::Deadline;
using client::Fetched;
using client::Session;
using client::WithTraceId;
using proto::SessionMessage;
using std::chrono::milliseconds;

namespace {

Result<proto::SetParam> CheckParam(const SetParam& param) {
  if (param.writeMode < WriteMode::NONE_L2_CACHE || param.writeMode > WriteMode::WRITE_BACK_L2_CACHE_EVICT) {
    return errors::Invalid("{} is not a write mode", static_cast<int>(param.writeMode));
  }
  if (param.existence != ExistenceOpt::NONE && param.existence != ExistenceOpt::NX) {
    return errors::Invalid("{} is not an existence option", static_cast<int>(param.existence));
  }
  if (param.cacheType != CacheType::MEMORY) {
    return errors::NotSupported("this version keeps values in memory only: leave cacheType at MEMORY");
  }
  return proto::SetParam{.write_mode = static_cast<uint32_t>(param.writeMode),
                         .ttl_second = param.ttlSecond,
                         .existence = static_cast<uint32_t>(param.existence)};
}

Result<proto::SetParam> CheckParamWithoutNx(const SetParam& param, const char* call) {
  if (param.existence == ExistenceOpt::NX) return errors::Invalid("{} does not support NX", call);
  return CheckParam(param);
}

Status CheckKeys(const std::vector<std::string>& keys) {
  RETURN_IF_ERROR(session::CheckBatchSize(keys.size()));
  for (const std::string& key : keys) RETURN_IF_ERROR(session::CheckKey(key));
  return Status::OK();
}

// OK when at least one succeeded, else the error of the first.
template <typename Items, typename ToStatus>
Status AnySucceeded(const Items& items, ToStatus to_status) {
  for (const auto& item : items) {
    if (to_status(item).IsOk()) return Status::OK();
  }
  return to_status(items.front());
}

Status AnyFetched(const std::vector<Fetched>& items) {
  const Status status = AnySucceeded(items, [](const Fetched& item) { return item.status; });
  // The words that programs look for.
  if (status.GetCode() == K_NOT_FOUND) return errors::NotFound("Cannot get objects from worker");
  return status;
}

std::span<const std::byte> Bytes(StringView view) {
  return std::as_bytes(std::span(view.data(), view.size()));
}

}  // namespace

// Hidden: it would else be exported with the class that it is nested in.
struct [[gnu::visibility("hidden")]] KVClient::Impl {
  ConnectOptions options;
  std::atomic<pid_t> process_id = 0;  // that called Init; 0: none yet
  std::mutex mutex;
  // Under mutex. Null: not initialised.
  std::shared_ptr<Session> session;
  client::Settings settings;

  Status CheckProcess() const {
    const pid_t owner = process_id;
    if (owner == 0 || owner == ::getpid()) return Status::OK();
    return errors::Runtime("this client was created in process {}; create a new KVClient after fork", owner);
  }

  // What a call works with: the session, made anew if the worker has ended the last one.
  struct Context {
    std::shared_ptr<Session> session;
    Deadline deadline;
  };
  Result<Context> Begin(milliseconds extra_time) {
    RETURN_IF_ERROR(CheckProcess());
    std::unique_lock lock(mutex);
    if (session == nullptr) return errors::NotReady("the client is not connected: call Init() first");
    const Deadline deadline(settings.request_timeout + extra_time);
    if (!session->Alive()) {
      ASSIGN_OR_RETURN(session, Session::Open(settings.worker, deadline));
    }
    return Context{session, deadline};
  }

  // Runs one call of the public interface.
  template <typename Work>
  Status Run(Work work, milliseconds extra_time = milliseconds(0)) {
    auto context = Begin(extra_time);
    return WithTraceId(context.ok() ? work(*context) : context.status());
  }

  Status GetStrings(const std::vector<std::string>& keys, std::span<std::string> vals,
                    int32_t sub_timeout_ms);
  // One pointer a key; null where there is no value.
  using Views = std::vector<std::shared_ptr<const ReadOnlyBuffer::Impl>>;
  Status GetViews(const std::vector<std::string>& keys, Views& views, int32_t sub_timeout_ms);
};

namespace {

Status CheckGet(const std::vector<std::string>& keys, int32_t sub_timeout_ms) {
  RETURN_IF_ERROR(CheckKeys(keys));
  if (sub_timeout_ms < 0) return errors::Invalid("subTimeoutMs is {}, expected 0 or more", sub_timeout_ms);
  return Status::OK();
}

Optional<ReadOnlyBuffer> ToReadOnlyBuffer(std::shared_ptr<const ReadOnlyBuffer::Impl> view) {
  if (view == nullptr) return {};
  return ReadOnlyBuffer(std::move(view));
}

Optional<Buffer> ToBuffer(std::shared_ptr<const ReadOnlyBuffer::Impl> view) {
  if (view == nullptr) return {};
  auto impl = std::make_shared<Buffer::Impl>();
  impl->read_only = std::move(view);
  return Buffer(std::move(impl));
}

}  // namespace

KVClient::KVClient(const ConnectOptions& options) : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
}

KVClient::~KVClient() = default;

Status KVClient::Init() {
  const auto init = [this]() -> Status {
    RETURN_IF_ERROR(impl_->CheckProcess());
    std::lock_guard lock(impl_->mutex);
    if (impl_->session != nullptr) return Status::OK();
    ASSIGN_OR_RETURN(impl_->settings, client::MakeSettings(impl_->options));
    ASSIGN_OR_RETURN(impl_->session, Session::Open(impl_->settings.worker,
                                                   Deadline(impl_->settings.connect_timeout)));
    impl_->process_id = ::getpid();
    return Status::OK();
  };
  return WithTraceId(init());
}

Status KVClient::ShutDown() {
  if (const Status status = impl_->CheckProcess(); status.IsError()) return WithTraceId(status);
  std::lock_guard lock(impl_->mutex);
  impl_->session.reset();
  return Status::OK();
}

Status KVClient::Set(const std::string& key, const StringView& val, const SetParam& param) {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    RETURN_IF_ERROR(session::CheckKey(key));
    RETURN_IF_ERROR(session::CheckValueSize(val.size()));
    ASSIGN_OR_RETURN(const proto::SetParam checked, CheckParam(param));
    return client::Put(context.session, key, Bytes(val), checked, context.deadline);
  });
}

std::string KVClient::Set(const StringView& val, const SetParam& param) {
  std::string key = GenerateKey();
  return Set(key, val, param).IsOk() ? key : "";
}

Status KVClient::Create(const std::string& key, uint64_t size, const SetParam& param,
                        std::shared_ptr<Buffer>& buffer) {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    RETURN_IF_ERROR(session::CheckKey(key));
    RETURN_IF_ERROR(session::CheckValueSize(size));
    auto impl = std::make_shared<Buffer::Impl>();
    ASSIGN_OR_RETURN(impl->param, CheckParamWithoutNx(param, "Create"));
    impl->key = key;
    impl->size = size;
    if (context.session->IsInline(size)) {
      impl->own.reset(new (std::nothrow) std::byte[size]);
      if (impl->own == nullptr) return errors::OutOfMemory("this process has no {} bytes for a buffer", size);
    } else {
      ASSIGN_OR_RETURN(impl->reservation, client::Reserve(context.session, size, context.deadline));
    }
    buffer = std::make_shared<Buffer>(std::move(impl));
    return Status::OK();
  });
}

Status KVClient::Set(const std::shared_ptr<Buffer>& buffer) {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    if (buffer == nullptr || buffer->impl() == nullptr) return errors::Invalid("there is no buffer");
    Buffer::Impl& impl = *buffer->impl();
    if (impl.read_only != nullptr) {
      return errors::Invalid("a buffer from Get cannot be published: use Create for a new value");
    }
    const std::span<std::byte> bytes = impl.writable();
    if (impl.spent.exchange(true)) {
      return Status(K_OC_ALREADY_SEALED, "the buffer of key " + impl.key + " has been published before");
    }
    const Status status =
        impl.own != nullptr
            ? client::Put(context.session, impl.key, bytes, impl.param, context.deadline)
            : client::Publish(impl.reservation, impl.key, impl.param, context.deadline);
    if (status.IsError()) {
      impl.spent = false;
    } else {
      impl.own.reset();
    }
    return status;
  });
}

Status KVClient::MSet(const std::vector<std::string>& keys, const std::vector<StringView>& vals,
                      std::vector<std::string>& outFailedKeys, const MSetParam& param) {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    RETURN_IF_ERROR(CheckKeys(keys));
    if (keys.size() != vals.size()) {
      return errors::Invalid("there are {} keys, but {} values", keys.size(), vals.size());
    }
    for (const StringView& val : vals) RETURN_IF_ERROR(session::CheckValueSize(val.size()));
    ASSIGN_OR_RETURN(const proto::SetParam checked, CheckParamWithoutNx(param, "MSet"));
    std::vector<std::string> failed;
    std::vector<Status> outcomes;
    std::unordered_set<StringView> seen;
    for (size_t i = 0; i < keys.size(); ++i) {
      outcomes.push_back(seen.insert(keys[i]).second
                             ? client::Put(context.session, keys[i], Bytes(vals[i]), checked, context.deadline)
                             : Status(K_DUPLICATED, "key " + keys[i] + " occurs twice"));
      if (outcomes.back().IsError()) failed.push_back(keys[i]);
    }
    outFailedKeys = std::move(failed);
    return AnySucceeded(outcomes, [](const Status& status) { return status; });
  });
}

Status KVClient::Impl::GetStrings(const std::vector<std::string>& keys, std::span<std::string> vals,
                                  int32_t sub_timeout_ms) {
  const auto work = [&](const Context& context) -> Status {
    RETURN_IF_ERROR(CheckGet(keys, sub_timeout_ms));
    const auto place = [&vals](size_t index, uint64_t size) {
      vals[index].resize(size);
      return std::as_writable_bytes(std::span(vals[index]));
    };
    ASSIGN_OR_RETURN(const std::vector<Fetched> items,
                     client::Fetch(context.session, keys, static_cast<uint32_t>(sub_timeout_ms),
                                   context.deadline, place));
    for (size_t i = 0; i < items.size(); ++i) {
      const std::span<const std::byte> view = items[i].view;
      if (!view.empty()) vals[i].assign(reinterpret_cast<const char*>(view.data()), view.size());
    }
    return AnyFetched(items);
  };
  return Run(work, milliseconds(std::max(sub_timeout_ms, 0)));
}

Status KVClient::Impl::GetViews(const std::vector<std::string>& keys, Views& views,
                                int32_t sub_timeout_ms) {
  const auto work = [&](const Context& context) -> Status {
    RETURN_IF_ERROR(CheckGet(keys, sub_timeout_ms));
    std::vector<std::unique_ptr<std::byte[]>> own(keys.size());
    std::vector<uint64_t> own_sizes(keys.size());
    const auto place = [&](size_t index, uint64_t size) {
      own[index].reset(new std::byte[size]);
      own_sizes[index] = size;
      return std::span(own[index].get(), size);
    };
    ASSIGN_OR_RETURN(std::vector<Fetched> items,
                     client::Fetch(context.session, keys, static_cast<uint32_t>(sub_timeout_ms),
                                   context.deadline, place));
    views.resize(keys.size());
    for (size_t i = 0; i < items.size(); ++i) {
      if (items[i].status.IsError()) continue;
      auto view = std::make_shared<ReadOnlyBuffer::Impl>();
      view->bytes = own[i] != nullptr ? std::span<const std::byte>(own[i].get(), own_sizes[i]) : items[i].view;
      view->own = std::move(own[i]);
      view->pin = std::move(items[i].pin);
      views[i] = std::move(view);
    }
    return AnyFetched(items);
  };
  return Run(work, milliseconds(std::max(sub_timeout_ms, 0)));
}

Status KVClient::Get(const std::string& key, std::string& val, int32_t subTimeoutMs) {
  // Straight into `val`: its memory, if it has been used before, is faster than any new one.
  const Status status = impl_->GetStrings({key}, {&val, 1}, subTimeoutMs);
  if (status.IsError()) val.clear();
  return status;
}

Status KVClient::Get(const std::string& key, Optional<ReadOnlyBuffer>& buffer, int32_t subTimeoutMs) {
  Impl::Views views;
  const Status status = impl_->GetViews({key}, views, subTimeoutMs);
  if (status.IsOk()) buffer = ToReadOnlyBuffer(std::move(views[0]));
  return status;
}

Status KVClient::Get(const std::string& key, Optional<Buffer>& buffer, int32_t subTimeoutMs) {
  Impl::Views views;
  const Status status = impl_->GetViews({key}, views, subTimeoutMs);
  if (status.IsOk()) buffer = ToBuffer(std::move(views[0]));
  return status;
}

Status KVClient::Get(const std::vector<std::string>& keys, std::vector<std::string>& vals,
                     int32_t subTimeoutMs) {
  std::vector<std::string> obtained(keys.size());
  const Status status = impl_->GetStrings(keys, obtained, subTimeoutMs);
  if (status.IsOk()) vals = std::move(obtained);
  return status;
}

Status KVClient::Get(const std::vector<std::string>& keys, std::vector<Optional<ReadOnlyBuffer>>& buffers,
                     int32_t subTimeoutMs) {
  Impl::Views views;
  const Status status = impl_->GetViews(keys, views, subTimeoutMs);
  if (status.IsError()) return status;
  buffers.clear();
  for (auto& view : views) buffers.push_back(ToReadOnlyBuffer(std::move(view)));
  return status;
}

Status KVClient::Get(const std::vector<std::string>& keys, std::vector<Optional<Buffer>>& buffers,
                     int32_t subTimeoutMs) {
  Impl::Views views;
  const Status status = impl_->GetViews(keys, views, subTimeoutMs);
  if (status.IsError()) return status;
  buffers.clear();
  for (auto& view : views) buffers.push_back(ToBuffer(std::move(view)));
  return status;
}

Status KVClient::Del(const std::string& key) {
  std::vector<std::string> failed;
  return Del(std::vector<std::string>{key}, failed);
}

Status KVClient::Del(const std::vector<std::string>& keys, std::vector<std::string>& failedKeys) {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    RETURN_IF_ERROR(CheckKeys(keys));
    const proto::DeleteRequest request{.keys = keys, .timeout_ms = context.deadline.worker_timeout_ms()};
    ASSIGN_OR_RETURN(const proto::DeleteReply reply,
                     client::Call<proto::DeleteReply>(*context.session, SessionMessage::kDelete,
                                                      request.Encode(), {}, SessionMessage::kDeleteReply,
                                                      context.deadline));
    if (reply.items.size() != keys.size()) {
      return errors::Runtime("the worker answered for {} of {} keys", reply.items.size(), keys.size());
    }
    std::vector<std::string> failed;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (reply.items[i].IsError()) failed.push_back(keys[i]);
    }
    failedKeys = std::move(failed);
    return AnySucceeded(reply.items, [](const Status& status) { return status; });
  });
}

Status KVClient::Exist(const std::vector<std::string>& keys, std::vector<bool>& exists) {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    RETURN_IF_ERROR(CheckKeys(keys));
    const proto::ExistRequest request{.keys = keys, .timeout_ms = context.deadline.worker_timeout_ms()};
    ASSIGN_OR_RETURN(proto::ExistReply reply,
                     client::Call<proto::ExistReply>(*context.session, SessionMessage::kExist,
                                                     request.Encode(), {}, SessionMessage::kExistReply,
                                                     context.deadline));
    if (reply.exists.size() != keys.size()) {
      return errors::Runtime("the worker answered for {} of {} keys", reply.exists.size(), keys.size());
    }
    exists = std::move(reply.exists);
    return Status::OK();
  });
}

std::string KVClient::GenerateKey(const std::string& prefix) {
  std::string key;
  return GenerateKey(prefix, key).IsOk() ? key : "";
}

Status KVClient::GenerateKey(const std::string& prefix, std::string& key) {
  std::string generated = (prefix.empty() ? RandomUuid() : prefix) + ";" + RandomUuid();
  const Status status = session::CheckKey(generated);
  if (status.IsError()) return WithTraceId(status);
  key = std::move(generated);
  return Status::OK();
}

Status KVClient::HealthCheck() {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    return client::Call<proto::StatusReply>(*context.session, SessionMessage::kHealth, {}, {},
                                            SessionMessage::kStatusReply, context.deadline)
        .status();
  });
}

}  // namespace datasystem
