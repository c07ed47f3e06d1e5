// The flags of the worker: typed keys, and the values that a command line gives them.
//
// Every flag is declared once, in flag_table.inc; docs/flags.md is printed from it. Code of the
// worker asks `values.Get(kWorkerAddress)`; a flag that nothing can read has no key, and setting it
// is reported.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace datasystem::config {

using Text = std::string;
using FlagValue = std::variant<bool, int32_t, uint32_t, int64_t, uint64_t, double, Text>;

// Where a flag's row is in the table.
enum class FlagId : uint16_t {
#define GROUP(title)
#define FLAG(type, key, name, ...) name,
#define ACCEPTED(type, name, ...) name,
#define REFUSED(type, name, ...) name,
#include "config/flag_table.inc"
#undef GROUP
#undef FLAG
#undef ACCEPTED
#undef REFUSED
};

template <typename T>
struct Flag {
  FlagId id;
};

#define GROUP(title)
#define FLAG(type, key, name, ...) inline constexpr Flag<type> key{FlagId::name};
#define ACCEPTED(...)
#define REFUSED(...)
#include "config/flag_table.inc"
#undef GROUP
#undef FLAG
#undef ACCEPTED
#undef REFUSED

// Environment variable STATUS_FILE_PATH, which containers set; else empty.
std::string StatusFilePath();

// One value for every flag of the table, each allowed by its row and by the rules between flags.
class FlagValues {
 public:
  // The binary's defaults, "~/" filled in.
  FlagValues();

  // Takes --name=value, -name=value, --name value and -name value; a bool may stand alone. The last
  // one counts. Secrets are blanked in `argv`, whatever else is wrong. Errors: kInvalid, a line for
  // each mistake on the command line. When information is asked for (--help), other mistakes are
  // passed over.
  static Result<FlagValues> Parse(int argc, char** argv);

  template <typename T>
  const T& Get(Flag<T> flag) const {
    return std::get<T>(values_[static_cast<size_t>(flag.id)]);
  }

  // These values, changed by the --name=value words of a text. Only live flags are taken; a sentence is
  // added to `mistakes` for every other word. Rules between flags are not looked at.
  FlagValues WithLive(std::string_view text, std::vector<std::string>& mistakes) const;

  // "name=value" of the flags that differ from their default, secrets as xxx. For the log at start.
  std::vector<std::string> NonDefault() const;
  std::vector<std::string> DifferentFrom(const FlagValues& others) const;
  // A sentence for each flag that was set to something and that this version does nothing with.
  std::vector<std::string> WithoutEffect() const;

  const FlagValue& value(FlagId id) const { return values_[static_cast<size_t>(id)]; }

 private:
  std::vector<std::string> SetFromEnvironment();
  Status SetLive(std::string_view word);
  void ExpandHome();

  std::vector<FlagValue> values_;
};

}  // namespace datasystem::config
