#include "transport/lanes.h"

#include <sys/resource.h>
#include <uct/api/uct.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string_view>

namespace datasystem::transport {
namespace {

struct Preference {
  std::string_view transport;  // as UCX lists it
  std::string_view tls;        // what UCX_TLS calls it, helper transports for wire-up included
};

// rc_x first: reliable, and driven without the kernel's verbs. Then what comes closest.
constexpr Preference kPreferences[] = {{"rc_mlx5", "rc_x"},
                                       {"rc_verbs", "rc_v"},
                                       {"dc_mlx5", "dc_x"},
                                       {"ud_mlx5", "ud_x"},
                                       {"ud_verbs", "ud_v"}};

void AppendTransports(uct_md_h domain, std::vector<UcxDevice>& devices) {
  uct_tl_resource_desc_t* resources = nullptr;
  unsigned count = 0;
  if (uct_md_query_tl_resources(domain, &resources, &count) != UCS_OK) return;
  for (unsigned i = 0; i < count; ++i) devices.push_back({resources[i].tl_name, resources[i].dev_name});
  uct_release_tl_resource_list(resources);
}

void AppendComponent(uct_component_h component, std::vector<UcxDevice>& devices) {
  uct_component_attr_t attributes{};
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
  if (uct_component_query(component, &attributes) != UCS_OK) return;
  std::vector<uct_md_resource_desc_t> domains(attributes.md_resource_count);
  attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
  attributes.md_resources = domains.data();
  if (uct_component_query(component, &attributes) != UCS_OK) return;
  for (const uct_md_resource_desc_t& domain : domains) {
    uct_md_config_t* config = nullptr;
    if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) continue;
    uct_md_h opened = nullptr;
    if (uct_md_open(component, domain.md_name, config, &opened) == UCS_OK) {
      AppendTransports(opened, devices);
      uct_md_close(opened);
    }
    uct_config_release(config);
  }
}

// Does a value of UCX_TLS ask for RDMA? Names of groups ("ib", "all") do, exclusions cannot be told.
bool AsksForRdma(std::string_view tls) {
  while (!tls.empty()) {
    const size_t comma = std::min(tls.find(','), tls.size());
    std::string_view token = tls.substr(0, comma);
    if (token.starts_with('\\')) token.remove_prefix(1);
    if (token == "ib" || token == "all" || token.starts_with('^') || IsRdmaTransport(std::string(token))) {
      return true;
    }
    tls.remove_prefix(std::min(comma + 1, tls.size()));
  }
  return false;
}

bool ExemptFromMemlock() {
  constexpr int kCapIpcLock = 14;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:")) {
      return ((std::strtoull(line.c_str() + 7, nullptr, 16) >> kCapIpcLock) & 1) != 0;
    }
  }
  return false;
}

}  // namespace

std::vector<UcxDevice> ListUcxDevices() {
  std::vector<UcxDevice> devices;
  uct_component_h* components = nullptr;
  unsigned count = 0;
  if (uct_query_components(&components, &count) != UCS_OK) return devices;
  for (unsigned i = 0; i < count; ++i) AppendComponent(components[i], devices);
  uct_release_component_list(components);
  return devices;
}

std::string Describe(const std::vector<UcxDevice>& devices) {
  std::string text;
  for (const UcxDevice& device : devices) {
    if (!text.empty()) text += ", ";
    text += device.transport + "/" + device.device;
  }
  return text.empty() ? "none" : text;
}

bool IsRdmaTransport(const std::string& transport) {
  return transport.starts_with("rc") || transport.starts_with("dc") || transport.starts_with("ud");
}

Result<LaneChoice> ChooseLanes(bool enable_rdma, const std::optional<std::string>& ucx_tls,
                               const std::vector<UcxDevice>& devices) {
  if (!enable_rdma) return LaneChoice{.tls = "tcp", .rdma = false};
  if (ucx_tls.has_value()) {
    const bool exist = std::any_of(devices.begin(), devices.end(),
                                   [](const UcxDevice& each) { return IsRdmaTransport(each.transport); });
    return LaneChoice{.tls = *ucx_tls, .rdma = exist && AsksForRdma(*ucx_tls)};
  }
  for (const Preference& preference : kPreferences) {
    for (const UcxDevice& device : devices) {
      if (device.transport == preference.transport) {
        return LaneChoice{.tls = std::string(preference.tls), .rdma = true};
      }
    }
  }
  return errors::Runtime(
      "enable_rdma is true, but UCX finds no RDMA device on this machine (there are: {}). Check the device "
      "and its driver (ibv_devices), or set UCX_TLS=tcp, or start with enable_rdma=false",
      Describe(devices));
}

size_t CountCards(const std::vector<UcxDevice>& devices, const std::string& net_devices) {
  const bool all = net_devices.empty() || net_devices == "all" || net_devices.starts_with('^');
  std::set<std::string> cards;
  for (const UcxDevice& each : devices) {
    const std::string card = each.device.substr(0, each.device.find(':'));
    if (!IsRdmaTransport(each.transport)) continue;
    if (all || ("," + net_devices).find("," + card + ":") != std::string::npos) cards.insert(card);
  }
  return std::max<size_t>(1, cards.size());
}

Status CheckMemlock(uint64_t limit_bytes, uint64_t needed_bytes, bool rdma) {
  if (!rdma || limit_bytes >= needed_bytes) return Status::OK();
  return errors::Runtime(
      "RDMA has to lock {} bytes of memory, but the limit on locked memory is {} bytes. Raise it: `ulimit -l "
      "unlimited` in the shell, LimitMEMLOCK=infinity in a systemd unit, or the capability IPC_LOCK in a "
      "container",
      needed_bytes, limit_bytes);
}

uint64_t MemlockLimit() {
  rlimit limit{};
  if (ExemptFromMemlock() || ::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return UINT64_MAX;
  }
  return limit.rlim_cur;
}

}  // namespace datasystem::transport
