#include "config/flag_table_json.h"

#include <nlohmann/json.hpp>

#include "config/flag_row.h"

namespace datasystem::config {
namespace {

using Json = nlohmann::ordered_json;

const char* EffectOf(const FlagRow& row) {
  switch (row.support) {
    case Support::kFull: return "used";
    case Support::kAccepted: return "accepted";
    case Support::kRefused: return "refused";
  }
  return "";
}

Json ToJson(const Constant& constant) {
  return std::visit([](const auto& held) { return Json(held); }, constant);
}

Json ToJson(const FlagRow& row) {
  Json object = {{"name", row.name},
                 {"type", row.type},
                 {"group", row.group},
                 {"description", row.description},
                 {"default", ToJson(row.binary_default)},
                 {"dscli_default", ToJson(row.dscli_default)}};
  if (row.rule.kind == Rule::kRange) {
    object["minimum"] = row.rule.low;
    if (row.rule.high) object["maximum"] = *row.rule.high;
  }
  if (row.rule.kind == Rule::kChoice) object["choices"] = row.rule.Choices();
  if (row.rule.kind != Rule::kAny) object["allowed"] = row.rule.Words();
  object["live"] = row.live();
  object["secret"] = row.secret();
  object["effect"] = EffectOf(row);
  if (!row.reason.empty()) object["reason"] = row.reason;
  return object;
}

}  // namespace

std::string TableAsJson() {
  Json table = Json::array();
  for (const FlagRow& row : Table()) {
    if (!row.information()) table.push_back(ToJson(row));
  }
  return table.dump(2) + "\n";
}

}  // namespace datasystem::config
