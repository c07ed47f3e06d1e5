#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "config/flag_row.h"

namespace datasystem::config {
namespace {

// Variables that programs of this kind have always read. An explicit flag wins.
constexpr std::pair<const char*, FlagId> kEnvironment[] = {
    {"GOOGLE_LOGTOSTDERR", FlagId::logtostderr},
    {"GOOGLE_ALSOLOGTOSTDERR", FlagId::alsologtostderr},
    {"GOOGLE_LOG_DIR", FlagId::log_dir}};

constexpr size_t kNameShownMax = 64;

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool LooksLikeFlag(std::string_view word) {
  // "-5" is a value.
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9');
}

// The command line cut into names and values; `value` points into argv so that it can be blanked
// there.
struct Argument {
  std::string name;
  std::optional<char*> value;
};

std::string Unknown(std::string_view name) {
  const FlagRow* near = NearestRow(name);
  const std::string hint = near == nullptr ? "" : fmt::format("; did you mean --{}?", near->name);
  return fmt::format("unknown flag --{}{}", name, hint);
}

std::vector<Argument> Cut(int argc, char** argv, std::vector<std::string>& mistakes) {
  std::vector<Argument> arguments;
  for (int i = 1; i < argc; ++i) {
    if (!LooksLikeFlag(argv[i])) {
      mistakes.push_back(
          fmt::format("unexpected argument '{}': flags are written --name=value", argv[i]));
      continue;
    }
    char* name = argv[i] + (argv[i][1] == '-' ? 2 : 1);
    char* equals = std::strchr(name, '=');
    if (equals != nullptr) {
      arguments.push_back({std::string(name, equals), equals + 1});
    } else if (i + 1 < argc && !LooksLikeFlag(argv[i + 1])) {
      const FlagRow* row = FindRow(name);
      // "--help enable" has no value; other flags take the next word.
      const bool takes_value = row == nullptr || row->type != "bool" || !row->information();
      arguments.push_back({name, takes_value ? std::optional<char*>(argv[++i]) : std::nullopt});
    } else {
      arguments.push_back({name, std::nullopt});
    }
  }
  return arguments;
}

}  // namespace

std::string StatusFilePath() {
  const char* path = std::getenv("STATUS_FILE_PATH");
  return path == nullptr ? "" : path;
}

FlagValues::FlagValues() {
  values_.reserve(Table().size());
  for (const FlagRow& row : Table()) values_.push_back(ToValue(row.binary_default));
  ExpandHome();
}

std::vector<std::string> FlagValues::SetFromEnvironment() {
  std::vector<std::string> mistakes;
  for (const auto& [variable, id] : kEnvironment) {
    const char* text = std::getenv(variable);
    if (text == nullptr || *text == '\0') continue;
    Result<FlagValue> value = ParseValue(RowOf(id), text);
    if (value.ok()) {
      values_[static_cast<size_t>(id)] = *std::move(value);
    } else {
      mistakes.push_back(
          fmt::format("environment variable {}: {}", variable, value.status().GetMsg()));
    }
  }
  return mistakes;
}

void FlagValues::ExpandHome() {
  const char* home = std::getenv("HOME");
  for (FlagValue& value : values_) {
    Text* text = std::get_if<Text>(&value);
    if (text == nullptr || !text->starts_with("~/")) continue;
    *text = (home == nullptr ? "." : home) + text->substr(1);
  }
}

Result<FlagValues> FlagValues::Parse(int argc, char** argv) {
  FlagValues values;
  std::vector<std::string> mistakes = values.SetFromEnvironment();
  for (const Argument& argument : Cut(argc, argv, mistakes)) {
    const FlagRow* row = FindRow(argument.name);
    if (row == nullptr) {
      mistakes.push_back(Unknown(argument.name));
      continue;
    }
    if (!argument.value && row->type != "bool") {
      mistakes.push_back(fmt::format("--{} has no value: write --{}=value", row->name, row->name));
      continue;
    }
    Result<FlagValue> value = ParseValue(*row, argument.value ? *argument.value : "true");
    if (row->secret() && argument.value)
      std::memset(*argument.value, 0, std::strlen(*argument.value));
    if (!value.ok()) {
      mistakes.push_back(value.status().GetMsg());
      continue;
    }
    values.values_[static_cast<size_t>(row - Table().data())] = *std::move(value);
  }
  values.ExpandHome();
  const bool about_all_workers =
      !values.Get(kPrintFlags).empty() && values.Get(kPrintFlags) != "values";
  if (values.Get(kHelp) || values.Get(kVersion) || about_all_workers) return values;
  std::ranges::move(BrokenRules(values), std::back_inserter(mistakes));
  if (mistakes.empty()) return values;
  // For programs, a check says nothing but the mistakes.
  if (!values.Get(kCheckFlags)) mistakes.push_back("(--help explains every flag)");
  return Status(K_INVALID, fmt::format("{}", fmt::join(mistakes, "\n")));
}

FlagValues FlagValues::WithLive(std::string_view text, std::vector<std::string>& mistakes) const {
  FlagValues values = *this;
  size_t line = 1;
  while (!text.empty()) {
    if (IsSpace(text.front())) {
      line += text.front() == '\n' ? 1 : 0;
      text.remove_prefix(1);
      continue;
    }
    const std::string_view word =
        text.substr(0, std::ranges::find_if(text, IsSpace) - text.begin());
    text.remove_prefix(word.size());
    const Status taken = values.SetLive(word);
    if (taken.IsError()) mistakes.push_back(fmt::format("line {}: {}", line, taken.GetMsg()));
  }
  return values;
}

Status FlagValues::SetLive(std::string_view word) {
  const size_t dashes = std::min<size_t>(2, word.find_first_not_of('-'));
  const size_t equals = word.find('=');
  if (dashes == 0 || equals == std::string_view::npos || equals <= dashes) {
    // Not repeated: it may be a secret that stands apart from its name.
    return errors::Invalid("a word is not of the form --name=value");
  }
  const std::string_view name = word.substr(dashes, equals - dashes);
  const FlagRow* row = FindRow(name);
  if (row == nullptr) return errors::Invalid("{}", Unknown(name.substr(0, kNameShownMax)));
  if (!row->live()) {
    return errors::Invalid("--{} cannot change while the worker runs: set it at the next start",
                           row->name);
  }
  ASSIGN_OR_RETURN(values_[static_cast<size_t>(row - Table().data())],
                   ParseValue(*row, word.substr(equals + 1)));
  return Status::OK();
}

std::vector<std::string> FlagValues::NonDefault() const { return DifferentFrom(FlagValues()); }

std::vector<std::string> FlagValues::DifferentFrom(const FlagValues& others) const {
  std::vector<std::string> changed;
  for (size_t i = 0; i < values_.size(); ++i) {
    const FlagRow& row = Table()[i];
    if (values_[i] == others.values_[i]) continue;
    changed.push_back(fmt::format("{}={}", row.name, Shown(row, values_[i])));
  }
  return changed;
}

std::vector<std::string> FlagValues::WithoutEffect() const {
  const FlagValues defaults;
  std::vector<std::string> sentences;
  for (size_t i = 0; i < values_.size(); ++i) {
    const FlagRow& row = Table()[i];
    if (row.support != Support::kAccepted || values_[i] == defaults.values_[i]) continue;
    // dscli always passes the values of worker_config.json: nobody has asked for those. Paths are
    // compared by their end, since dscli makes them absolute.
    const FlagValue shipped = ToValue(row.dscli_default);
    const Text* path = std::get_if<Text>(&shipped);
    const bool shipped_path =
        path != nullptr && path->starts_with("./") &&
        std::get<Text>(values_[i]).ends_with(std::string_view(*path).substr(1));
    if (values_[i] == shipped || shipped_path) continue;
    sentences.push_back(fmt::format("--{}={} is accepted and has no effect: {}", row.name,
                                    Shown(row, values_[i]), row.reason));
  }
  return sentences;
}

}  // namespace datasystem::config
