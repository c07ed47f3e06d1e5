#include "worker/report.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

namespace datasystem::worker {
namespace {

void ReportPlacement(const Placement& placement, nlohmann::json& memory) {
  memory["page_bytes"] = placement.page_bytes();
  memory["network_device"] = placement.device();
  if (placement.device_node() >= 0) memory["network_device_node"] = placement.device_node();
  else memory["network_device_node"] = nullptr;
  memory["nodes"] = nlohmann::json::array();
  const shm::NodeShares shares = placement.nodes();
  uint32_t places = 0;
  for (const auto& [node, count] : shares) places += count;
  for (const auto& [node, count] : shares) {
    memory["nodes"].push_back({{"node", node}, {"share_percent", 100 * count / places}});
    const int distance = NodeDistance(placement.device_node(), node);
    if (distance > 0) memory["nodes"].back()["distance_to_device"] = distance;
  }
}

}  // namespace

std::string StatusReport(const ReportSources& sources) {
  using nlohmann::json;
  const Node& node = sources.node;
  json report;
  report["version"] = sources.version;
  report["address"] = node.view.self().address;
  report["pid"] = ::getpid();
  report["uptime_s"] =
      std::chrono::duration_cast<std::chrono::seconds>(node.clock.Now() - sources.started_at).count();
  report["ready"] = sources.ready;
  const Status serving = node.view.Serving();
  report["serving"] = serving.IsOk();
  report["not_serving_because"] = serving.GetMsg();

  json& cluster = report["cluster"];
  cluster["name"] = sources.cluster_name;
  cluster["etcd_address"] = sources.etcd_address;
  cluster["epoch"] = node.view.epoch();
  cluster["members"] = json::array();
  for (const cluster::Member& member : node.view.view().members) {
    cluster["members"].push_back({{"address", member.address},
                                  {"version", member.version},
                                  {"incarnation", fmt::format("{:016x}", member.incarnation)}});
  }

  const shm::CacheMemoryUsage usage = sources.memory.usage();
  report["memory"] = {{"size_bytes", usage.size_bytes},
                      {"allocated_bytes", usage.allocated_bytes},
                      {"reserved_bytes", usage.reserved_bytes},
                      {"largest_free_bytes", usage.largest_free_bytes},
                      {"populated_bytes", usage.populated_bytes}};
  ReportPlacement(sources.placement, report["memory"]);
  const store::StoreStats stats = node.store.stats();
  report["objects"] = {{"count", stats.objects},
                       {"bytes", stats.object_bytes},
                       {"evictions", stats.evictions},
                       {"expirations", stats.expirations},
                       {"retired", stats.retired}};
  const shm::IndexUsage index = sources.index.usage();
  report["index"] = {{"bytes_max", index.bytes_max},
                     {"record_bytes", index.record_bytes},
                     {"table_bytes", index.table_bytes},
                     {"pinned", sources.index.pins().Collect().size()}};
  report["directory"] = {{"entries", node.directory.entries()}, {"complete", node.directory.settled()}};
  report["clients"] = {{"count", sources.sessions.size()},
                       {"pins", sources.sessions.pins()},
                       {"unpublished_bytes", sources.sessions.memory().buffer_bytes},
                       {"leased_bytes", sources.sessions.memory().leased_bytes},
                       {"refused_connections", sources.refused_connections}};
  report["requests"] = {{"sets", sources.counters.sets},
                        {"local_hits", sources.counters.local_hits},
                        {"remote_hits", sources.counters.remote_hits},
                        {"misses", sources.counters.misses},
                        {"failures", sources.counters.failures}};
  report["enable_rdma"] = sources.enable_rdma;
  report["peers"] = json::array();
  for (const transport::PeerStatus& peer : node.transport.peers()) {
    report["peers"].push_back({{"address", peer.id.address},
                               {"lane", peer.lane},
                               {"calls", peer.calls},
                               {"failures", peer.failures},
                               {"payload_bytes_sent", peer.payload_bytes_sent},
                               {"payload_bytes_received", peer.payload_bytes_received}});
  }
  return report.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace datasystem::worker
