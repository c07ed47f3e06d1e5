#include "config/flag_row.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace datasystem::config {
namespace {

// The first column of a row, as people read it.
template <typename T>
constexpr std::string_view kTypeName = "string";
template <>
constexpr std::string_view kTypeName<bool> = "bool";
template <>
constexpr std::string_view kTypeName<int32_t> = "int32";
template <>
constexpr std::string_view kTypeName<uint32_t> = "uint32";
template <>
constexpr std::string_view kTypeName<int64_t> = "int64";
template <>
constexpr std::string_view kTypeName<uint64_t> = "uint64";
template <>
constexpr std::string_view kTypeName<double> = "double";

template <typename A, typename B>
struct Or {
  constexpr Or(A binary_default, B dscli_default) : binary(binary_default), dscli(dscli_default) {}
  A binary;
  B dscli;
};

template <typename T, typename Literal>
constexpr Constant AsConstant(Literal literal) {
  if constexpr (std::is_same_v<T, Text>) {
    return std::string_view(literal);
  } else {
    return static_cast<T>(literal);
  }
}

template <typename T, typename Default>
constexpr FlagRow Row(std::string_view name, Default both, Rule rule, Traits traits,
                      Support support, std::string_view reason, std::string_view description) {
  FlagRow row{.type = kTypeName<T>,
              .name = name,
              .rule = rule,
              .traits = traits,
              .support = support,
              .reason = reason,
              .description = description};
  if constexpr (requires { both.dscli; }) {
    row.binary_default = AsConstant<T>(both.binary);
    row.dscli_default = AsConstant<T>(both.dscli);
  } else {
    row.binary_default = row.dscli_default = AsConstant<T>(both);
  }
  return row;
}

// A heading is a line without a name.
constexpr FlagRow kLines[] = {
#define GROUP(title) FlagRow{.group = title},
#define FLAG(type, key, name, def, rule, traits, description) \
  Row<type>(#name, def, rule, traits, Support::kFull, "", description),
#define ACCEPTED(type, name, def, rule, traits, reason, description) \
  Row<type>(#name, def, rule, traits, Support::kAccepted, reason, description),
#define REFUSED(type, name, def, rule, traits, reason, description) \
  Row<type>(#name, def, rule, traits, Support::kRefused, reason, description),
#include "config/flag_table.inc"
#undef GROUP
#undef FLAG
#undef ACCEPTED
#undef REFUSED
};

constexpr size_t kRowCount = std::count_if(std::begin(kLines), std::end(kLines),
                                           [](const FlagRow& line) { return !line.name.empty(); });

constexpr std::array<FlagRow, kRowCount> kTable = [] {
  std::array<FlagRow, kRowCount> table{};
  std::string_view group;
  size_t count = 0;
  for (FlagRow line : kLines) {
    if (line.name.empty()) {
      group = line.group;
    } else {
      line.group = group;
      table[count++] = line;
    }
  }
  return table;
}();

// Levenshtein's distance, one row of the matrix at a time.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> costs(b.size() + 1);
  std::iota(costs.begin(), costs.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(costs[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(costs[j + 1], std::min({replaced, costs[j] + 1, costs[j + 1] + 1}));
    }
  }
  return costs.back();
}

}  // namespace

std::span<const FlagRow> Table() { return kTable; }

const FlagRow& RowOf(FlagId id) { return kTable[static_cast<size_t>(id)]; }

const FlagRow* FindRow(std::string_view name) {
  auto row = std::ranges::find(kTable, name, &FlagRow::name);
  return row == kTable.end() ? nullptr : &*row;
}

const FlagRow* NearestRow(std::string_view name) {
  const size_t near_max = std::max<size_t>(2, name.size() / 3);
  constexpr size_t kNameMax =
      64;  // longer is no slip of the finger, and the distance costs its square
  if (name.size() > kNameMax) return nullptr;
  auto row = std::ranges::min_element(kTable, {},
                                      [&](const FlagRow& r) { return EditDistance(name, r.name); });
  return EditDistance(name, row->name) <= near_max ? &*row : nullptr;
}

bool FlagRow::information() const {
  return name == RowOf(kHelp.id).name || name == RowOf(kVersion.id).name ||
         name == RowOf(kPrintFlags.id).name || name == RowOf(kCheckFlags.id).name ||
         name == RowOf(kCheck.id).name;
}

FlagValue ToValue(const Constant& constant) {
  return std::visit(
      [](const auto& held) -> FlagValue {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string_view>) {
          return Text(held);
        } else {
          return held;
        }
      },
      constant);
}

}  // namespace datasystem::config
