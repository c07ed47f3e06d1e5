#include "worker/worker_options.h"

namespace datasystem::worker {

using namespace config;  // NOLINT: the names of the flags

Result<WorkerOptions> WorkerOptions::FromFlags(const FlagValues& flags) {
  WorkerOptions options;
  ASSIGN_OR_RETURN(options.worker_address, SocketAddress::Parse(flags.Get(kWorkerAddress)));
  if (options.worker_address.port == 0) {
    return errors::Invalid("worker_address {} has port 0: others must know the port, choose one from 1 to 65535",
                           options.worker_address.ToString());
  }
  options.bind_address = options.worker_address;
  if (!flags.Get(kBindAddress).empty()) {
    ASSIGN_OR_RETURN(options.bind_address, SocketAddress::Parse(flags.Get(kBindAddress)));
  }
  options.etcd_address = flags.Get(kEtcdAddress);
  options.cluster_name = flags.Get(kClusterName);
  options.lease_ttl = std::chrono::seconds(flags.Get(kNodeTimeoutS));
  options.renew_interval = std::chrono::milliseconds(flags.Get(kHeartbeatIntervalMs));

  options.memory.size_bytes = flags.Get(kSharedMemorySizeMb) << 20;
  options.memory.arenas = flags.Get(kArenaPerTenant);
  options.memory.huge_pages = flags.Get(kEnableHugeTlb);
  options.memory.transparent_huge_pages = flags.Get(kEnableThp);
  options.memory.populate_at_start = flags.Get(kSharedMemoryPopulate);
  options.offer_shared_memory = flags.Get(kIpcThroughSharedMemory);
  options.unix_socket_dir = flags.Get(kUnixDomainSocketDir);
  options.inline_threshold_bytes = flags.Get(kOcShmTransferThresholdKb) << 10;
  options.clients_max = flags.Get(kMaxClientNum);
  options.keep_copies = flags.Get(kEnableDataReplication);
  options.enable_rdma = flags.Get(kEnableRdma);

  options.health_check_path = flags.Get(kHealthCheckPath);
  options.ready_check_path = flags.Get(kReadyCheckPath);
  options.liveness_check_path = flags.Get(kLivenessCheckPath);

  options.log.directory = flags.Get(kLogDir);
  options.log.file_prefix = flags.Get(kLogFilename).empty() ? "datasystem_worker" : flags.Get(kLogFilename);
  options.log.cluster_name = options.cluster_name;
  options.log.max_file_size_mb = flags.Get(kMaxLogSize);
  options.log.max_files = flags.Get(kMaxLogFileNum);
  options.log.to_stderr = flags.Get(kLogToStderr) || flags.Get(kAlsoLogToStderr);
  if (flags.Get(kLogToStderr)) options.log.directory.clear();
  const int least = std::min(flags.Get(kMinLogLevel), 2);  // 3, FATAL, still shows errors
  options.log.level = flags.Get(kVerbosity) > 0 ? LogLevel::kDebug
                                                : static_cast<LogLevel>(static_cast<int>(LogLevel::kInfo) + least);
  return options;
}

}  // namespace datasystem::worker
