// A secret: its bytes are overwritten when it is destroyed, replaced or moved from.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "datasystem/utils/status.h"

namespace datasystem {

// Threads: one at a time, like std::string.
class DATASYSTEM_API SensitiveValue {
 public:
  SensitiveValue() = default;
  SensitiveValue(const char* text);         // NOLINT: implicit, so that options can be written as literals
  SensitiveValue(const std::string& text);  // NOLINT: the same
  SensitiveValue(const char* bytes, size_t size);
  SensitiveValue(const SensitiveValue& other) = default;
  SensitiveValue(SensitiveValue&& other) noexcept;
  SensitiveValue& operator=(const SensitiveValue& other);
  SensitiveValue& operator=(SensitiveValue&& other) noexcept;
  ~SensitiveValue();

  bool Empty() const { return bytes_.empty(); }
  // Not terminated by a zero byte.
  const char* GetData() const { return bytes_.data(); }
  size_t GetSize() const { return bytes_.size(); }

  // In a time that does not depend on where the first difference is.
  bool operator==(const SensitiveValue& other) const;
  bool operator!=(const SensitiveValue& other) const { return !(*this == other); }

 private:
  void Wipe() noexcept;

  // Not std::string: its bytes may live inside the object, where a move leaves a copy behind.
  std::vector<char> bytes_;
};

}  // namespace datasystem
