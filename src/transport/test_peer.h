// What ucx_transport_test and its other process, test_peer, agree on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace datasystem::transport {

constexpr uint16_t kPeerEcho = 1;
constexpr uint16_t kPeerFetch = 2;   // the body is the payload's size
constexpr uint16_t kPeerIgnore = 3;  // never answered
constexpr uint64_t kPeerSeed = 5;    // of the payload's pattern

inline std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned char byte : bytes) hex.append({kDigits[byte >> 4], kDigits[byte & 15]});
  return hex;
}

inline std::string FromHex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

}  // namespace datasystem::transport
