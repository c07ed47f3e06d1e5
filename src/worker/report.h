// The worker's own status as a JSON document: what `dscli status` shows. Fields: docs/status.md.
#pragma once

#include <string>

#include "worker/client_session.h"
#include "worker/node.h"
#include "worker/object_service.h"
#include "worker/placement.h"

namespace datasystem::worker {

struct ReportSources {
  std::string version;
  std::string cluster_name;
  std::string etcd_address;
  bool enable_rdma;
  bool ready;
  TimePoint started_at;
  const Node& node;
  const shm::CacheMemory& memory;
  const Placement& placement;
  shm::Index& index;
  const ClientSessions& sessions;
  uint64_t refused_connections;
  const ServiceCounters& counters;
};

// Threads: the event loop's.
std::string StatusReport(const ReportSources& sources);

}  // namespace datasystem::worker
