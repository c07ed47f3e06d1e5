#include "transport/survey.h"

#include <link.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "transport/network_device.h"
#include "transport/ucx_log.h"

namespace datasystem::transport {
namespace {

int NoteUcxLibrary(dl_phdr_info* info, size_t, void* paths) {
  namespace fs = std::filesystem;
  const std::string name = fs::path(info->dlpi_name).filename();
  if (!name.starts_with("libucp") && !name.starts_with("libuct") && !name.starts_with("libucs") &&
      !name.starts_with("libucm")) {
    return 0;
  }
  std::error_code error;
  const fs::path file = fs::canonical(info->dlpi_name, error);
  static_cast<std::vector<std::string>*>(paths)->push_back(error ? info->dlpi_name : file.string());
  return 0;
}

}  // namespace

Survey SurveyUcx() {
  RedirectUcxLog();
  Survey survey;
  survey.ucx_version = ucp_get_version_string();
  survey.devices = ListUcxDevices();  // loads the modules, which are libraries too
  ::dl_iterate_phdr(NoteUcxLibrary, &survey.ucx_libraries);
  std::ranges::sort(survey.ucx_libraries);
  return survey;
}

std::string CarryingDevice(std::string_view local_ip, bool rdma) {
  const char* value = std::getenv("UCX_NET_DEVICES");
  const std::string asked = value == nullptr ? "" : value;
  if (!asked.empty() && asked != "all" && !asked.starts_with('^'))
    return asked.substr(0, asked.find(','));
  const std::string interface = InterfaceOf(local_ip);
  const std::string device = rdma && !interface.empty() ? RdmaDeviceOf(interface) : "";
  return device.empty() ? interface : device;
}

int NumaNodeOf(std::string_view device, const std::string& sysfs_root) {
  const std::string name(device.substr(0, device.find(':')));
  if (name.empty() || name.find('/') != std::string::npos) return -1;
  const std::string cards = sysfs_root + "/class/infiniband/";
  const std::string interfaces = sysfs_root + "/class/net/";
  std::string parent = "none";  // of software RoCE: the interface
  std::ifstream(cards + name + "/parent") >> parent;
  // A virtual card hangs below its PCI device, which knows the node.
  for (const std::string& folder :
       {cards + name + "/device", interfaces + name + "/device", interfaces + name + "/device/..",
        interfaces + parent + "/device", interfaces + parent + "/device/.."}) {
    std::ifstream file(folder + "/numa_node");
    if (int node = -1; file >> node) return node;
  }
  return -1;
}

}  // namespace datasystem::transport
