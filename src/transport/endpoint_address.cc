#include "transport/endpoint_address.h"

#include <cstdint>
#include <cstring>

#include "base/hash.h"

namespace datasystem::transport {
namespace {

// magic and version (4), length of the UCX address (4), XXH3 of length and address (8), address.
constexpr std::string_view kMagic = "DSE1";
constexpr size_t kPrefix = 16;
// UCX addresses are tens of bytes, a few hundred with many devices.
constexpr size_t kAddressMax = 16 << 10;

uint64_t Checksum(uint32_t length, std::string_view address) {
  return HashKey(address) ^ (uint64_t{length} * 0x9E3779B97F4A7C15ULL);
}

}  // namespace

std::string WrapEndpoint(std::string_view ucx_address) {
  const auto length = static_cast<uint32_t>(ucx_address.size());
  const uint64_t checksum = Checksum(length, ucx_address);
  std::string endpoint(kMagic);
  endpoint.append(reinterpret_cast<const char*>(&length), sizeof(length));
  endpoint.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  endpoint.append(ucx_address);
  return endpoint;
}

Result<std::string> UnwrapEndpoint(std::string_view endpoint) {
  if (endpoint.size() < kPrefix) return errors::Invalid("an endpoint of {} bytes", endpoint.size());
  if (!endpoint.starts_with(kMagic)) return errors::Invalid("an endpoint of another kind or version");
  uint32_t length = 0;
  uint64_t checksum = 0;
  std::memcpy(&length, endpoint.data() + 4, sizeof(length));
  std::memcpy(&checksum, endpoint.data() + 8, sizeof(checksum));
  const std::string_view address = endpoint.substr(kPrefix);
  if (length != address.size() || length == 0 || length > kAddressMax) {
    return errors::Invalid("an endpoint of {} address bytes that claims {}", address.size(), length);
  }
  if (checksum != Checksum(length, address)) return errors::Invalid("an endpoint with a wrong checksum");
  return std::string(address);
}

}  // namespace datasystem::transport
