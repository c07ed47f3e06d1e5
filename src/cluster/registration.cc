#include "cluster/registration.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/socket_address.h"

namespace datasystem::cluster {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kFormat = 1;
// Worker addresses and memory keys of many lanes fit many times over.
constexpr size_t kEndpointSizeMax = 16 << 10;
constexpr size_t kVersionSizeMax = 64;
constexpr size_t kTextSizeMax = 2 * kEndpointSizeMax + 4096;

constexpr size_t kIncarnationDigits = 16;
constexpr char kDigits[] = "0123456789abcdef";

std::string ToHex(std::string_view bytes) {
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return hex;
}

bool FromHex(std::string_view hex, std::string& bytes) {
  if (hex.size() % 2 != 0) return false;
  bytes.clear();
  for (size_t i = 0; i < hex.size(); i += 2) {
    unsigned char byte = 0;
    const char* end = hex.data() + i + 2;
    const auto [stopped, error] = std::from_chars(hex.data() + i, end, byte, 16);
    if (error != std::errc() || stopped != end) return false;
    bytes += static_cast<char>(byte);
  }
  return true;
}

bool GetString(const Json& object, const char* name, std::string& out) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) return false;
  out = found->get<std::string>();
  return true;
}

bool GetUint32(const Json& value, uint32_t& out) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
    return false;
  }
  out = value.get<uint32_t>();
  return true;
}

bool IsPrintable(std::string_view text) {
  for (const char c : text) {
    if (c < ' ' || c > '~') return false;
  }
  return true;
}

// The rules for both directions.
Status Check(const Member& member) {
  if (const auto address = SocketAddress::Parse(member.address); !address.ok()) {
    return errors::Invalid("bad address: {}", address.status().GetMsg());
  }
  if (member.incarnation == 0) return errors::Invalid("bad incarnation: it is 0");
  if (member.endpoint.size() > kEndpointSizeMax) {
    return errors::Invalid("bad endpoint: {} bytes are more than {}", member.endpoint.size(),
                           kEndpointSizeMax);
  }
  if (member.protocol_min > member.protocol_max) {
    return errors::Invalid("bad protocol: {} to {}", member.protocol_min, member.protocol_max);
  }
  if (member.version.size() > kVersionSizeMax || !IsPrintable(member.version)) {
    return errors::Invalid("bad version: more than {} bytes, or not printable", kVersionSizeMax);
  }
  return Status::OK();
}

}  // namespace

std::string RegistrationPrefix(std::string_view cluster_name) {
  return fmt::format("/datasystem/{}/workers/", cluster_name.empty() ? "default" : cluster_name);
}

Result<std::string> EncodeRegistration(const Member& member) {
  RETURN_IF_ERROR(Check(member));
  // Ordered, so that people find the address first.
  nlohmann::ordered_json object;
  object["format"] = kFormat;
  object["address"] = member.address;
  object["incarnation"] = fmt::format("{:016x}", member.incarnation);
  object["protocol"] = {member.protocol_min, member.protocol_max};
  object["version"] = member.version;
  object["endpoint"] = ToHex(member.endpoint);
  return object.dump();
}

Result<Member> DecodeRegistration(std::string_view address, std::string_view text) {
  if (text.size() > kTextSizeMax) {
    return errors::Invalid("{} bytes are more than {}", text.size(), kTextSizeMax);
  }
  const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return errors::Invalid("not a JSON object");
  uint32_t format = 0;
  if (!object.contains("format") || !GetUint32(object["format"], format) || format != kFormat) {
    return errors::Invalid("not of format {}", kFormat);
  }
  Member member;
  if (!GetString(object, "address", member.address) || member.address != address) {
    return errors::Invalid("the address is not that of the key");
  }
  std::string incarnation;
  if (!GetString(object, "incarnation", incarnation)) return errors::Invalid("no incarnation");
  const char* end = incarnation.data() + incarnation.size();
  const auto [stopped, error] = std::from_chars(incarnation.data(), end, member.incarnation, 16);
  if (error != std::errc() || stopped != end || incarnation.size() != kIncarnationDigits) {
    return errors::Invalid("bad incarnation: not {} hexadecimal digits", kIncarnationDigits);
  }
  const auto protocol = object.find("protocol");
  if (protocol == object.end() || !protocol->is_array() || protocol->size() != 2 ||
      !GetUint32((*protocol)[0], member.protocol_min) ||
      !GetUint32((*protocol)[1], member.protocol_max)) {
    return errors::Invalid("bad protocol: not two numbers");
  }
  if (!GetString(object, "version", member.version)) return errors::Invalid("no version");
  std::string endpoint;
  if (!GetString(object, "endpoint", endpoint) || !FromHex(endpoint, member.endpoint)) {
    return errors::Invalid("bad endpoint: not bytes in hexadecimal");
  }
  RETURN_IF_ERROR(Check(member));
  return member;
}

}  // namespace datasystem::cluster
