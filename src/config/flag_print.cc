#include "config/flag_print.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "config/flag_row.h"
#include "config/flag_table_json.h"

namespace datasystem::config {
namespace {

constexpr std::string_view kIntroduction =
    R"(datasystem_worker: serves this node's share of a distributed in-memory cache.

One worker runs on each node. Programs on the node attach to it through shared memory; workers find each other through etcd and move objects between nodes by RDMA or TCP.

A worker alone:      datasystem_worker --worker_address=127.0.0.1:31501
One of a cluster:    datasystem_worker --worker_address=10.0.0.1:31501 --etcd_address=10.0.0.9:2379
Through dscli:       dscli start -w --worker_address 127.0.0.1:31501

Flags are written --name=value, -name=value or --name value; a bool alone means true. The environment (UCX_TLS, UCX_NET_DEVICES, UCX_LOG_LEVEL, UCX_LOG_FILE) reaches UCX unchanged.
)";

// Fills paragraphs to the width; a line that holds a run of spaces is an example and is left alone.
std::string Wrap(std::string_view text, size_t columns, size_t indent) {
  std::string out;
  size_t column = 0;
  const std::string margin(indent, ' ');
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    if (column > 0 && column + 1 + word.size() > columns) {
      out += '\n';
      column = 0;
    }
    if (column == 0) {
      out += margin;
      column = indent;
    } else if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(word.size());
    if (text.empty()) break;
    if (text.front() == '\n') {
      out += '\n';
      column = 0;
    }
    text.remove_prefix(1);
  }
  return out;
}

std::string Introduction(size_t columns) {
  std::string out;
  for (std::string_view rest = kIntroduction; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    out += line.find("  ") != std::string_view::npos ? std::string(line) : Wrap(line, columns, 0);
    out += '\n';
  }
  return out;
}

std::string Details(const FlagRow& row) {
  std::string text(row.description);
  if (const std::string words = row.rule.Words(); !words.empty())
    text += fmt::format(" Allowed: {}.", words);
  if (row.live() && row.support == Support::kFull) text += " May change while the worker runs.";
  if (row.support == Support::kAccepted) text += fmt::format(" No effect: {}.", row.reason);
  if (row.support == Support::kRefused) text += fmt::format(" Not supported: {}.", row.reason);
  return text;
}

std::string DefaultText(const FlagRow& row) {
  const std::string text = ToText(ToValue(row.binary_default));
  return text.empty() ? "\"\"" : text;
}

std::string Help(size_t columns) {
  std::string out = Introduction(columns);
  std::string_view group;
  std::string without_effect;
  for (const FlagRow& row : Table()) {
    if (row.support != Support::kFull) {
      without_effect += (without_effect.empty() ? "" : " ") + std::string(row.name);
      continue;
    }
    if (row.group != group) {
      group = row.group;
      out += fmt::format("\n{}\n", group);
    }
    out += fmt::format("  --{} ({}, default {})\n", row.name, row.type, DefaultText(row));
    out += Wrap(Details(row), columns, 6) + "\n";
  }
  out += "\nKnown, without effect in this version\n";
  return out + Wrap(without_effect, columns, 2) + "\n";
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string Json() {
  std::string out = "{";
  for (const FlagRow& row : Table()) {
    if (row.information()) continue;
    out +=
        fmt::format("{}\n  \"{}\": {{\n    \"value\": \"{}\",\n    \"description\": \"{}\"\n  }}",
                    out.size() > 1 ? "," : "", row.name,
                    Escaped(ToText(ToValue(row.dscli_default))), Escaped(Details(row)));
  }
  return out + "\n}\n";
}

constexpr std::string_view kDocument = R"(# Flags of datasystem_worker

Printed by `datasystem_worker --print_flags=markdown`; do not edit. Flags take effect when the worker starts; those marked *live*
may also be changed while it runs, by `monitor_config_file` ([probes.md](probes.md)).
Where there are two defaults, the second is the one of `worker_config.json`, which `dscli start` uses.
)";
constexpr std::string_view kNoEffect = R"(
## No effect

Known names: their values are checked, and the worker says at start that a value other than the default does
nothing. Those marked *refused* stop the start instead, because a worker that ignored them would not keep a promise.
)";

std::string MarkdownRow(const FlagRow& row) {
  std::string defaults = fmt::format("`{}`", DefaultText(row));
  if (row.dscli_default != row.binary_default) {
    defaults += fmt::format(" / `{}`", ToText(ToValue(row.dscli_default)));
  }
  std::string meaning(row.description);
  if (const std::string words = row.rule.Words(); !words.empty())
    meaning += fmt::format(" Allowed: {}.", words);
  if (row.live() && row.support == Support::kFull) meaning += " *Live.*";
  const std::string_view refused = row.support == Support::kRefused ? "*refused:* " : "";
  const std::string why =
      row.support == Support::kFull ? "" : fmt::format(" {}{} |", refused, row.reason);
  return fmt::format("| {} | {} | {} | {} |{}\n", row.name, row.type, defaults, meaning, why);
}

std::string MarkdownTables(bool full) {
  std::string out;
  std::string_view group;
  for (const FlagRow& row : Table()) {
    if ((row.support == Support::kFull) != full) continue;
    if (row.group != group) {
      group = row.group;
      out += fmt::format("\n{} {}\n\n| flag | type | default | meaning |{}\n|---|---|---|---|{}\n",
                         full ? "##" : "###", group, full ? "" : " why it has none |",
                         full ? "" : "---|");
    }
    out += MarkdownRow(row);
  }
  return out;
}

std::string Markdown() {
  return std::string(kDocument) + MarkdownTables(true) + std::string(kNoEffect) +
         MarkdownTables(false);
}

std::string Values(const FlagValues& values) {
  std::string out;
  for (size_t i = 0; i < Table().size(); ++i) {
    const FlagRow& row = Table()[i];
    if (row.information()) continue;
    out += fmt::format("{}={}\n", row.name, Shown(row, values.value(static_cast<FlagId>(i))));
  }
  return out;
}

}  // namespace

size_t TerminalColumns() {
  winsize size{};
  constexpr size_t kNarrowest = 40;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return std::max<size_t>(kNarrowest, size.ws_col);
}

std::optional<std::string> InformationAsked(const FlagValues& values, std::string_view version,
                                            size_t columns) {
  if (values.Get(kHelp)) return Help(columns);
  if (values.Get(kVersion)) return fmt::format("datasystem_worker {}\n", version);
  const std::string& form = values.Get(kPrintFlags);
  if (form == "json") return Json();
  if (form == "markdown") return Markdown();
  if (form == "table") return TableAsJson();
  if (form == "values") return Values(values);
  return std::nullopt;
}

}  // namespace datasystem::config
