// The options of a client, completed from the environment and checked.
#pragma once

#include <chrono>

#include "base/result.h"
#include "base/socket_address.h"
#include "datasystem/utils/connection.h"

namespace datasystem::client {

struct Settings {
  SocketAddress worker;
  std::chrono::milliseconds connect_timeout;
  std::chrono::milliseconds request_timeout;
};

// Reads DATASYSTEM_HOST, DATASYSTEM_PORT and DATASYSTEM_CONNECT_TIME_MS; resolves a host name.
// kInvalid names the option or variable; kNotSupported: options that would give a false sense of safety.
Result<Settings> MakeSettings(const ConnectOptions& options);

// The worker's address from a numeric host or a name.
Result<SocketAddress> ResolveWorker(const std::string& host, int64_t port);

}  // namespace datasystem::client
