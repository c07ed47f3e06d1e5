#include "base/socket_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>
#include <cstring>

namespace datasystem {

Result<SocketAddress> SocketAddress::Parse(std::string_view text) {
  const bool bracketed = text.starts_with('[');
  const size_t colon = bracketed ? text.find("]:") : text.rfind(':');
  if (colon == std::string_view::npos) {
    return errors::Invalid("address '{}' has no port: expected IPv4:port or [IPv6]:port", text);
  }
  SocketAddress address;
  address.host = bracketed ? text.substr(1, colon - 1) : text.substr(0, colon);
  const std::string_view port = text.substr(colon + (bracketed ? 2 : 1));
  auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || end != port.data() + port.size()) {
    return errors::Invalid("address '{}' has a bad port '{}': expected 0 to 65535", text, port);
  }
  in6_addr scratch;
  if (::inet_pton(bracketed ? AF_INET6 : AF_INET, address.host.c_str(), &scratch) != 1) {
    return errors::Invalid("address '{}' has a bad host '{}': expected IPv4:port or [IPv6]:port", text,
                           address.host);
  }
  return address;
}

std::string SocketAddress::ToString() const {
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

socklen_t SocketAddress::ToSockaddr(sockaddr_storage& out) const {
  std::memset(&out, 0, sizeof(out));
  if (host.find(':') != std::string::npos) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    ::inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr);
    return sizeof(*v6);
  }
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out);
  v4->sin_family = AF_INET;
  v4->sin_port = htons(port);
  ::inet_pton(AF_INET, host.c_str(), &v4->sin_addr);
  return sizeof(*v4);
}

}  // namespace datasystem
