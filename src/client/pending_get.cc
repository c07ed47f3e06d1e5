#include "client/pending_get.h"

#include "client/kv_client_impl.h"

namespace datasystem::client {

struct PendingGet::State {
  std::vector<std::string> keys;
  std::vector<Status> outcomes;
  std::vector<View> views;
  std::vector<size_t> missing;
  std::shared_ptr<Session> session;
  std::optional<Deadline> deadline;
  std::optional<Session::Lease> connection;  // none: nothing was missing

  Status Ask(KVClient::Impl& client, int32_t sub_timeout_ms);
  Status Take();
};

PendingGet::PendingGet(std::unique_ptr<State> state) : state_(std::move(state)) {}
PendingGet::~PendingGet() = default;

Status PendingGet::State::Ask(KVClient::Impl& client, int32_t sub_timeout_ms) {
  ASSIGN_OR_RETURN(session, client.Local());
  RETURN_IF_ERROR(CheckSubTimeout(sub_timeout_ms));
  RETURN_IF_ERROR(session::CheckBatchSize(keys.size()));
  ASSIGN_OR_RETURN(outcomes, CheckKeys(keys));
  views.resize(keys.size());
  proto::GetRequest request;
  for (const size_t i : LegalOf(outcomes)) {
    views[i] = FindIn(session, keys[i]);
    if (views[i] != nullptr) continue;
    missing.push_back(i);
    request.keys.push_back(keys[i]);
  }
  if (missing.empty()) return Status::OK();
  ASSIGN_OR_RETURN(const auto context, client.Remote(std::chrono::milliseconds(sub_timeout_ms)));
  session = context.session;
  deadline = context.deadline;
  request.sub_timeout_ms = static_cast<uint32_t>(sub_timeout_ms);
  ASSIGN_OR_RETURN(auto lease, AskFor(*session, std::move(request), *deadline, Connection::Way::kSocket));
  connection.emplace(std::move(lease));
  return Status::OK();
}

Status PendingGet::State::Take() {
  if (!connection) return AnyObtained(outcomes);
  ViewCollector collector(views);
  const auto place = [&](size_t n, uint64_t size) { return collector.Place(missing[n], size); };
  auto items = TakeAnswer(session, std::move(*connection), missing.size(), *deadline, place);
  connection.reset();
  for (size_t n = 0; n < missing.size(); ++n) {
    Status& outcome = outcomes[missing[n]];
    outcome = items.ok() ? (*items)[n].status : items.status();
    if (outcome.IsOk()) collector.Take(missing[n], (*items)[n]);
  }
  return AnyObtained(outcomes);
}

Status PendingGet::Start(KVClient& client, std::vector<std::string> keys, int32_t sub_timeout_ms,
                         std::unique_ptr<PendingGet>& pending) {
  auto state = std::make_unique<State>();
  state->keys = std::move(keys);
  const Status asked = WithTraceId(state->Ask(*client.impl_, sub_timeout_ms));
  if (asked.IsOk()) pending.reset(new PendingGet(std::move(state)));
  return asked;
}

int PendingGet::fd() const { return state_->connection ? (*state_->connection)->fd() : -1; }

int64_t PendingGet::remaining_ms() const {
  return state_->deadline ? state_->deadline->remaining().count() : 0;
}

Status PendingGet::Finish(std::vector<Optional<ReadOnlyBuffer>>& buffers) {
  const Status taken = WithTraceId(state_->Take());
  if (taken.IsError()) return taken;
  buffers.clear();
  for (View& view : state_->views) buffers.push_back(ToReadOnlyBuffer(std::move(view)));
  return taken;
}

Status PendingGet::Finish(std::vector<Optional<Buffer>>& buffers) {
  const Status taken = WithTraceId(state_->Take());
  if (taken.IsError()) return taken;
  buffers.clear();
  for (View& view : state_->views) buffers.push_back(ToBuffer(std::move(view)));
  return taken;
}

}  // namespace datasystem::client
