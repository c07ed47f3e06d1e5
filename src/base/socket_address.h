// "IPv4:port" and "[IPv6]:port", the only forms of an address that flags and the cluster store hold.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace datasystem {

struct SocketAddress {
  std::string host;  // numeric, without brackets
  uint16_t port = 0;

  // kInvalid names the part that is wrong.
  static Result<SocketAddress> Parse(std::string_view text);
  std::string ToString() const;
  // For bind and connect; returns the length.
  socklen_t ToSockaddr(sockaddr_storage& out) const;
  bool operator==(const SocketAddress&) const = default;
};

}  // namespace datasystem
