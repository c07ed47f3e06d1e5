// Which keys, values and batches are legal. Client and worker apply the same rules with the same words.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace datasystem::session {

constexpr size_t kKeyMax = 1024;      // bytes
constexpr size_t kBatchMax = 10000;   // keys

// kInvalid: empty ("The objectKey should not be empty."), longer than kKeyMax, or a byte outside of
// letters, digits and -_!@#%^*()+=:;~$&.  (the message has the byte and its position).
Status CheckKey(std::string_view key);
// kInvalid "The dataSize value should be bigger than zero."
Status CheckValueSize(uint64_t size);
// kInvalid "The keys are empty" or "The objectKeys size exceed 10000."
Status CheckBatchSize(size_t keys);

}  // namespace datasystem::session
