// Rules between flags, and the flags whose very use is refused. None needs the operating system.
#include "config/flag_row.h"

namespace datasystem::config {
namespace {

// Rules may look at flags that have no key.
template <typename T>
const T& ValueOf(const FlagValues& values, FlagId id) {
  return std::get<T>(values.value(id));
}

void RefusedFlags(const FlagValues& values, std::vector<std::string>& broken) {
  for (size_t i = 0; i < Table().size(); ++i) {
    const FlagRow& row = Table()[i];
    const FlagValue& value = values.value(static_cast<FlagId>(i));
    if (row.support != Support::kRefused || value == ToValue(row.binary_default)) continue;
    broken.push_back(
        fmt::format("--{}={} is not supported: {}", row.name, Shown(row, value), row.reason));
  }
}

}  // namespace

std::vector<std::string> BrokenRules(const FlagValues& values) {
  std::vector<std::string> broken;
  RefusedFlags(values, broken);

  const uint32_t timeout_s = values.Get(kNodeTimeoutS);
  const int32_t heartbeat_ms = values.Get(kHeartbeatIntervalMs);
  if (static_cast<uint64_t>(heartbeat_ms) >= uint64_t{timeout_s} * 1000) {
    broken.push_back(
        fmt::format("--heartbeat_interval_ms={} must be below --node_timeout_s={} (seconds)",
                    heartbeat_ms, timeout_s));
  }
  const uint32_t dead_s = ValueOf<uint32_t>(values, FlagId::node_dead_timeout_s);
  if (dead_s <= timeout_s) {
    broken.push_back(fmt::format("--node_dead_timeout_s={} must be above --node_timeout_s={}",
                                 dead_s, timeout_s));
  }
  if (values.Get(kSharedMemoryPopulate)) {
    if (values.Get(kArenaPerTenant) != 1) {
      broken.push_back(fmt::format("--shared_memory_populate needs --arena_per_tenant=1, not {}",
                                   values.Get(kArenaPerTenant)));
    }
    if (values.Get(kEnableFallocate)) {
      broken.push_back("--shared_memory_populate needs --enable_fallocate=false");
    }
  }
  if (values.Get(kEnableHugeTlb) && values.Get(kEnableThp)) {
    broken.push_back("--enable_huge_tlb and --enable_thp exclude each other: choose one");
  }
  if (values.Get(kEvictionLowWatermarkRatio) >= values.Get(kEvictionHighWatermarkRatio)) {
    broken.push_back(fmt::format("--eviction_low_watermark_ratio={} must be below --eviction_high_watermark_ratio={}",
                                 values.Get(kEvictionLowWatermarkRatio), values.Get(kEvictionHighWatermarkRatio)));
  }
  // Checked again here because "~" has been replaced by a folder of any length.
  const Rule& path_rule = RowOf(kUnixDomainSocketDir.id).rule;
  if (!path_rule.Allows(values.Get(kUnixDomainSocketDir))) {
    broken.push_back(fmt::format("--unix_domain_socket_dir={} is too long; allowed: {}",
                                 values.Get(kUnixDomainSocketDir), path_rule.Words()));
  }
  return broken;
}

}  // namespace datasystem::config
