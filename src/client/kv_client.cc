// The life of a KVClient, and the calls that neither set nor get values.
#include "datasystem/kv_client.h"

#include "base/random.h"
#include "client/kv_client_impl.h"
#include "client/process.h"

namespace datasystem {

using client::Deadline;
using client::Session;
using client::WithTraceId;
using proto::SessionMessage;

KVClient::KVClient(const ConnectOptions& options) : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
}

KVClient::~KVClient() = default;

Status KVClient::Init() {
  const auto init = [this]() -> Status {
    RETURN_IF_ERROR(impl_->CheckProcess());
    std::lock_guard lock(impl_->mutex);
    if (impl_->current.Get() != nullptr) return Status::OK();
    ASSIGN_OR_RETURN(impl_->settings, client::MakeSettings(impl_->options));
    ASSIGN_OR_RETURN(
        const std::shared_ptr<Session> session,
        Session::Open(impl_->settings.worker, Deadline(impl_->settings.connect_timeout)));
    impl_->process_id = client::ThisProcess();
    impl_->current.Set(session);
    return Status::OK();
  };
  return WithTraceId(init());
}

Status KVClient::ShutDown() {
  if (const Status status = impl_->CheckProcess(); status.IsError()) return WithTraceId(status);
  std::lock_guard lock(impl_->mutex);
  impl_->current.Set(nullptr);
  return Status::OK();
}

Status KVClient::Del(const std::string& key) {
  std::vector<std::string> failed;
  return Del(std::vector<std::string>{key}, failed);
}

namespace {

// A call that changes keys and has an outcome for each. `request` makes the message for some of them.
template <typename Reply, typename Context, typename MakeRequest>
Status Change(const Context& context, const std::vector<std::string>& keys,
              SessionMessage type, SessionMessage answer, MakeRequest request,
              std::vector<std::string>& failed) {
  ASSIGN_OR_RETURN(std::vector<Status> outcomes, client::CheckKeys(keys));
  const auto encode = [&](std::vector<std::string> asked) {
    auto message = request(std::move(asked));
    message.timeout_ms = context.deadline.worker_timeout_ms();
    return message.Encode();
  };
  const auto take = [&](size_t index, const std::vector<Status>& items, size_t position) {
    outcomes[index] = items[position];
  };
  client::CallForKeys(*context.session, keys, client::LegalOf(outcomes), type, answer,
                      &Reply::items, encode, take, outcomes, context.deadline);
  failed = client::FailedOf(keys, outcomes);
  return client::AnySucceeded(outcomes);
}

}  // namespace

Status KVClient::Del(const std::vector<std::string>& keys, std::vector<std::string>& failedKeys) {
  return impl_->Run([&](const auto& context) {
    const auto request = [](std::vector<std::string> asked) {
      return proto::DeleteRequest{.keys = std::move(asked)};
    };
    return Change<proto::DeleteReply>(context, keys, SessionMessage::kDelete,
                                      SessionMessage::kDeleteReply, request, failedKeys);
  });
}

Status KVClient::Expire(const std::vector<std::string>& keys, uint32_t ttlSeconds,
                        std::vector<std::string>& failedKeys) {
  return impl_->Run([&](const auto& context) {
    const auto request = [ttlSeconds](std::vector<std::string> asked) {
      return proto::ExpireRequest{.keys = std::move(asked), .ttl_second = ttlSeconds};
    };
    return Change<proto::ExpireReply>(context, keys, SessionMessage::kExpire,
                                      SessionMessage::kExpireReply, request, failedKeys);
  });
}

Status KVClient::Exist(const std::vector<std::string>& keys, std::vector<bool>& exists) {
  const auto exist = [&]() -> Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, impl_->Local());
    ASSIGN_OR_RETURN(std::vector<Status> outcomes, client::CheckKeys(keys));
    // There is no place for the error of one key.
    for (const Status& outcome : outcomes) RETURN_IF_ERROR(outcome);
    std::vector<bool> found(keys.size());
    std::vector<size_t> missing;
    for (size_t i = 0; i < keys.size(); ++i) {
      found[i] = session->index() != nullptr && session->index()->SizeOf(keys[i]);
      if (!found[i]) missing.push_back(i);
    }
    if (!missing.empty()) {
      ASSIGN_OR_RETURN(const Impl::Context context, impl_->Remote());
      const auto encode = [&](std::vector<std::string> asked) {
        return proto::ExistRequest{.keys = std::move(asked),
                                   .timeout_ms = context.deadline.worker_timeout_ms()}
            .Encode();
      };
      const auto take = [&](size_t index, const std::vector<bool>& items, size_t position) {
        found[index] = items[position];
      };
      client::CallForKeys(*context.session, keys, missing, SessionMessage::kExist,
                          SessionMessage::kExistReply, &proto::ExistReply::exists, encode, take,
                          outcomes, context.deadline);
    }
    for (const Status& outcome : outcomes) RETURN_IF_ERROR(outcome);
    exists = std::move(found);
    return Status::OK();
  };
  return WithTraceId(exist());
}

Status KVClient::QuerySize(const std::vector<std::string>& keys, std::vector<uint64_t>& sizes) {
  const auto query = [&]() -> Status {
    ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, impl_->Local());
    ASSIGN_OR_RETURN(std::vector<Status> outcomes, client::CheckKeys(keys));
    std::vector<uint64_t> found(keys.size());
    std::vector<size_t> missing;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (outcomes[i].IsError()) continue;
      const auto size =
          session->index() != nullptr ? session->index()->SizeOf(keys[i]) : std::nullopt;
      found[i] = size.value_or(0);
      if (!size) missing.push_back(i);
    }
    if (!missing.empty()) {
      ASSIGN_OR_RETURN(const Impl::Context context, impl_->Remote());
      const auto encode = [&](std::vector<std::string> asked) {
        return proto::SizesRequest{.keys = std::move(asked),
                                   .timeout_ms = context.deadline.worker_timeout_ms()}
            .Encode();
      };
      const auto take = [&](size_t index, const std::vector<proto::SizeItem>& items,
                            size_t position) {
        outcomes[index] = items[position].status;
        if (outcomes[index].IsOk()) found[index] = items[position].size;
      };
      client::CallForKeys(*context.session, keys, missing, SessionMessage::kSizes,
                          SessionMessage::kSizesReply, &proto::SizesReply::items, encode, take,
                          outcomes, context.deadline);
    }
    const Status status = client::AnyObtained(outcomes);
    if (status.IsOk()) sizes = std::move(found);
    return status;
  };
  return WithTraceId(query());
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

Status KVClient::UpdateToken(const SensitiveValue&) {
  return WithTraceId(errors::NotSupported(
      "this version has no authentication: there is no token to renew; leave it empty"));
}

Status KVClient::UpdateAkSk(const std::string&, const SensitiveValue&) {
  return WithTraceId(errors::NotSupported(
      "this version has no authentication: there are no keys to renew; leave them empty"));
}

Status KVClient::HealthCheck() {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    return client::Call<proto::StatusReply>(*context.session, SessionMessage::kHealth, {}, {},
                                            SessionMessage::kStatusReply, context.deadline)
        .status();
  });
}

}  // namespace datasystem
