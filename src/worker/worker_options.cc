#include "worker/worker_options.h"

#include <algorithm>

namespace datasystem::worker {

using namespace config;  // NOLINT: the names of the flags

Watermarks Watermarks::Of(uint64_t size_bytes, double high_ratio, double low_ratio, uint64_t reserve_bytes) {
  const auto level = [size_bytes](double ratio, uint64_t free_bytes_max) {
    const auto by_ratio = static_cast<uint64_t>(ratio * static_cast<double>(size_bytes));
    const uint64_t by_reserve = size_bytes - std::min(size_bytes, free_bytes_max);
    return std::max(by_ratio, by_reserve);
  };
  return {.high_bytes = level(high_ratio, reserve_bytes), .low_bytes = level(low_ratio, 2 * reserve_bytes)};
}

// Of minloglevel and its like. 3, once "fatal", is error.
static LogLevel ToLogLevel(int32_t number) {
  return static_cast<LogLevel>(static_cast<int>(LogLevel::kInfo) + std::min(number, 2));
}

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

  options.memory.size_bytes = (flags.Get(kSharedMemorySizeMb) << 20) * flags.Get(kOcShmThresholdPercentage) / 100;
  options.memory.arenas = flags.Get(kArenaPerTenant);
  options.memory.huge_pages = flags.Get(kEnableHugeTlb);
  options.memory.transparent_huge_pages = flags.Get(kEnableThp);
  options.memory.populate_at_start = flags.Get(kSharedMemoryPopulate);
  options.memory.fallocate = flags.Get(kEnableFallocate);
  options.memory.return_idle_after = std::chrono::seconds(flags.Get(kMemoryReclamationTimeSecond));
  options.memory.pinned = flags.Get(kEnableRdma);
  options.watermarks = Watermarks::Of(options.memory.size_bytes, flags.Get(kEvictionHighWatermarkRatio),
                                      flags.Get(kEvictionLowWatermarkRatio),
                                      uint64_t{flags.Get(kEvictionReserveMemThresholdMb)} << 20);
  options.offer_shared_memory = flags.Get(kIpcThroughSharedMemory);
  options.unix_socket_dir = flags.Get(kUnixDomainSocketDir);
  options.inline_threshold_bytes = flags.Get(kOcShmTransferThresholdKb) << 10;
  options.clients_max = flags.Get(kMaxClientNum);
  options.keep_copies = flags.Get(kEnableDataReplication);
  options.many = {.value_max = flags.Get(kAggregateSingleMax),
                  .answer_max = flags.Get(kAggregateMergeSize)};
  options.enable_rdma = flags.Get(kEnableRdma);

  options.health_check_path = flags.Get(kHealthCheckPath);
  options.ready_check_path = flags.Get(kReadyCheckPath);
  options.liveness_check_path = flags.Get(kLivenessCheckPath);
  options.liveness_timeout = std::chrono::seconds(flags.Get(kLivenessProbeTimeoutS));

  options.log.directory = flags.Get(kLogDir);
  options.log.file_prefix = flags.Get(kLogFilename).empty() ? "datasystem_worker" : flags.Get(kLogFilename);
  options.log.cluster_name = options.cluster_name;
  options.log.max_file_size_mb = flags.Get(kMaxLogSize);
  options.log.file_mode = static_cast<unsigned>(flags.Get(kLogfileMode));
  options.log.stderr_level = flags.Get(kAlsoLogToStderr) ? LogLevel::kDebug : ToLogLevel(flags.Get(kStderrThreshold));
  options.old_logs = {.files_max = flags.Get(kMaxLogFileNum),
                      .retention_days = flags.Get(kLogRetentionDay),
                      .compress = flags.Get(kLogCompress)};
  if (flags.Get(kLogToStderr)) options.log.directory.clear();
  options.log.level = flags.Get(kVerbosity) > 0 ? LogLevel::kDebug : ToLogLevel(flags.Get(kMinLogLevel));
  return options;
}

}  // namespace datasystem::worker
