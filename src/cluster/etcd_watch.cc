#include "cluster/etcd_watch.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <thread>

#include "etcd.grpc.pb.h"

namespace datasystem::cluster {
namespace {

class EtcdWatch final : public Watch {
 public:
  EtcdWatch(EtcdConnection& connection, std::string prefix, uint64_t from_revision,
            WatchEvents events)
      : connection_(connection),
        prefix_(std::move(prefix)),
        events_(std::move(events)),
        next_revision_(from_revision),
        moved_(connection.OnMove([this] { CancelStream(); })),
        thread_([this](std::stop_token stop) { Run(stop); }) {}

  ~EtcdWatch() override {
    moved_.reset();
    thread_.request_stop();
    CancelStream();
    thread_.join();
  }

 private:
  void Run(std::stop_token stop);
  // Reads one stream until it breaks; why it did.
  Status ReadStream(const EtcdConnection::Pick& pick, std::stop_token stop);
  void HandOver(const etcdserverpb::WatchResponse& response);
  void CancelStream() {
    const std::lock_guard lock(mutex_);
    if (context_ != nullptr) context_->TryCancel();
  }

  EtcdConnection& connection_;
  const std::string prefix_;
  const WatchEvents events_;
  std::mutex mutex_;
  grpc::ClientContext* context_ = nullptr;  // of the open stream; guarded by mutex_

  // Of the thread alone.
  uint64_t next_revision_;
  bool watching_ = false;
  bool broken_ = false;  // reported as such
  bool compacted_ = false;
  EtcdBackoff backoff_;

  std::unique_ptr<EtcdConnection::Subscription> moved_;
  std::jthread thread_;
};

void EtcdWatch::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const EtcdConnection::Pick pick = connection_.Current();
    const Status broke_off = ReadStream(pick, stop);
    if (stop.stop_requested()) return;
    if (compacted_) return events_.on_compacted();
    if (!broken_) {
      broken_ = true;
      if (events_.on_connection) events_.on_connection(broke_off);
    }
    connection_.MoveOn(pick);
    // A stream that had worked is reopened at once.
    if (std::exchange(watching_, false)) {
      backoff_.Reset();
    } else {
      backoff_.Wait({.deadline = TimePoint::max(), .stop = stop});
    }
  }
}

Status EtcdWatch::ReadStream(const EtcdConnection::Pick& pick, std::stop_token stop) {
  grpc::ClientContext context;
  // A member that is cut off from the leader ends the stream instead of going silent.
  context.AddMetadata("hasleader", "true");
  // Until etcd is back; OnMove ends the wait when another endpoint is.
  context.set_wait_for_ready(true);
  {
    const std::lock_guard lock(mutex_);
    context_ = &context;
  }
  // From here on the destructor and moves cancel; what came before is seen here.
  if (stop.stop_requested() || connection_.Current().index != pick.index) context.TryCancel();

  const auto stream = etcdserverpb::Watch::NewStub(pick.channel)->Watch(&context);
  etcdserverpb::WatchRequest request;
  etcdserverpb::WatchCreateRequest& create = *request.mutable_create_request();
  create.set_key(prefix_);
  create.set_range_end(EtcdRangeEnd(prefix_));
  // One earlier than what is wanted (HandOver drops it): many releases of etcd, when compacted to
  // just the revision of a deletion, drop that deletion and do not call it compacted (etcd issue
  // 18089).
  create.set_start_revision(static_cast<int64_t>(std::max<uint64_t>(next_revision_ - 1, 1)));
  create.set_progress_notify(true);

  std::string refused;
  etcdserverpb::WatchResponse response;
  if (stream->Write(request)) {
    while (!compacted_ && refused.empty() && stream->Read(&response)) {
      if (response.canceled()) {
        compacted_ = response.compact_revision() != 0;
        refused = "etcd ended the watch: " + response.cancel_reason();
      } else {
        HandOver(response);
      }
    }
  }
  if (!refused.empty()) context.TryCancel();
  const grpc::Status status = stream->Finish();
  {
    const std::lock_guard lock(mutex_);
    context_ = nullptr;
  }
  return errors::StoreError("watch at etcd {} broke off: {}", connection_.endpoint(pick),
                            refused.empty() ? EtcdConnection::CauseOf(status) : refused);
}

void EtcdWatch::HandOver(const etcdserverpb::WatchResponse& response) {
  if (response.created()) {
    watching_ = true;
    broken_ = false;
    if (events_.on_connection) events_.on_connection(Status::OK());
  }
  std::vector<StoreChange> changes;
  for (const etcdserverpb::Event& event : response.events()) {
    const etcdserverpb::KeyValue& kv = event.kv();
    const auto revision = static_cast<uint64_t>(kv.mod_revision());
    if (revision < next_revision_) continue;
    changes.push_back({.deleted = event.type() == etcdserverpb::Event::DELETE,
                       .entry = {kv.key(), kv.value(), revision, kv.lease()}});
  }
  if (!changes.empty()) {
    next_revision_ = changes.back().entry.mod_revision + 1;
    events_.on_changes(changes);
  } else if (!response.created() && response.events().empty()) {
    // A progress notice: nothing of ours up to there. Without it a quiet prefix would look
    // compacted.
    next_revision_ = std::max<uint64_t>(next_revision_, response.header().revision() + 1);
  }
}

}  // namespace

std::string EtcdRangeEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (end.empty()) return std::string(1, '\0');
  ++end.back();
  return end;
}

std::unique_ptr<Watch> WatchEtcd(EtcdConnection& connection, std::string prefix,
                                 uint64_t from_revision, WatchEvents events) {
  return std::make_unique<EtcdWatch>(connection, std::move(prefix), from_revision,
                                     std::move(events));
}

}  // namespace datasystem::cluster
