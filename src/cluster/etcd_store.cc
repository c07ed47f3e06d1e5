#include "cluster/etcd_store.h"

#include <grpcpp/grpcpp.h>

#include "cluster/etcd_connection.h"
#include "cluster/etcd_watch.h"
#include "etcd.grpc.pb.h"

namespace datasystem::cluster {
namespace {

using etcdserverpb::KV;
using ChannelPtr = std::shared_ptr<grpc::Channel>;

StoreEntry ToEntry(const etcdserverpb::KeyValue& kv) {
  return {kv.key(), kv.value(), static_cast<uint64_t>(kv.mod_revision()), kv.lease()};
}

void FillPut(etcdserverpb::PutRequest& request, std::string_view key, std::string_view value,
             LeaseId lease) {
  request.set_key(std::string(key));
  request.set_value(std::string(value));
  request.set_lease(lease);
}

class EtcdStore final : public LeaseStore {
 public:
  explicit EtcdStore(std::vector<EtcdEndpoint> endpoints) : connection_(std::move(endpoints)) {}

  std::string name() const override { return "etcd at " + connection_.EndpointList(); }

  Result<Lease> Grant(std::chrono::seconds ttl, CallLimits limits) override {
    etcdserverpb::LeaseGrantRequest request;
    request.set_ttl(ttl.count());
    etcdserverpb::LeaseGrantResponse response;
    RETURN_IF_ERROR(
        connection_.Call(limits, [&](const ChannelPtr& channel, grpc::ClientContext& context) {
          return etcdserverpb::Lease::NewStub(channel)->LeaseGrant(&context, request, &response);
        }));
    if (response.id() == kNoLease || response.ttl() <= 0) {
      return errors::StoreError("{} granted no lease: {}", name(), response.error());
    }
    return Lease{.id = response.id(), .ttl = std::chrono::seconds(response.ttl())};
  }

  // One stream for one renewal: at one a second that costs nothing, and there is no broken stream
  // to mend.
  Result<std::chrono::seconds> KeepAlive(LeaseId lease, CallLimits limits) override {
    etcdserverpb::LeaseKeepAliveRequest request;
    request.set_id(lease);
    etcdserverpb::LeaseKeepAliveResponse response;
    RETURN_IF_ERROR(
        connection_.Call(limits, [&](const ChannelPtr& channel, grpc::ClientContext& context) {
          const auto stream = etcdserverpb::Lease::NewStub(channel)->LeaseKeepAlive(&context);
          const bool answered = stream->Write(request) && stream->Read(&response);
          if (!answered) return stream->Finish();
          stream->WritesDone();
          context.TryCancel();  // etcd ends the stream only when we do
          stream->Finish();
          return grpc::Status::OK;
        }));
    if (response.ttl() <= 0) return errors::NotFound("{} has no lease {:x}", name(), lease);
    return std::chrono::seconds(response.ttl());
  }

  Status Revoke(LeaseId lease, CallLimits limits) override {
    etcdserverpb::LeaseRevokeRequest request;
    request.set_id(lease);
    etcdserverpb::LeaseRevokeResponse response;
    return connection_.Call(limits, [&](const ChannelPtr& channel, grpc::ClientContext& context) {
      return etcdserverpb::Lease::NewStub(channel)->LeaseRevoke(&context, request, &response);
    });
  }

  Result<uint64_t> Put(std::string_view key, std::string_view value, LeaseId lease,
                       CallLimits limits) override {
    etcdserverpb::PutRequest request;
    FillPut(request, key, value, lease);
    etcdserverpb::PutResponse response;
    RETURN_IF_ERROR(
        connection_.Call(limits, [&](const ChannelPtr& channel, grpc::ClientContext& context) {
          return KV::NewStub(channel)->Put(&context, request, &response);
        }));
    return static_cast<uint64_t>(response.header().revision());
  }

  Result<StoreCreation> CreateIfAbsent(std::string_view key, std::string_view value, LeaseId lease,
                                       CallLimits limits) override {
    etcdserverpb::TxnRequest request;
    etcdserverpb::Compare& absent = *request.add_compare();
    absent.set_result(etcdserverpb::Compare::EQUAL);
    absent.set_target(etcdserverpb::Compare::CREATE);
    absent.set_key(std::string(key));
    absent.set_create_revision(0);
    FillPut(*request.add_success()->mutable_request_put(), key, value, lease);
    request.add_failure()->mutable_request_range()->set_key(std::string(key));
    etcdserverpb::TxnResponse response;
    RETURN_IF_ERROR(
        connection_.Call(limits, [&](const ChannelPtr& channel, grpc::ClientContext& context) {
          return KV::NewStub(channel)->Txn(&context, request, &response);
        }));
    if (response.succeeded()) {
      return StoreCreation{.created = true,
                           .entry = {std::string(key), std::string(value),
                                     static_cast<uint64_t>(response.header().revision()), lease}};
    }
    if (response.responses_size() != 1 || response.responses(0).response_range().kvs_size() != 1) {
      return errors::StoreError("{} answered a transaction on {} without the key's value", name(),
                                key);
    }
    StoreEntry entry = ToEntry(response.responses(0).response_range().kvs(0));
    // Under our own lease only we put: an earlier attempt of this call, whose answer was lost.
    const bool ours = lease != kNoLease && entry.lease == lease && entry.value == value;
    return StoreCreation{.created = ours, .entry = std::move(entry)};
  }

  Result<bool> Delete(std::string_view key, CallLimits limits) override {
    etcdserverpb::DeleteRangeRequest request;
    request.set_key(std::string(key));
    etcdserverpb::DeleteRangeResponse response;
    RETURN_IF_ERROR(
        connection_.Call(limits, [&](const ChannelPtr& channel, grpc::ClientContext& context) {
          return KV::NewStub(channel)->DeleteRange(&context, request, &response);
        }));
    return response.deleted() > 0;
  }

  Result<StoreSnapshot> RangePrefix(std::string_view prefix, uint64_t at_revision,
                                    CallLimits limits) override {
    etcdserverpb::RangeRequest request;
    request.set_key(std::string(prefix));
    request.set_range_end(EtcdRangeEnd(prefix));
    request.set_revision(static_cast<int64_t>(at_revision));
    etcdserverpb::RangeResponse response;
    RETURN_IF_ERROR(
        connection_.Call(limits, [&](const ChannelPtr& channel, grpc::ClientContext& context) {
          return KV::NewStub(channel)->Range(&context, request, &response);
        }));
    StoreSnapshot snapshot;
    snapshot.revision =
        at_revision != 0 ? at_revision : static_cast<uint64_t>(response.header().revision());
    for (const etcdserverpb::KeyValue& kv : response.kvs()) snapshot.entries.push_back(ToEntry(kv));
    return snapshot;
  }

  std::unique_ptr<Watch> WatchPrefix(std::string prefix, uint64_t from_revision,
                                     WatchEvents events) override {
    return WatchEtcd(connection_, std::move(prefix), from_revision, std::move(events));
  }

 private:
  EtcdConnection connection_;
};

}  // namespace

Result<std::unique_ptr<LeaseStore>> ConnectEtcd(EtcdOptions options) {
  ASSIGN_OR_RETURN(std::vector<EtcdEndpoint> endpoints, ParseEtcdEndpoints(options.endpoints));
  return std::unique_ptr<LeaseStore>(std::make_unique<EtcdStore>(std::move(endpoints)));
}

}  // namespace datasystem::cluster
