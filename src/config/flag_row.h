// A row of the table of flags, without its type. For the parser and the printers; the worker uses
// flags.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "config/flags.h"

namespace datasystem::config {

// Which values a row allows, beyond its type.
struct Rule {
  enum Kind {
    kAny,
    kRange,
    kChoice,
    kMaxLength,
    kAddress,
    kOptionalAddress,
    kAddressList,
    kAlphanumeric
  };
  Kind kind = kAny;
  int64_t low = 0;
  std::optional<int64_t> high;
  std::string_view choices;  // separated by |

  // Of kChoice.
  std::vector<std::string_view> Choices() const;
  // What is allowed, in words, or nothing for kAny.
  std::string Words() const;
  bool Allows(const FlagValue& value) const;
};

constexpr Rule Any() { return {}; }
constexpr Rule Between(int64_t low, int64_t high) { return {Rule::kRange, low, high, {}}; }
constexpr Rule AtLeast(int64_t low) { return {Rule::kRange, low, std::nullopt, {}}; }
constexpr Rule OneOf(std::string_view choices) { return {Rule::kChoice, 0, {}, choices}; }
constexpr Rule MaxLength(int64_t length) { return {Rule::kMaxLength, 0, length, {}}; }
constexpr Rule Address() { return {Rule::kAddress, 0, {}, {}}; }
constexpr Rule OptionalAddress() { return {Rule::kOptionalAddress, 0, {}, {}}; }
constexpr Rule AddressList() { return {Rule::kAddressList, 0, {}, {}}; }
constexpr Rule LettersAndDigits() { return {Rule::kAlphanumeric, 0, {}, {}}; }

enum Traits : uint8_t { kStart = 0, kLive = 1, kSecret = 2 };
constexpr Traits operator|(Traits a, Traits b) {
  return static_cast<Traits>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}

enum class Support : uint8_t { kFull, kAccepted, kRefused };

// FlagValue that can be a constant.
using Constant = std::variant<bool, int32_t, uint32_t, int64_t, uint64_t, double, std::string_view>;
FlagValue ToValue(const Constant& constant);

struct FlagRow {
  std::string_view group;
  std::string_view type;
  std::string_view name;
  Constant binary_default;
  Constant dscli_default;
  Rule rule;
  Traits traits = kStart;
  Support support = Support::kFull;
  std::string_view reason;  // why it has no effect, unless kFull
  std::string_view description;

  bool live() const { return (traits & kLive) != 0; }
  bool secret() const { return (traits & kSecret) != 0; }
  bool information() const;  // --help and its like: prints and exits, no setting
};

// In the order of flag_table.inc; the index of a row is its FlagId.
std::span<const FlagRow> Table();
const FlagRow& RowOf(FlagId id);
const FlagRow* FindRow(std::string_view name);
// The flag whose name is nearest to a mistyped one, or null when none is near.
const FlagRow* NearestRow(std::string_view name);

// Errors: kInvalid with flag, value and what is allowed.
Result<FlagValue> ParseValue(const FlagRow& row, std::string_view text);
std::string ToText(const FlagValue& value);
// As ToText, or xxx when the row is secret and the value is not empty.
std::string Shown(const FlagRow& row, const FlagValue& value);

// The rules between flags. A sentence for each one broken.
std::vector<std::string> BrokenRules(const FlagValues& values);

}  // namespace datasystem::config
