// The calls of KVClient that read. Each looks into the index first and asks the worker for the
// rest.
#include <unordered_set>

#include "client/copy.h"
#include "client/kv_client_impl.h"

namespace datasystem {

using client::CheckSubTimeout;
using client::Fetched;
using client::FindIn;
using client::Session;
using client::ToBuffer;
using client::ToReadOnlyBuffer;
using client::WithTraceId;
using std::chrono::milliseconds;

namespace client {

Status CheckSubTimeout(int32_t sub_timeout_ms) {
  if (sub_timeout_ms < 0)
    return errors::Invalid("subTimeoutMs is {}, expected 0 or more", sub_timeout_ms);
  return Status::OK();
}

std::shared_ptr<ReadOnlyBuffer::Impl> FindIn(const std::shared_ptr<Session>& session,
                                             const std::string& key) {
  if (session->index() == nullptr) return nullptr;
  auto found = session->index()->Find(key);
  if (!found) return nullptr;
  session->Touch(found->bytes);
  auto view = std::make_shared<ReadOnlyBuffer::Impl>();
  view->bytes = found->bytes;
  view->local_pin = LocalPin(session, std::move(found->pin));
  return view;
}

Optional<ReadOnlyBuffer> ToReadOnlyBuffer(View view) {
  if (view == nullptr) return {};
  return ReadOnlyBuffer(std::move(view));
}

Optional<Buffer> ToBuffer(View view) {
  if (view == nullptr) return {};
  auto impl = std::make_shared<Buffer::Impl>();
  impl->read_only = std::move(view);
  return Buffer(std::move(impl));
}

std::span<std::byte> ViewCollector::Place(size_t index, uint64_t size) {
  auto& view = received_[index];
  view = std::make_shared<ReadOnlyBuffer::Impl>();
  view->own.reset(new std::byte[size]);
  const std::span bytes(view->own.get(), size);
  view->bytes = bytes;
  return bytes;
}

void ViewCollector::Take(size_t index, Fetched& item) {
  const auto received = received_.find(index);
  if (received != received_.end()) {
    views_[index] = std::move(received->second);
    return;
  }
  auto view = std::make_shared<ReadOnlyBuffer::Impl>();
  view->bytes = item.view;
  view->pin = std::move(item.pin);
  views_[index] = std::move(view);
}

}  // namespace client

namespace {

void CopyTo(std::string& val, std::span<const std::byte> bytes) {
  // A string that must grow would be filled with zeros first: copying once is faster then.
  if (val.size() < bytes.size()) {
    val.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  } else {
    val.resize(bytes.size());
    client::Copy(std::as_writable_bytes(std::span(val)), bytes);
  }
}

// Throws nothing: a value that this process has no memory for is left to the way that says so.
bool CopyFrom(Session& session, const std::string& key, std::string& val) {
  if (session.index() == nullptr) return false;
  const auto found = session.index()->Find(key);
  if (!found) return false;
  session.Touch(found->bytes);
  try {
    CopyTo(val, found->bytes);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

Status CutTo(const client::Slice& slice, std::span<const std::byte>& bytes,
             const std::string& key) {
  if (slice.offset >= bytes.size()) {
    return errors::OutOfRange("offset {} is at or after the end of the {} bytes of key {}",
                              slice.offset, bytes.size(), key);
  }
  bytes = bytes.subspan(slice.offset);
  if (slice.size != 0 && slice.size < bytes.size()) bytes = bytes.first(slice.size);
  return Status::OK();
}

}  // namespace

KVClient::Impl::View KVClient::Impl::FindView(const std::string& key) {
  const auto session = Local();
  if (!session.ok() || session::CheckKey(key).IsError()) return nullptr;
  return FindIn(*session, key);
}

bool KVClient::Impl::FindString(const std::string& key, std::string& val) {
  const auto session = Local();
  return session.ok() && session::CheckKey(key).IsOk() && CopyFrom(**session, key, val);
}

// What a get has not found in the index, and where it goes.
struct KVClient::Impl::Missing {
  const std::vector<std::string>& keys;
  const std::vector<Slice>& slices;  // one of each key, or none at all
  std::vector<size_t> wanted;        // indices of keys
  std::vector<Status>& outcomes;     // one a key

  // Memory for a value that comes in a message; takes one that came.
  client::Place place;
  std::function<void(size_t index, Fetched& item)> done;
  // Looks into the index, where the worker says it is now; false: it is gone again.
  std::function<bool(size_t index)> look;
};

Status KVClient::Impl::FetchMissing(Missing& missing, int32_t sub_timeout_ms) {
  if (missing.wanted.empty()) return client::AnyObtained(missing.outcomes);
  const auto context = Remote(milliseconds(sub_timeout_ms));
  if (!context.ok()) {
    for (const size_t index : missing.wanted) missing.outcomes[index] = context.status();
    return client::AnyObtained(missing.outcomes);
  }
  const TimePoint wait_until = Clock::Steady().Now() + milliseconds(sub_timeout_ms);
  // Twice at most: the second time the values themselves come.
  for (const bool reads_index : {context->session->index() != nullptr, false}) {
    std::vector<size_t> gone;
    for (std::span<const size_t> rest(missing.wanted); !rest.empty();) {
      const auto part = rest.first(std::min(rest.size(), session::kBatchMax));
      rest = rest.subspan(part.size());
      FetchPart(*context, missing, part, {reads_index, sub_timeout_ms, wait_until}, gone);
    }
    missing.wanted = std::move(gone);
  }
  return client::AnyObtained(missing.outcomes);
}

void KVClient::Impl::FetchPart(const Context& context, Missing& missing,
                               std::span<const size_t> part, const HowToFetch& how,
                               std::vector<size_t>& gone) {
  proto::GetRequest request{.reads_index = how.reads_index};
  for (const size_t index : part) {
    request.keys.push_back(missing.keys[index]);
    if (missing.slices.empty()) continue;
    request.offsets.push_back(missing.slices[index].offset);
    request.sizes.push_back(missing.slices[index].size);
  }
  if (how.sub_timeout_ms > 0) {
    const auto left = std::chrono::ceil<milliseconds>(how.wait_until - Clock::Steady().Now());
    request.sub_timeout_ms =
        static_cast<uint32_t>(std::clamp<int64_t>(left.count(), 0, how.sub_timeout_ms));
  }
  const auto place = [&](size_t i, uint64_t size) { return missing.place(part[i], size); };
  auto items = client::Fetch(context.session, std::move(request), context.deadline, place);
  for (size_t i = 0; i < part.size(); ++i) {
    const size_t index = part[i];
    Status& outcome = missing.outcomes[index];
    outcome = items.ok() ? (*items)[i].status : items.status();
    if (outcome.IsError()) continue;
    if (!(*items)[i].here) {
      missing.done(index, (*items)[i]);
    } else if (!missing.look(index)) {
      gone.push_back(index);
    }
  }
}

Status KVClient::Impl::GetStrings(const std::vector<std::string>& keys, std::span<std::string> vals,
                                  int32_t sub_timeout_ms) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, Local());
  RETURN_IF_ERROR(CheckSubTimeout(sub_timeout_ms));
  ASSIGN_OR_RETURN(std::vector<Status> outcomes, client::CheckKeys(keys));
  const std::vector<Slice> no_slices;
  Missing missing{.keys = keys, .slices = no_slices, .wanted = {}, .outcomes = outcomes};
  missing.look = [&](size_t i) { return CopyFrom(*session, keys[i], vals[i]); };
  for (size_t i = 0; i < keys.size(); ++i) {
    if (outcomes[i].IsOk() && !missing.look(i)) missing.wanted.push_back(i);
  }
  missing.place = [&vals](size_t index, uint64_t size) {
    vals[index].resize(size);
    return std::as_writable_bytes(std::span(vals[index]));
  };
  missing.done = [&](size_t index, Fetched& item) {
    if (item.view.empty()) return;
    try {
      CopyTo(vals[index], item.view);
    } catch (const std::bad_alloc&) {
      outcomes[index] =
          errors::OutOfMemory("this process has no {} bytes for a value", item.view.size());
    }
    item.pin = {};
  };
  const Status status = FetchMissing(missing, sub_timeout_ms);
  // A message that broke off may have left something there.
  for (size_t i = 0; i < keys.size(); ++i) {
    if (outcomes[i].IsError()) vals[i].clear();
  }
  return status;
}

Status KVClient::Impl::GetViews(const std::vector<std::string>& keys,
                                const std::vector<Slice>& slices, Views& views,
                                int32_t sub_timeout_ms) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, Local());
  RETURN_IF_ERROR(CheckSubTimeout(sub_timeout_ms));
  ASSIGN_OR_RETURN(std::vector<Status> outcomes, client::CheckKeys(keys));
  views.resize(keys.size());
  Missing missing{.keys = keys, .slices = slices, .wanted = {}, .outcomes = outcomes};
  missing.look = [&](size_t i) {
    auto view = FindIn(session, keys[i]);
    if (view == nullptr) return false;
    if (!slices.empty()) outcomes[i] = CutTo(slices[i], view->bytes, keys[i]);
    if (outcomes[i].IsOk()) views[i] = std::move(view);
    return true;
  };
  for (size_t i = 0; i < keys.size(); ++i) {
    if (outcomes[i].IsOk() && !missing.look(i)) missing.wanted.push_back(i);
  }
  client::ViewCollector collector(views);
  missing.place = [&](size_t index, uint64_t size) { return collector.Place(index, size); };
  missing.done = [&](size_t index, Fetched& item) { collector.Take(index, item); };
  return FetchMissing(missing, sub_timeout_ms);
}

Status KVClient::Get(const std::string& key, std::string& val, int32_t subTimeoutMs) {
  // Straight into `val`: its memory, if it has been used before, is faster than any new one.
  if (subTimeoutMs >= 0 && impl_->FindString(key, val)) return Status::OK();
  const Status status = WithTraceId(impl_->GetStrings({key}, {&val, 1}, subTimeoutMs));
  if (status.IsError()) val.clear();
  return status;
}

Status KVClient::Impl::GetView(const std::string& key, View& view, int32_t sub_timeout_ms) {
  view = sub_timeout_ms >= 0 ? FindView(key) : nullptr;
  if (view != nullptr) return Status::OK();
  Views views;
  const Status status = WithTraceId(GetViews({key}, {}, views, sub_timeout_ms));
  if (status.IsOk()) view = std::move(views[0]);
  return status;
}

Status KVClient::Get(const std::string& key, Optional<ReadOnlyBuffer>& buffer,
                     int32_t subTimeoutMs) {
  Impl::View view;
  const Status status = impl_->GetView(key, view, subTimeoutMs);
  if (status.IsOk()) buffer = ToReadOnlyBuffer(std::move(view));
  return status;
}

Status KVClient::Get(const std::string& key, Optional<Buffer>& buffer, int32_t subTimeoutMs) {
  Impl::View view;
  const Status status = impl_->GetView(key, view, subTimeoutMs);
  if (status.IsOk()) buffer = ToBuffer(std::move(view));
  return status;
}

Status KVClient::Get(const std::vector<std::string>& keys, std::vector<std::string>& vals,
                     int32_t subTimeoutMs) {
  std::vector<std::string> obtained(keys.size());
  const Status status = WithTraceId(impl_->GetStrings(keys, obtained, subTimeoutMs));
  if (status.IsOk()) vals = std::move(obtained);
  return status;
}

Status KVClient::Get(const std::vector<std::string>& keys,
                     std::vector<Optional<ReadOnlyBuffer>>& buffers, int32_t subTimeoutMs) {
  Impl::Views views;
  const Status status = WithTraceId(impl_->GetViews(keys, {}, views, subTimeoutMs));
  if (status.IsError()) return status;
  buffers.clear();
  for (auto& view : views) buffers.push_back(ToReadOnlyBuffer(std::move(view)));
  return status;
}

Status KVClient::Get(const std::vector<std::string>& keys, std::vector<Optional<Buffer>>& buffers,
                     int32_t subTimeoutMs) {
  Impl::Views views;
  const Status status = WithTraceId(impl_->GetViews(keys, {}, views, subTimeoutMs));
  if (status.IsError()) return status;
  buffers.clear();
  for (auto& view : views) buffers.push_back(ToBuffer(std::move(view)));
  return status;
}

Status KVClient::Read(const std::vector<ReadParam>& readParams,
                      std::vector<Optional<ReadOnlyBuffer>>& buffers) {
  Impl::Views views;
  const auto read = [&]() -> Status {
    std::vector<std::string> keys;
    std::vector<Impl::Slice> slices;
    std::unordered_set<std::string_view> seen;
    for (const ReadParam& param : readParams) {
      if (param.size > UINT64_MAX - param.offset) {
        return errors::Invalid("offset {} and size {} of key {} go beyond 64 bits", param.offset,
                               param.size, param.key);
      }
      if (!seen.insert(param.key).second) return errors::Invalid("key {} occurs twice", param.key);
      keys.push_back(param.key);
      slices.push_back({param.offset, param.size});
    }
    return impl_->GetViews(keys, slices, views, 0);
  };
  const Status status = WithTraceId(read());
  if (status.IsError()) return status;
  buffers.clear();
  for (auto& view : views) buffers.push_back(ToReadOnlyBuffer(std::move(view)));
  return status;
}

}  // namespace datasystem
