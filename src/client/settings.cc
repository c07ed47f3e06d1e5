#include "client/settings.h"

#include <netdb.h>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <memory>

namespace datasystem::client {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// `fallback` when the variable is not set.
Result<int32_t> EnvironmentNumber(const char* name, int32_t fallback) {
  const std::string text = Environment(name);
  if (text.empty()) return fallback;
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    return errors::Invalid("environment variable {} is '{}', expected a number from 0 to {}", name, text,
                           std::numeric_limits<int32_t>::max());
  }
  return number;
}

Status RefuseUnprotected(const ConnectOptions& options) {
  const struct {
    const char* name;
    bool given;
  } security[] = {
      {"token", !options.token.Empty()},
      {"clientPublicKey", !options.clientPublicKey.empty()},
      {"clientPrivateKey", !options.clientPrivateKey.Empty()},
      {"serverPublicKey", !options.serverPublicKey.empty()},
      {"accessKey", !options.accessKey.empty()},
      {"secretKey", !options.secretKey.Empty()},
      {"tenantId", !options.tenantId.empty()},
  };
  for (const auto& option : security) {
    if (!option.given) continue;
    return errors::NotSupported(
        "{} is set, but this version has no authentication, encryption or tenants: leave it empty",
        option.name);
  }
  return Status::OK();
}

}  // namespace

Result<SocketAddress> ResolveWorker(const std::string& host, int64_t port) {
  if (host.empty()) {
    return errors::Invalid("no worker host: give one, or set the environment variable DATASYSTEM_HOST");
  }
  if (port == 0) {
    return errors::Invalid("no worker port: give one, or set the environment variable DATASYSTEM_PORT");
  }
  if (port < 0 || port > 65535) {
    return errors::Invalid("worker port {} is out of range: expected 1 to 65535", port);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return errors::Invalid("worker host '{}' cannot be resolved: {}", host, ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  char numeric[NI_MAXHOST];
  if (const int error = ::getnameinfo(found->ai_addr, found->ai_addrlen, numeric, sizeof(numeric),
                                      nullptr, 0, NI_NUMERICHOST);
      error != 0) {
    return errors::Invalid("worker host '{}' cannot be resolved: {}", host, ::gai_strerror(error));
  }
  return SocketAddress{.host = numeric, .port = static_cast<uint16_t>(port)};
}

Result<Settings> MakeSettings(const ConnectOptions& options) {
  RETURN_IF_ERROR(RefuseUnprotected(options));
  if (options.connectTimeoutMs < 0) {
    return errors::Invalid("connectTimeoutMs is {}, expected 0 or more", options.connectTimeoutMs);
  }
  Settings settings;
  int32_t port = options.port;
  if (port == 0) {
    ASSIGN_OR_RETURN(port, EnvironmentNumber("DATASYSTEM_PORT", 0));
  }
  const std::string host = options.host.empty() ? Environment("DATASYSTEM_HOST") : options.host;
  ASSIGN_OR_RETURN(settings.worker, ResolveWorker(host, port));

  const int32_t standard = ConnectOptions{}.connectTimeoutMs;
  int32_t connect_ms = options.connectTimeoutMs;
  if (connect_ms == standard) {
    ASSIGN_OR_RETURN(connect_ms, EnvironmentNumber("DATASYSTEM_CONNECT_TIME_MS", standard));
  }
  if (connect_ms == 0) connect_ms = standard;
  settings.connect_timeout = std::chrono::milliseconds(connect_ms);
  settings.request_timeout =
      std::chrono::milliseconds(options.requestTimeoutMs > 0 ? options.requestTimeoutMs : connect_ms);
  return settings;
}

}  // namespace datasystem::client
