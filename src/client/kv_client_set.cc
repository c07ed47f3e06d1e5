// The calls of KVClient that set values.
#include <algorithm>
#include <unordered_set>

#include "client/kv_client_impl.h"
#include "client/put.h"

namespace datasystem {

using client::Atomicity;
using client::Deadline;
using client::Session;
using client::Value;
using client::WithTraceId;

namespace {

constexpr size_t kTxMax = 8;  // keys of MSetTx

Result<proto::SetParam> CheckParam(const SetParam& param) {
  if (param.writeMode < WriteMode::NONE_L2_CACHE ||
      param.writeMode > WriteMode::WRITE_BACK_L2_CACHE_EVICT) {
    return errors::Invalid("{} is not a write mode", static_cast<int>(param.writeMode));
  }
  if (param.existence != ExistenceOpt::NONE && param.existence != ExistenceOpt::NX) {
    return errors::Invalid("{} is not an existence option", static_cast<int>(param.existence));
  }
  if (param.cacheType != CacheType::MEMORY) {
    return errors::NotSupported(
        "this version keeps values in memory only: leave cacheType at MEMORY");
  }
  return proto::SetParam{.write_mode = static_cast<uint32_t>(param.writeMode),
                         .ttl_second = param.ttlSecond,
                         .existence = static_cast<uint32_t>(param.existence)};
}

Result<proto::SetParam> CheckParamWithoutNx(const SetParam& param, const char* call) {
  if (param.existence == ExistenceOpt::NX) return errors::Invalid("{} does not support NX", call);
  return CheckParam(param);
}

std::span<const std::byte> Bytes(StringView view) {
  return std::as_bytes(std::span(view.data(), view.size()));
}

bool SameParam(const proto::SetParam& a, const proto::SetParam& b) {
  return a.write_mode == b.write_mode && a.ttl_second == b.ttl_second && a.existence == b.existence;
}

Status CheckCounts(size_t keys, size_t others, const char* what) {
  if (keys == others) return Status::OK();
  return errors::Invalid("there are {} keys, but {} {}", keys, others, what);
}

// Own memory for values that travel in the message; the rest is reserved.
Status Allocate(Buffer::Impl& impl) {
  impl.own.reset(new (std::nothrow) std::byte[impl.size]);
  if (impl.own == nullptr)
    return errors::OutOfMemory("this process has no {} bytes for a buffer", impl.size);
  return Status::OK();
}

// A buffer that this call alone may publish now; `spent` is set.
Status TakeForSet(const std::shared_ptr<Buffer>& buffer, std::vector<Value>& values) {
  if (buffer == nullptr || buffer->impl() == nullptr) return errors::Invalid("there is no buffer");
  Buffer::Impl& impl = *buffer->impl();
  if (impl.read_only != nullptr) {
    return errors::Invalid("a buffer from Get cannot be published: use Create for a new value");
  }
  if (impl.spent.exchange(true)) {
    return Status(K_OC_ALREADY_SEALED,
                  "the buffer of key " + impl.key + " has been published before");
  }
  values.push_back({.key = impl.key,
                    .bytes = impl.memory(),
                    .filled = impl.own != nullptr ? nullptr : &impl.reservation});
  return Status::OK();
}

// One outcome a buffer. Neighbours of the same session and parameters share messages.
std::vector<Status> SetBuffers(const std::shared_ptr<Session>& current,
                               const std::vector<std::shared_ptr<Buffer>>& buffers,
                               const Deadline& deadline) {
  std::vector<Status> outcomes(buffers.size());
  const auto session_of = [&](const Buffer::Impl& impl) {
    return impl.own != nullptr ? current : impl.reservation.claim.session();
  };
  for (size_t begin = 0; begin < buffers.size();) {
    std::vector<Value> values;
    std::vector<size_t> taken;
    std::shared_ptr<Session> session;
    proto::SetParam param;
    size_t end = begin;
    for (; end < buffers.size(); ++end) {
      outcomes[end] = TakeForSet(buffers[end], values);
      if (outcomes[end].IsError()) continue;
      // From here on the buffer is this call's: only now may its claim be looked at.
      Buffer::Impl& impl = *buffers[end]->impl();
      if (!taken.empty() && (session_of(impl) != session || !SameParam(impl.param, param))) {
        values.pop_back();
        impl.spent = false;
        break;
      }
      taken.push_back(end);
      session = session_of(impl);
      param = impl.param;
    }
    if (!taken.empty()) {
      std::vector<Status> set(taken.size());
      if (session != current && !session->Alive()) {
        const Status gone = errors::Invalid(
            "worker {} has let go of the buffer's memory, as the session has ended: create a new "
            "buffer",
            session->worker());
        std::ranges::fill(set, gone);
      } else {
        set = client::Put(session, values, param, Atomicity::kEach, deadline);
      }
      for (size_t i = 0; i < taken.size(); ++i) {
        Buffer::Impl& impl = *buffers[taken[i]]->impl();
        outcomes[taken[i]] = set[i];
        if (set[i].IsOk()) {
          impl.own.reset();
        } else {
          impl.spent = false;
        }
      }
    }
    begin = end;
  }
  return outcomes;
}

}  // namespace

Status KVClient::Set(const std::string& key, const StringView& val, const SetParam& param) {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    RETURN_IF_ERROR(session::CheckKey(key));
    RETURN_IF_ERROR(session::CheckValueSize(val.size()));
    ASSIGN_OR_RETURN(const proto::SetParam checked, CheckParam(param));
    const Value value{.key = key, .bytes = Bytes(val)};
    return client::Put(context.session, {&value, 1}, checked, Atomicity::kEach, context.deadline)
        .front();
  });
}

std::string KVClient::Set(const StringView& val, const SetParam& param) {
  std::string key = GenerateKey();
  return Set(key, val, param).IsOk() ? key : "";
}

Status KVClient::Create(const std::string& key, uint64_t size, const SetParam& param,
                        std::shared_ptr<Buffer>& buffer) {
  if (param.existence == ExistenceOpt::NX)
    return WithTraceId(errors::Invalid("Create does not support NX"));
  std::vector<std::shared_ptr<Buffer>> buffers;
  const Status status = MCreate({key}, {size}, param, buffers);
  if (status.IsOk()) buffer = std::move(buffers.front());
  return status;
}

Status KVClient::Set(const std::shared_ptr<Buffer>& buffer) {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    return SetBuffers(context.session, {buffer}, context.deadline).front();
  });
}

Status KVClient::MCreate(const std::vector<std::string>& keys, const std::vector<uint64_t>& sizes,
                         const SetParam& param, std::vector<std::shared_ptr<Buffer>>& buffers) {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    ASSIGN_OR_RETURN(const std::vector<Status> legal, client::CheckKeys(keys));
    RETURN_IF_ERROR(CheckCounts(keys.size(), sizes.size(), "sizes"));
    ASSIGN_OR_RETURN(const proto::SetParam checked, CheckParamWithoutNx(param, "MCreate"));
    std::vector<std::shared_ptr<Buffer::Impl>> made;
    std::vector<size_t> wanting;
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < keys.size(); ++i) {
      RETURN_IF_ERROR(legal[i]);
      RETURN_IF_ERROR(session::CheckValueSize(sizes[i]));
      if (!seen.insert(keys[i]).second) return errors::Invalid("key {} occurs twice", keys[i]);
      made.push_back(std::make_shared<Buffer::Impl>());
      made[i]->key = keys[i];
      made[i]->param = checked;
      made[i]->size = sizes[i];
      if (context.session->IsInline(sizes[i])) {
        RETURN_IF_ERROR(Allocate(*made[i]));
      } else {
        wanting.push_back(i);
      }
    }
    for (size_t begin = 0; begin < wanting.size(); begin += session::kBatchMax) {
      const size_t end = std::min(wanting.size(), begin + session::kBatchMax);
      std::vector<uint64_t> part;
      for (size_t n = begin; n < end; ++n) part.push_back(sizes[wanting[n]]);
      ASSIGN_OR_RETURN(auto reserved, client::Reserve(context.session, part, context.deadline));
      for (size_t n = begin; n < end; ++n) {
        ASSIGN_OR_RETURN(made[wanting[n]]->reservation, std::move(reserved[n - begin]));
      }
    }
    buffers.clear();
    for (auto& impl : made) buffers.push_back(std::make_shared<Buffer>(std::move(impl)));
    return Status::OK();
  });
}

Status KVClient::MSet(const std::vector<std::shared_ptr<Buffer>>& buffers) {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    if (buffers.empty()) return errors::Invalid("The buffers are empty");
    for (const Status& outcome : SetBuffers(context.session, buffers, context.deadline))
      RETURN_IF_ERROR(outcome);
    return Status::OK();
  });
}

Status KVClient::MSet(const std::vector<std::string>& keys, const std::vector<StringView>& vals,
                      std::vector<std::string>& outFailedKeys, const MSetParam& param) {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    ASSIGN_OR_RETURN(std::vector<Status> outcomes, client::CheckKeys(keys));
    RETURN_IF_ERROR(CheckCounts(keys.size(), vals.size(), "values"));
    ASSIGN_OR_RETURN(const proto::SetParam checked, CheckParam(param));
    std::vector<Value> values;
    std::vector<size_t> sent;
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (outcomes[i].IsOk()) outcomes[i] = session::CheckValueSize(vals[i].size());
      if (outcomes[i].IsError()) continue;
      if (!seen.insert(keys[i]).second) {
        outcomes[i] = Status(K_DUPLICATED, "key " + keys[i] + " occurs twice");
        continue;
      }
      values.push_back({.key = keys[i], .bytes = Bytes(vals[i])});
      sent.push_back(i);
    }
    const std::vector<Status> set =
        client::Put(context.session, values, checked, Atomicity::kEach, context.deadline);
    for (size_t n = 0; n < sent.size(); ++n) {
      const bool left_alone =
          param.existence == ExistenceOpt::NX && set[n].GetCode() == K_OC_KEY_ALREADY_EXIST;
      outcomes[sent[n]] = left_alone ? Status::OK() : set[n];
    }
    outFailedKeys = client::FailedOf(keys, outcomes);
    return client::AnySucceeded(outcomes);
  });
}

Status KVClient::MSetTx(const std::vector<std::string>& keys, const std::vector<StringView>& vals,
                        const MSetParam& param) {
  return impl_->Run([&](const Impl::Context& context) -> Status {
    ASSIGN_OR_RETURN(const std::vector<Status> legal, client::CheckKeys(keys));
    if (keys.size() > kTxMax) return errors::Invalid("The objectKeys size exceed {}.", kTxMax);
    RETURN_IF_ERROR(CheckCounts(keys.size(), vals.size(), "values"));
    ASSIGN_OR_RETURN(const proto::SetParam checked, CheckParam(param));
    if (param.existence != ExistenceOpt::NX) {
      return errors::Invalid("The MSetTx only supports set not existence key now");
    }
    std::vector<Value> values;
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < keys.size(); ++i) {
      RETURN_IF_ERROR(legal[i]);
      RETURN_IF_ERROR(session::CheckValueSize(vals[i].size()));
      if (!seen.insert(keys[i]).second) return errors::Invalid("key {} occurs twice", keys[i]);
      values.push_back({.key = keys[i], .bytes = Bytes(vals[i])});
    }
    for (const Status& outcome :
         client::Put(context.session, values, checked, Atomicity::kAllOrNone, context.deadline)) {
      RETURN_IF_ERROR(outcome);
    }
    return Status::OK();
  });
}

}  // namespace datasystem
