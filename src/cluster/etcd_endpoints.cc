#include "cluster/etcd_endpoints.h"

#include <algorithm>
#include <charconv>

#include "base/socket_address.h"

namespace datasystem::cluster {
namespace {

constexpr size_t kEndpointsMax = 64;
constexpr size_t kHostNameSizeMax = 253;  // RFC 1035

bool IsHostName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= kHostNameSizeMax && name.front() != '-' &&
         name.front() != '.' && std::all_of(name.begin(), name.end(), allowed) &&
         // "10.0.0" or "300.1.1.1" is a mistyped number, not a name.
         !std::all_of(name.begin(), name.end(),
                      [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

Status Malformed(std::string_view text, std::string_view why) {
  return errors::Invalid("etcd_address: bad endpoint '{}': {}; expected ip:port or name:port", text,
                         why);
}

Result<EtcdEndpoint> ParseEndpoint(std::string_view text) {
  if (text.empty()) return Malformed(text, "it is empty");
  if (text.find("://") != text.npos) return Malformed(text, "leave out the scheme");
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return Malformed(text, "no port");
  const std::string_view port_text = text.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(port_text.begin(), port_text.end(), port);
  if (error != std::errc() || end != port_text.end() || port == 0)
    return Malformed(text, "bad port");

  if (const auto numeric = SocketAddress::Parse(text); numeric.ok()) {
    const char* family = text.front() == '[' ? "ipv6:" : "ipv4:";
    return EtcdEndpoint{std::string(text), family + std::string(text)};
  }
  if (!IsHostName(text.substr(0, colon))) return Malformed(text, "bad host");
  return EtcdEndpoint{std::string(text), "dns:///" + std::string(text)};
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Result<std::vector<EtcdEndpoint>> ParseEtcdEndpoints(std::string_view comma_list) {
  std::vector<EtcdEndpoint> endpoints;
  while (true) {
    const size_t comma = comma_list.find(',');
    ASSIGN_OR_RETURN(EtcdEndpoint endpoint, ParseEndpoint(Trim(comma_list.substr(0, comma))));
    endpoints.push_back(std::move(endpoint));
    if (endpoints.size() > kEndpointsMax) {
      return errors::Invalid("etcd_address: more than {} endpoints", kEndpointsMax);
    }
    if (comma == comma_list.npos) return endpoints;
    comma_list.remove_prefix(comma + 1);
  }
}

}  // namespace datasystem::cluster
