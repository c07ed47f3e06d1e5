// What a worker is told to be. Made from the flags in one place, so that nothing else sees a flag.
#pragma once

#include <chrono>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "base/socket_address.h"
#include "config/flags.h"
#include "shm/cache_memory.h"
#include "worker/many_limits.h"
#include "worker/old_logs.h"

namespace datasystem::worker {

// Fill levels of the cache memory between which background eviction works.
struct Watermarks {
  uint64_t high_bytes = 0;  // reserved by the arenas: above, eviction starts
  uint64_t low_bytes = 0;   // and goes on until no more than this is

  // The ratios say how much stays free, but never more than the reserve, twice that at the low one.
  static Watermarks Of(uint64_t size_bytes, double high_ratio, double low_ratio, uint64_t reserve_bytes);
};

struct WorkerOptions {
  SocketAddress worker_address;  // announced
  SocketAddress bind_address;    // listened on
  std::string etcd_address;      // empty: a cluster of this one node
  std::string cluster_name;
  std::chrono::seconds lease_ttl{60};
  std::chrono::milliseconds renew_interval{1000};

  shm::CacheMemoryOptions memory;
  Watermarks watermarks;
  bool offer_shared_memory = true;
  std::string unix_socket_dir;
  uint64_t inline_threshold_bytes = 500 << 10;
  uint32_t clients_max = 200;
  bool keep_copies = true;
  ManyLimits many;

  bool enable_rdma = false;

  std::string health_check_path;  // each empty: none
  std::string ready_check_path;
  std::string liveness_check_path;
  std::chrono::seconds liveness_timeout{150};

  LogOptions log;
  OldLogLimits old_logs;

  // Errors that only the combination with this machine shows come later, from Worker::Create.
  static Result<WorkerOptions> FromFlags(const config::FlagValues& flags);
};

}  // namespace datasystem::worker
