#include "transport/network_device.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

namespace datasystem::transport {
namespace {

struct IpBytes {
  int family = 0;
  size_t size = 0;
  unsigned char bytes[16] = {};
};

IpBytes FromText(std::string_view ip) {
  const std::string text(ip);
  IpBytes parsed;
  if (::inet_pton(AF_INET, text.c_str(), parsed.bytes) == 1) {
    parsed.family = AF_INET;
    parsed.size = 4;
  } else if (::inet_pton(AF_INET6, text.c_str(), parsed.bytes) == 1) {
    parsed.family = AF_INET6;
    parsed.size = 16;
  }
  return parsed;
}

IpBytes FromSockaddr(const sockaddr* address) {
  IpBytes parsed;
  if (address == nullptr) return parsed;
  if (address->sa_family == AF_INET) {
    parsed.size = 4;
    std::memcpy(parsed.bytes, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
  } else if (address->sa_family == AF_INET6) {
    parsed.size = 16;
    std::memcpy(parsed.bytes, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
  }
  parsed.family = address->sa_family;
  return parsed;
}

bool SameUnder(const IpBytes& mask, const IpBytes& a, const IpBytes& b) {
  for (size_t i = 0; i < a.size; ++i) {
    if (((a.bytes[i] ^ b.bytes[i]) & mask.bytes[i]) != 0) return false;
  }
  return true;
}

std::string FirstLine(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::string InterfaceOf(std::string_view ip) {
  const IpBytes wanted = FromText(ip);
  ifaddrs* list = nullptr;
  if (wanted.size == 0 || ::getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::string holds_network;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const IpBytes address = FromSockaddr(entry->ifa_addr);
    if (address.family != wanted.family) continue;
    if (std::memcmp(address.bytes, wanted.bytes, wanted.size) == 0) return entry->ifa_name;
    const IpBytes mask = FromSockaddr(entry->ifa_netmask);
    if (holds_network.empty() && SameUnder(mask, address, wanted)) holds_network = entry->ifa_name;
  }
  return holds_network;
}

std::string RdmaDeviceOf(std::string_view interface, const std::string& sysfs_root) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const auto& device : fs::directory_iterator(sysfs_root + "/class/infiniband", error)) {
    for (const auto& port : fs::directory_iterator(device.path() / "ports", error)) {
      const fs::path gids = port.path() / "gid_attrs" / "ndevs";
      for (const auto& gid : fs::directory_iterator(gids, error)) {
        if (FirstLine(gid.path()) == interface) {
          return device.path().filename().string() + ":" + port.path().filename().string();
        }
      }
    }
  }
  return "";
}

}  // namespace datasystem::transport
