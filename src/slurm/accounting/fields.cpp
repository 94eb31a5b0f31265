#include "slurm/accounting/fields.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <variant>

#include "slurm/accounting/entities.hpp"

namespace slurm::accounting {

using core::Json;

namespace {

/// Returns {"type": "gres", "name": "gpu", "count": 8}. With the count -1 slurmdbd removes the TRES from its list.
Json tres_json(std::string_view tres, const Json& value) {
  const std::size_t slash = tres.find('/');
  Json out{{"type", tres.substr(0, slash)}, {"count", value.is_number() ? value : Json(-1)}};
  out["name"] = slash == std::string_view::npos ? "" : tres.substr(slash + 1);
  return out;
}

}  // namespace

Json default_of(const QosField& field) {
  switch (field.form) {
    case FieldForm::kText:
      if (field.name == kParent) return kRoot;
      return field.name == kAdminLevel ? "None" : "";
    case FieldForm::kFlags:
    case FieldForm::kNames:
      return Json::array();
    case FieldForm::kMode:
      return kPreemptModes.front().name;
    case FieldForm::kNumber:
    case FieldForm::kSeconds:
      return 0;
    case FieldForm::kFraction:
      if (field.name == kUsageFactor) return 1;
      return kDefault;
    case FieldForm::kTruth:
      return false;
    case FieldForm::kShares:
      return 1;
    default:
      return none_of(field);
  }
}

Json none_of(const QosField& field) {
  return field.limits() ? kUnlimited : kDefault;
}

Json list_json(std::set<std::string> words) {
  Json out = Json::array();
  for (const std::string& word : words) out.push_back(word);
  return out;
}

Json json_of(const Number& number, const Json& none) {
  const auto* value = std::get_if<std::int64_t>(&number);
  return value == nullptr ? none : Json(*value);
}

void put_limits(Settings& out, const std::string& place, const Limits& limits) {
  for (const auto& [name, number] : limits.counts) {
    if (const auto* value = std::get_if<std::int64_t>(&number)) out[place + name] = *value;
  }
  for (const auto& [name, counts] : limits.tres) {
    for (const auto& [tres, count] : counts) {
      std::string setting = place + name;
      setting += "/" + tres;
      out[setting] = count;
    }
  }
}

// Fractions are always written with a decimal point, because slurmrestd warns of whole numbers in their place.
Json number_json(const QosField& field, const Json& value) {
  const bool set = value.is_number();
  Json number = set ? value : Json(0);
  if (field.form == FieldForm::kFraction) number = number.get<double>();
  return {{"set", set}, {"infinite", !set}, {"number", std::move(number)}};
}

Json tres_list(std::string_view field, const Settings& found, const Settings& wanted) {
  const std::string prefix = std::string(field) + "/";
  Settings all;
  for (const Settings* part : {&found, &wanted}) {
    for (auto it = part->lower_bound(prefix); it != part->end() && it->first.starts_with(prefix); ++it)
      all[it->first] = it->second;
  }
  Json out = Json::array();
  for (const auto& [setting, value] : all) out.push_back(tres_json(tres_of(setting), value));
  return out;
}

void put(Json& body, std::string_view path, Json value) {
  body[Json::json_pointer("/" + std::string(path))] = std::move(value);
}

std::string taken_for(std::string_view name) {
  constexpr std::array<std::string_view, 8> kTruths{"y", "yes", "t", "on", "n", "no", "f", "off"};
  const std::string text = folded(name);
  if (text.empty() || text.front() == '~' || text == "null") return "no value";
  if (std::ranges::find(kTruths, text) != kTruths.end()) return "a truth value";
  char* end = nullptr;
  (void)std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() ? "a number" : "";
}

}  // namespace slurm::accounting
