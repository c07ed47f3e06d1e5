#include "datasystem/utils/sensitive_value.h"

#include <cstring>

namespace datasystem {

SensitiveValue::SensitiveValue(const char* text)
    : SensitiveValue(text, text == nullptr ? 0 : std::strlen(text)) {}
SensitiveValue::SensitiveValue(const std::string& text) : SensitiveValue(text.data(), text.size()) {}
SensitiveValue::SensitiveValue(const char* bytes, size_t size) : bytes_(bytes, bytes + size) {}
SensitiveValue::SensitiveValue(SensitiveValue&& other) noexcept = default;

SensitiveValue& SensitiveValue::operator=(const SensitiveValue& other) {
  if (this != &other) {
    Wipe();
    bytes_ = other.bytes_;
  }
  return *this;
}

SensitiveValue& SensitiveValue::operator=(SensitiveValue&& other) noexcept {
  if (this != &other) {
    Wipe();
    bytes_ = std::move(other.bytes_);
  }
  return *this;
}

SensitiveValue::~SensitiveValue() { Wipe(); }

bool SensitiveValue::operator==(const SensitiveValue& other) const {
  if (bytes_.size() != other.bytes_.size()) return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    difference = static_cast<unsigned char>(difference | (bytes_[i] ^ other.bytes_[i]));
  }
  return difference == 0;
}

void SensitiveValue::Wipe() noexcept {
  if (!bytes_.empty()) ::explicit_bzero(bytes_.data(), bytes_.size());
  bytes_.clear();
}

}  // namespace datasystem
