#include "session/key_rules.h"

#include <array>

namespace datasystem::session {
namespace {

constexpr std::string_view kPunctuation = "-_!@#%^*()+=:;~$&.";

constexpr std::array<bool, 256> LegalBytes() {
  std::array<bool, 256> legal{};
  for (int c = 'a'; c <= 'z'; ++c) legal[c] = true;
  for (int c = 'A'; c <= 'Z'; ++c) legal[c] = true;
  for (int c = '0'; c <= '9'; ++c) legal[c] = true;
  for (const char c : kPunctuation) legal[static_cast<unsigned char>(c)] = true;
  return legal;
}

constexpr std::array<bool, 256> kLegalBytes = LegalBytes();

}  // namespace

Status CheckKey(std::string_view key) {
  if (key.empty()) return errors::Invalid("The objectKey should not be empty.");
  if (key.size() > kKeyMax) {
    return errors::Invalid("The objectKey has {} bytes, the limit is {}.", key.size(), kKeyMax);
  }
  for (size_t i = 0; i < key.size(); ++i) {
    const auto byte = static_cast<unsigned char>(key[i]);
    if (!kLegalBytes[byte]) {
      // In hexadecimal, so that the text stays printable and valid UTF-8 whatever the byte is.
      return errors::Invalid(
          "The objectKey has an illegal byte 0x{:02x} at position {}: letters, digits and {} are legal.",
          byte, i, kPunctuation);
    }
  }
  return Status::OK();
}

Status CheckValueSize(uint64_t size) {
  if (size == 0) return errors::Invalid("The dataSize value should be bigger than zero.");
  return Status::OK();
}

Status CheckBatchSize(size_t keys) {
  if (keys == 0) return errors::Invalid("The keys are empty");
  if (keys > kBatchMax) return errors::Invalid("The objectKeys size exceed {}.", kBatchMax);
  return Status::OK();
}

}  // namespace datasystem::session
