#include "worker/start_check.h"

#include <asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "cluster/etcd_store.h"
#include "cluster/membership.h"
#include "cluster/registration.h"
#include "shm/segment.h"
#include "transport/survey.h"
#include "transport/ucx_context.h"
#include "worker/listener.h"
#include "worker/version.h"

namespace datasystem::worker {
namespace {

using nlohmann::json;

transport::UcxOptions UcxOptionsOf(const WorkerOptions& options) {
  transport::UcxOptions ucx;
  ucx.self = {options.worker_address.ToString(), 1};
  ucx.enable_rdma = options.enable_rdma;
  ucx.local_ip = options.worker_address.host;
  ucx.registered_bytes = options.memory.size_bytes;
  return ucx;
}

json TransportFacts(const WorkerOptions& options, bool rdma) {
  const transport::Survey survey = transport::SurveyUcx();
  json facts = {{"ucx_version", survey.ucx_version},
                {"ucx_libraries", survey.ucx_libraries},
                {"device", transport::CarryingDevice(options.worker_address.host, rdma)},
                {"rdma", rdma}};
  facts["devices"] = json::array();
  for (const transport::UcxDevice& each : survey.devices) {
    facts["devices"].push_back({{"transport", each.transport},
                                {"device", each.device},
                                {"rdma", transport::IsRdmaTransport(each.transport)}});
  }
  return facts;
}

// Who is in the cluster: reading that is how a start finds out whether it can be reached.
Result<json> Members(const WorkerOptions& options) {
  json members = json::array();
  if (options.etcd_address.empty()) return members;
  cluster::EtcdOptions etcd;
  etcd.endpoints = options.etcd_address;
  ASSIGN_OR_RETURN(const auto store, cluster::ConnectEtcd(std::move(etcd)));
  const std::string prefix = cluster::RegistrationPrefix(options.cluster_name);
  cluster::CallLimits limits;
  limits.deadline = Clock::Steady().Now() + cluster::MembershipOptions().store_timeout;
  ASSIGN_OR_RETURN(const auto found, store->RangePrefix(prefix, 0, limits));
  for (const auto& entry : found.entries) members.push_back(entry.key.substr(prefix.size()));
  return members;
}

}  // namespace

StartCheck CheckStart(const WorkerOptions& options) {
  json document = {{"version", kVersion}, {"checks", json::array()}};
  bool passed = true;
  const auto note = [&](const char* name, const Status& status) {
    document["checks"].push_back({{"name", name}, {"error", status.GetMsg()}});
    passed = passed && status.IsOk();
  };

  asio::io_context context;
  note("address", Listener::OpenTcp(context, options.bind_address).status());
  const Result<json> members = Members(options);
  note("etcd", members.status());
  if (members.ok()) document["members"] = *members;
  bool rdma = false;
  {
    const auto ucx = transport::UcxContext::Create(UcxOptionsOf(options));
    note("transport", ucx.status());
    rdma = ucx.ok() ? (*ucx)->rdma() : options.enable_rdma;
    // With UCX open, as in a start: it takes huge pages for buffers of its own.
    note("memory",
         shm::Segment::Create({.size_bytes = options.memory.size_bytes,
                               .huge_pages = options.memory.huge_pages,
                               .transparent_huge_pages = options.memory.transparent_huge_pages})
             .status());
  }
  document["transport"] = TransportFacts(options, rdma);
  return {.passed = passed, .json = document.dump(1, ' ', false, json::error_handler_t::replace)};
}

}  // namespace datasystem::worker
