// Values of single flags: from text, to text, and whether a row allows them.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/socket_address.h"
#include "config/flag_row.h"

namespace datasystem::config {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find(separator)) != std::string_view::npos;
       text.remove_prefix(end + 1)) {
    parts.push_back(text.substr(0, end));
  }
  parts.push_back(text);
  return parts;
}

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// name:port, where the name is one that DNS could resolve.
bool IsNamedAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  const std::string_view name = text.substr(0, colon);
  const bool legal =
      std::ranges::all_of(name, [](char c) { return IsAlphanumeric(c) || c == '-' || c == '.'; });
  // Digits and dots alone are meant as an IPv4 address, and have failed as one.
  const bool numeric = name.find_first_not_of("0123456789.") == std::string_view::npos;
  return legal && !numeric &&
         SocketAddress::Parse("127.0.0.1" + std::string(text.substr(colon))).ok();
}

bool IsAddressList(std::string_view text) {
  return text.empty() || std::ranges::all_of(Split(text, ','), [](std::string_view entry) {
           return SocketAddress::Parse(entry).ok() || IsNamedAddress(entry);
         });
}

template <typename Number>
bool InRange(Number number, const Rule& rule) {
  if constexpr (std::is_floating_point_v<Number>) {
    return number >= static_cast<Number>(rule.low) &&
           (!rule.high || number <= static_cast<Number>(*rule.high));
  } else if constexpr (std::is_integral_v<Number> && !std::is_same_v<Number, bool>) {
    return std::cmp_greater_equal(number, rule.low) &&
           (!rule.high || std::cmp_less_equal(number, *rule.high));
  } else {
    return true;
  }
}

template <typename Number>
Result<FlagValue> ParseNumber(const FlagRow& row, std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = end == text.data() + text.size() && !text.empty();
  const std::string shown = Shown(row, FlagValue(Text(text)));
  if (error == std::errc::result_out_of_range && whole) {
    return errors::Invalid("--{}={} does not fit a {}", row.name, shown, row.type);
  }
  bool good = error == std::errc() && whole;
  if constexpr (std::is_floating_point_v<Number>) good = good && std::isfinite(number);
  if (!good) return errors::Invalid("--{}={} is no {}", row.name, shown, row.type);
  return FlagValue(number);
}

Result<FlagValue> ParseBool(const FlagRow& row, std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  for (std::string_view word : {"true", "t", "yes", "y", "1"}) {
    if (lower == word) return FlagValue(true);
  }
  for (std::string_view word : {"false", "f", "no", "n", "0"}) {
    if (lower == word) return FlagValue(false);
  }
  return errors::Invalid("--{}={} is no bool: use true or false", row.name, text);
}

Result<FlagValue> ParseType(const FlagRow& row, std::string_view text) {
  switch (row.binary_default.index()) {
    case 0:
      return ParseBool(row, text);
    case 1:
      return ParseNumber<int32_t>(row, text);
    case 2:
      return ParseNumber<uint32_t>(row, text);
    case 3:
      return ParseNumber<int64_t>(row, text);
    case 4:
      return ParseNumber<uint64_t>(row, text);
    case 5:
      return ParseNumber<double>(row, text);
    default:
      return FlagValue(Text(text));
  }
}

}  // namespace

std::vector<std::string_view> Rule::Choices() const {
  return kind == kChoice ? Split(choices, '|') : std::vector<std::string_view>();
}

std::string Rule::Words() const {
  switch (kind) {
    case kAny:
      return "";
    case kRange:
      return high ? fmt::format("{} to {}", low, *high) : fmt::format("at least {}", low);
    case kChoice: {
      std::string words;
      for (std::string_view choice : Choices()) {
        if (!choice.empty()) words += (words.empty() ? "" : ", ") + std::string(choice);
      }
      return words;
    }
    case kMaxLength:
      return fmt::format("at most {} characters", *high);
    case kAddress:
      return "IPv4:port or [IPv6]:port";
    case kOptionalAddress:
      return "IPv4:port or [IPv6]:port, or empty";
    case kAddressList:
      return "ip:port or name:port, separated by commas";
    case kAlphanumeric:
      return "letters and digits";
  }
  return "";
}

bool Rule::Allows(const FlagValue& value) const {
  if (kind == kAny) return true;
  if (kind == kRange) {
    return std::visit([&](const auto& held) { return InRange(held, *this); }, value);
  }
  const std::string& text = std::get<Text>(value);
  switch (kind) {
    case kChoice: {
      const auto all = Choices();
      return std::ranges::find(all, text) != all.end();
    }
    case kMaxLength:
      return text.size() <= static_cast<size_t>(*high);
    case kAddress:
      return SocketAddress::Parse(text).ok();
    case kOptionalAddress:
      return text.empty() || SocketAddress::Parse(text).ok();
    case kAddressList:
      return IsAddressList(text);
    default:
      return std::ranges::all_of(text, IsAlphanumeric);
  }
}

Result<FlagValue> ParseValue(const FlagRow& row, std::string_view text) {
  Result<FlagValue> value = ParseType(row, text);
  if (!value.ok()) {
    const std::string words = row.rule.Words();
    if (words.empty()) return value;
    return errors::Invalid("{}; allowed: {}", value.status().GetMsg(), words);
  }
  if (!row.rule.Allows(*value)) {
    return errors::Invalid("--{}={} is not allowed; allowed: {}", row.name, Shown(row, *value),
                           row.rule.Words());
  }
  return value;
}

std::string ToText(const FlagValue& value) {
  return std::visit([](const auto& held) { return fmt::format("{}", held); }, value);
}

std::string Shown(const FlagRow& row, const FlagValue& value) {
  std::string text = ToText(value);
  constexpr size_t kShownMax = 200;  // a line of an error text, not the whole of a wrong file
  if (text.size() > kShownMax) text = text.substr(0, kShownMax) + "...";
  return row.secret() && !text.empty() ? "xxx" : text;
}

}  // namespace datasystem::config
