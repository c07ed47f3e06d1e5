// How a client reaches its worker.
#pragma once

#include <cstdint>
#include <string>

#include "datasystem/utils/sensitive_value.h"
#include "datasystem/utils/status.h"

namespace datasystem {

// The order of the fields is part of the interface (designated initialisers).
// This version has no authentication and no tenants yet: Init() refuses options that ask for them
// (K_NOT_SUPPORTED) instead of leaving traffic unprotected without a word.
struct ConnectOptions {
  std::string host = "";  // address of the worker; empty: environment variable DATASYSTEM_HOST
  int32_t port = 0;       // 0: environment variable DATASYSTEM_PORT
  // For Init(), handshake included. While it has its default the environment variable
  // DATASYSTEM_CONNECT_TIME_MS, if set, takes its place.
  int32_t connectTimeoutMs = 60000;
  int32_t requestTimeoutMs = 0;  // for every other call; 0 or less: as connectTimeoutMs
  SensitiveValue token = {};
  std::string clientPublicKey = "";
  SensitiveValue clientPrivateKey = {};
  std::string serverPublicKey = "";
  std::string accessKey = "";
  SensitiveValue secretKey = {};
  std::string tenantId = "";
  bool enableCrossNodeConnection = false;  // accepted; a client stays with the worker it was given
  bool enableExclusiveConnection = false;  // accepted; every thread has a connection of its own anyway
  bool enableRemoteH2D = false;            // accepted; concerns heterogeneous objects only

  void SetAkSkAuth(const std::string& accessKeyId, const SensitiveValue& secret,
                   const std::string& tenant) {
    accessKey = accessKeyId;
    secretKey = secret;
    tenantId = tenant;
  }
};

}  // namespace datasystem
