#include "transport/ucx_context.h"

#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>

#include <csignal>
#include <cstdlib>
#include <optional>

#include "base/clock.h"
#include "base/log.h"
#include "transport/lanes.h"
#include "transport/network_device.h"
#include "transport/ucx_log.h"
#include "transport/wire_header.h"

namespace datasystem::transport {
namespace {

// Queues and buffers that UCX itself registers, on top of the cache memory.
constexpr uint64_t kUcxOwnBytes = 64 << 20;
constexpr auto kConnectToSelfMax = std::chrono::seconds(20);

// The environment is UCX's configuration interface, which operators use; ours is not in it.
std::optional<std::string> Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// UCX catches SIGSEGV and its like when it is loaded. That is the business of the process that loads us.
void LeaveSignalsAlone() {
  if (Environment("UCX_HANDLE_ERRORS").has_value()) return;
  for (int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) ucs_debug_disable_signal(signal);
}

class Config {
 public:
  ~Config() {
    if (config_ != nullptr) ucp_config_release(config_);
  }
  Status Read() {
    const ucs_status_t status = ucp_config_read(nullptr, nullptr, &config_);
    if (status == UCS_OK) return Status::OK();
    return errors::Runtime("UCX does not accept the UCX_* settings of the environment: {}",
                           ucs_status_string(status));
  }
  // Of ours; the environment wins.
  Status SetUnlessInEnvironment(const char* variable, const char* key, const std::string& value) {
    return Environment(variable).has_value() ? Status::OK() : Set(key, value);
  }
  Status Set(const char* key, const std::string& value) {
    const ucs_status_t status = ucp_config_modify(config_, key, value.c_str());
    if (status == UCS_OK) return Status::OK();
    return errors::Runtime("UCX does not accept {}={}: {}", key, value, ucs_status_string(status));
  }
  const ucp_config_t* get() const { return config_; }

 private:
  ucp_config_t* config_ = nullptr;
};

// "" leaves the choice to UCX.
std::string ChooseDevices(const UcxOptions& options, const LaneChoice& lanes) {
  const std::string interface = InterfaceOf(options.local_ip);
  if (interface.empty()) {
    if (!options.local_ip.empty() && options.local_ip != "0.0.0.0" && options.local_ip != "::") {
      LOG_WARNING("no network interface holds the worker's address, UCX chooses one ip={}", options.local_ip);
    }
    return "";
  }
  if (!lanes.rdma) return lanes.tls == "tcp" ? interface : "";
  const std::string rdma = RdmaDeviceOf(interface);
  if (rdma.empty()) return "";
  return lanes.tls.find("tcp") == std::string::npos ? rdma : rdma + "," + interface;
}

// By a list as in UCX_TLS: names, or "^" and those that are not to be used.
bool MayUseTcp(const std::string& tls) {
  const bool named = tls.find("tcp") != std::string::npos;
  return tls.starts_with('^') ? !named : named || tls.find("all") != std::string::npos;
}

Status Unusable(const LaneChoice& lanes, std::string_view cause) {
  const std::string devices = Environment("UCX_NET_DEVICES").value_or("");
  return errors::Runtime(
      "UCX_TLS={}{} cannot be used on this machine: {}. Transports and devices that exist: {}. Set UCX_TLS to "
      "transports that exist (UCX_TLS=tcp always does), or start with enable_rdma=false",
      lanes.tls, devices.empty() ? "" : " with UCX_NET_DEVICES=" + devices, cause,
      Describe(ListUcxDevices()));
}

}  // namespace

Result<std::unique_ptr<UcxContext>> UcxContext::Create(const UcxOptions& options) {
#ifndef DS_WITH_RDMA
  if (options.enable_rdma) {
    return errors::NotSupported(
        "enable_rdma is true, but this build has no RDMA support: rebuild with `bash build.sh -A on`, or start "
        "with enable_rdma=false");
  }
#endif
  RedirectUcxLog();
  LeaveSignalsAlone();
  std::unique_ptr<UcxContext> context(new UcxContext());
  RETURN_IF_ERROR(context->Open(options));
  return context;
}

Status UcxContext::Open(const UcxOptions& options) {
  if (!Environment("UCX_WARN_UNUSED_ENV_VARS").has_value()) {
    (void)ucs_global_opts_set_value("WARN_UNUSED_ENV_VARS", "n");
  }
  const std::optional<std::string> ucx_tls = Environment("UCX_TLS");
  const std::vector<UcxDevice> devices = options.enable_rdma ? ListUcxDevices() : std::vector<UcxDevice>();
  ASSIGN_OR_RETURN(const LaneChoice lanes, ChooseLanes(options.enable_rdma, ucx_tls, devices));
  const std::string chosen = ChooseDevices(options, lanes);
  const size_t cards = CountCards(devices, Environment("UCX_NET_DEVICES").value_or(chosen));
  RETURN_IF_ERROR(CheckMemlock(MemlockLimit(), cards * options.registered_bytes + kUcxOwnBytes, lanes.rdma));

  rdma_ = lanes.rdma;
  Config config;
  RETURN_IF_ERROR(config.Read());
  RETURN_IF_ERROR(config.Set("TLS", lanes.tls));
  if (!chosen.empty()) {
    RETURN_IF_ERROR(config.SetUnlessInEnvironment("UCX_NET_DEVICES", "NET_DEVICES", chosen));
  }
  // 8 KiB segments, the default of tcp, cost more than half of its bandwidth. Where there is no tcp UCX complains.
  if (MayUseTcp(lanes.tls)) {
    RETURN_IF_ERROR(config.SetUnlessInEnvironment("UCX_TCP_TX_SEG_SIZE", "TX_SEG_SIZE", "256k"));
    RETURN_IF_ERROR(config.SetUnlessInEnvironment("UCX_TCP_RX_SEG_SIZE", "RX_SEG_SIZE", "256k"));
  }

  const UcxComplaints complaints;
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "datasystem";
  const ucs_status_t status = ucp_init(&params, config.get(), &context_);
  if (status != UCS_OK) {
    context_ = nullptr;
    const std::string cause = complaints.text();
    return Unusable(lanes, cause.empty() ? ucs_status_string(status) : cause);
  }
  RETURN_IF_ERROR(CreateWorker());
  if (const Status usable = CheckUsable(); usable.IsError()) {
    const std::string said = complaints.text();
    return Unusable(lanes, usable.GetMsg() + (said.empty() ? "" : " (" + said + ")"));
  }
  if (options.enable_rdma && !ucx_tls.has_value() && lanes.tls != "rc_x") {
    LOG_WARNING("rc_x is not available here, using another RDMA transport tls={}", lanes.tls);
  }
  return Status::OK();
}

Status UcxContext::CreateWorker() {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucs_status_t status = ucp_worker_create(context_, &params, &worker_);
  if (status != UCS_OK) {
    worker_ = nullptr;
    return errors::Runtime("UCX cannot open its devices: {}", ucs_status_string(status));
  }
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  status = ucp_worker_query(worker_, &attributes);
  // A message's head has to fit, with room for a typical body.
  if (status != UCS_OK || attributes.max_am_header < 4 * WireHeader::kSize) {
    return errors::Runtime("UCX's messages on these devices are too small: {} bytes of header",
                           attributes.max_am_header);
  }
  am_header_max_ = attributes.max_am_header;
  ucp_address_t* address = nullptr;
  size_t size = 0;
  status = ucp_worker_get_address(worker_, &address, &size);
  if (status != UCS_OK) return errors::Runtime("UCX has no address: {}", ucs_status_string(status));
  address_.assign(reinterpret_cast<const char*>(address), size);
  ucp_worker_release_address(worker_, address);
  return Status::OK();
}

Status UcxContext::CheckUsable() {
  // An endpoint to ourselves shows it: UCX refuses when no lane can report that the peer died.
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.address = reinterpret_cast<const ucp_address_t*>(address_.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  ucp_ep_h endpoint = nullptr;
  const ucs_status_t status = ucp_ep_create(worker_, &params, &endpoint);
  if (status != UCS_OK) {
    return errors::Runtime("no transport that notices a peer's death: {}", ucs_status_string(status));
  }
  const Status connected = ConnectToSelf(endpoint);
  if (connected.IsOk() || !rdma_) {
    Close(endpoint);
  } else {
    // UCX 1.13 aborts the process when it drops an endpoint that is just connecting by datagrams, with its worker or
    // alone: rather leave them to the end of the process, which is near.
    worker_ = nullptr;
    context_ = nullptr;
  }
  return connected;
}

// Also a test of the network: with the wrong GID, RDMA devices open well and carry nothing.
Status UcxContext::ConnectToSelf(ucp_ep_h endpoint) {
  ucp_request_param_t params{};
  ucs_status_ptr_t flush = ucp_ep_flush_nbx(endpoint, &params);
  if (!UCS_PTR_IS_PTR(flush)) {
    if (UCS_PTR_STATUS(flush) == UCS_OK) return Status::OK();
    return errors::Runtime("no connection: {}", ucs_status_string(UCS_PTR_STATUS(flush)));
  }
  const TimePoint until = Clock::Steady().Now() + kConnectToSelfMax;
  ucs_status_t status = UCS_INPROGRESS;
  while (status == UCS_INPROGRESS && Clock::Steady().Now() < until) {
    ucp_worker_progress(worker_);
    status = ucp_request_check_status(flush);
  }
  ucp_request_free(flush);  // UCX keeps it until it ends
  if (status == UCS_INPROGRESS) {
    return errors::Runtime(
        "a connection to this worker itself is not made within {} s: packets get lost. On RoCE the GID may be of the "
        "wrong kind: `show_gids`, or /sys/class/infiniband/*/ports/1/gids/*, lists them, UCX_IB_GID_INDEX chooses",
        std::chrono::duration_cast<std::chrono::seconds>(kConnectToSelfMax).count());
  }
  if (status != UCS_OK) return errors::Runtime("no connection: {}", ucs_status_string(status));
  return Status::OK();
}

void UcxContext::Close(ucp_ep_h endpoint) {
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  ucs_status_ptr_t closing = ucp_ep_close_nbx(endpoint, &how);
  if (!UCS_PTR_IS_PTR(closing)) return;
  while (ucp_request_check_status(closing) == UCS_INPROGRESS) ucp_worker_progress(worker_);
  ucp_request_free(closing);
}

Status UcxContext::RegisterMemory(std::span<std::byte> memory) {
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = memory.data();
  params.length = memory.size();
  ucp_mem_h handle = nullptr;
  const UcxComplaints complaints;
  const ucs_status_t status = ucp_mem_map(context_, &params, &handle);
  if (status != UCS_OK) {
    return errors::Runtime("cannot register {} bytes of cache memory for RDMA: {} {}", memory.size(),
                           ucs_status_string(status), complaints.text());
  }
  registered_.push_back(handle);
  return Status::OK();
}

UcxContext::~UcxContext() {
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  for (ucp_mem_h handle : registered_) (void)ucp_mem_unmap(context_, handle);
  if (context_ != nullptr) ucp_cleanup(context_);
}

}  // namespace datasystem::transport
