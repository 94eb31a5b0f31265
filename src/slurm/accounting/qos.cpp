#include "slurm/accounting/qos.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "slurm/accounting/entities.hpp"
#include "slurm/accounting/fields.hpp"

namespace slurm::accounting {

using core::Json;

// The names and paths are from Slurm's src/plugins/data_parser/*/parsers.c, PARSER_ARRAY(QOS).
const std::array<QosField, 33> kQosFields{{
    {"Description", "description", FieldForm::kText},
    {"Priority", "priority", FieldForm::kNumber},
    {"Flags", "flags", FieldForm::kFlags},
    {"Preempt", "preempt/list", FieldForm::kNames},
    {"PreemptMode", "preempt/mode", FieldForm::kMode},
    {"PreemptExemptTime", "preempt/exempt_time", FieldForm::kOptional},
    {"GraceTime", "limits/grace_time", FieldForm::kSeconds},
    {"UsageFactor", "usage_factor", FieldForm::kFraction},
    {"UsageThreshold", "usage_threshold", FieldForm::kFraction},
    {"LimitFactor", "limits/factor", FieldForm::kFraction},
    {"GrpJobs", "limits/max/active_jobs/count", FieldForm::kCount},
    {"GrpJobsAccrue", "limits/max/active_jobs/accruing", FieldForm::kCount},
    {"GrpSubmitJobs", "limits/max/jobs/count", FieldForm::kCount, "v0.0.42"},
    {"GrpTRES", "limits/max/tres/total", FieldForm::kTres},
    {"GrpTRESMins", "limits/max/tres/minutes/total", FieldForm::kTres, "v0.0.42"},
    {"GrpTRESRunMins", "limits/max/tres/minutes/per/qos", FieldForm::kTres},
    {"GrpWall", "limits/max/wall_clock/per/qos", FieldForm::kMinutes},
    {"MaxJobsAccruePerAccount", "limits/max/accruing/per/account", FieldForm::kCount},
    {"MaxJobsAccruePerUser", "limits/max/accruing/per/user", FieldForm::kCount},
    {"MaxJobsPerAccount", "limits/max/jobs/active_jobs/per/account", FieldForm::kCount},
    {"MaxJobsPerUser", "limits/max/jobs/active_jobs/per/user", FieldForm::kCount},
    {"MaxSubmitJobsPerAccount", "limits/max/jobs/per/account", FieldForm::kCount},
    {"MaxSubmitJobsPerUser", "limits/max/jobs/per/user", FieldForm::kCount},
    {"MaxTRESMinsPerJob", "limits/max/tres/minutes/per/job", FieldForm::kTres},
    {"MaxTRESPerAccount", "limits/max/tres/per/account", FieldForm::kTres},
    {"MaxTRESPerJob", "limits/max/tres/per/job", FieldForm::kTres},
    {"MaxTRESPerNode", "limits/max/tres/per/node", FieldForm::kTres},
    {"MaxTRESPerUser", "limits/max/tres/per/user", FieldForm::kTres},
    {"MaxTRESRunMinsPerAccount", "limits/max/tres/minutes/per/account", FieldForm::kTres},
    {"MaxTRESRunMinsPerUser", "limits/max/tres/minutes/per/user", FieldForm::kTres},
    {"MaxWallDurationPerJob", "limits/max/wall_clock/per/job", FieldForm::kMinutes},
    {"MinPrioThreshold", "limits/min/priority_threshold", FieldForm::kCount},
    {"MinTRESPerJob", "limits/min/tres/per/job", FieldForm::kTres},
}};

// The flags are from Slurm's src/common/slurmdb_defs.c, and from FLAG_BIT_ARRAY(QOS_FLAGS) of the data_parsers.
const std::array<Word, 12> kQosFlags{{
    {"DenyOnLimit", "DENY_LIMIT"},
    {"EnforceUsageThreshold", "ENFORCE_USAGE_THRESHOLD"},
    {"NoDecay", "NO_DECAY"},
    {"NoReserve", "NO_RESERVE"},
    {"OverPartQOS", "OVERRIDE_PARTITION_QOS"},
    {"PartitionMaxNodes", "PARTITION_MAXIMUM_NODE"},
    {"PartitionMinNodes", "PARTITION_MINIMUM_NODE"},
    {"PartitionQOS", "PARTITION_QOS", "v0.0.43"},
    {"PartitionTimeLimit", "PARTITION_TIME_LIMIT"},
    {"Relative", "RELATIVE"},
    {"RequiresReservation", "REQUIRED_RESERVATION"},
    {"UsageFactorSafe", "USAGE_FACTOR_SAFE"},
}};

const std::array<Word, 5> kPreemptModes{{
    {"Cluster", "DISABLED"},
    {"Cancel", "CANCEL"},
    {"Gang", "GANG"},
    {"Requeue", "REQUEUE"},
    {"Suspend", "SUSPEND"},
}};

namespace {

template <std::size_t N>
const Word* by_rest(const std::array<Word, N>& words, std::string_view rest) {
  const auto it = std::ranges::find(words, rest, &Word::rest);
  return it == words.end() ? nullptr : &*it;
}

template <std::size_t N>
const Word* by_name(const std::array<Word, N>& words, std::string_view name) {
  const auto it = std::ranges::find(words, name, &Word::name);
  return it == words.end() ? nullptr : &*it;
}

std::string joined(const std::set<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

std::set<std::string> parts_of(const std::string& list) {
  std::set<std::string> out;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    if (end > at) out.insert(list.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string shown(const Json& value) {
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    return text == kUnlimited || text == kDefault ? text : "\"" + text + "\"";
  }
  if (!value.is_array()) return value.dump();
  std::string out;
  for (const Json& item : value) out += (out.empty() ? "" : ",") + item.get<std::string>();
  return out.empty() ? "none" : out;
}

std::set<std::string> folded_names(const Json& names) {
  std::set<std::string> out;
  for (const Json& name : names) out.insert(folded(name.get<std::string>()));
  return out;
}

bool equal(std::string_view setting, const Json& wanted, const Json& found) {
  if (wanted == found) return true;
  const QosField* field = field_of(setting);
  if (field == nullptr) return false;
  if (field->form == FieldForm::kText && wanted.is_string() && found.is_string())
    return folded(wanted.get<std::string>()) == folded(found.get<std::string>());
  if (field->form == FieldForm::kNames) return folded_names(wanted) == folded_names(found);
  if (field->form == FieldForm::kFraction && wanted.is_number() && found.is_number()) {
    // slurmdbd keeps six decimals.
    return std::abs(wanted.get<double>() - found.get<double>()) < 1e-6;
  }
  return false;
}

// --- Writing ---

std::string needs_later(const std::string& what, std::string_view since, std::string_view parser) {
  return what + ": slurmrestd with data_parser " + std::string(parser) + " cannot express it (" + std::string(since) +
         " and later can)";
}

core::Result<Json> flags_json(const Json& flags, std::string_view parser) {
  Json out = Json::array();
  for (const Json& flag : flags) {
    const Word* word = by_name(kQosFlags, flag.get<std::string>());
    if (word != nullptr && word->since > parser) {
      return core::fail(core::ErrorCode::kUnsupported, needs_later("Flags: " + flag.get<std::string>(), word->since, parser));
    }
    // An unknown flag of a later release is sent back as it was read.
    out.push_back(word == nullptr ? flag : Json(word->rest));
  }
  return out;
}

Json modes_json(const Json& mode) {
  Json out = Json::array();
  for (const std::string& part : parts_of(mode.get<std::string>())) {
    const Word* word = by_name(kPreemptModes, part);
    out.push_back(word == nullptr ? Json(part) : Json(word->rest));
  }
  return out;
}

// --- Reading ---

class ConfigReader {
 public:
  explicit ConfigReader(std::string_view version) : version_(version) {}

  Settings settings;
  std::string problems;

  void object(const Json& json, const std::string& path) {
    for (const auto& [name, value] : json.items()) {
      const std::string here = path.empty() ? name : path + "/" + name;
      const auto field = std::ranges::find(kQosFields, std::string_view(here), &QosField::path);
      if (field != kQosFields.end()) {
        if (!version_.empty() && field->since > version_) {
          refuse(here, "data_parser " + std::string(version_) + " has no such field");
        } else if (!value.is_null()) {
          take(*field, here, value);
        }
        continue;
      }
      const bool above =
          std::ranges::any_of(kQosFields, [&](const QosField& other) { return other.path.starts_with(here + "/"); });
      if (!above) {
        refuse(here, "unknown");
      } else if (value.is_object()) {
        object(value, here);
      } else if (!value.is_null()) {
        refuse(here, "must be an object");
      }
    }
  }

 private:
  void refuse(std::string path, const std::string& why) {
    std::ranges::replace(path, '/', '.');
    problems += (problems.empty() ? "" : "; ") + path + ": " + why;
  }

  void take(const QosField& field, const std::string& path, const Json& value) {
    const std::string name(field.name);
    switch (field.form) {
      case FieldForm::kText:
        if (!value.is_string()) return refuse(path, "must be a string");
        settings[name] = value;
        return;
      case FieldForm::kFlags:
        return words(path, value, [&](std::set<std::string> all) { take_flags(name, path, all); });
      case FieldForm::kNames:
        return words(path, value, [&](std::set<std::string> all) { settings[name] = list_json(std::move(all)); });
      case FieldForm::kMode:
        return words(path, value, [&](std::set<std::string> all) { take_modes(name, path, all); });
      case FieldForm::kTres:
        return take_tres(name, path, value);
      default:
        return take_number(field, path, value);
    }
  }

  template <class Then>
  void words(const std::string& path, const Json& value, Then then) {
    std::set<std::string> out;
    if (value.is_string()) {
      out = parts_of(value.get<std::string>());
    } else if (!value.is_array()) {
      return refuse(path, "must be a list of strings");
    } else {
      for (const Json& item : value) {
        if (!item.is_string()) return refuse(path, "must be a list of strings");
        out.insert(item.get<std::string>());
      }
    }
    then(std::move(out));
  }

  void take_flags(const std::string& name, const std::string& path, const std::set<std::string>& all) {
    std::set<std::string> out;
    for (const std::string& text : all) {
      const Word* word = by_rest(kQosFlags, text);
      if (word == nullptr) word = by_name(kQosFlags, text);
      if (word == nullptr) return refuse(path, text + " is no flag of a QOS");
      out.emplace(word->name);
    }
    settings[name] = list_json(std::move(out));
  }

  void take_modes(const std::string& name, const std::string& path, const std::set<std::string>& all) {
    std::set<std::string> out;
    for (const std::string& text : all) {
      const Word* word = by_rest(kPreemptModes, text);
      if (word == nullptr) return refuse(path, text + " is no preempt mode");
      out.emplace(word->name);
    }
    settings[name] = out.empty() ? std::string(kPreemptModes.front().name) : joined(out);
  }

  void take_tres(const std::string& name, const std::string& path, const Json& value) {
    if (!value.is_array()) return refuse(path, "must be a list");
    for (const Json& item : value) {
      const std::string type = item.is_object() ? core::get_string(item, {"type"}) : "";
      if (type.empty()) return refuse(path, "each item must be {type, name, count}");
      for (const auto& [member, unused] : item.items()) {
        if (member != "type" && member != "name" && member != "count" && member != "id")
          return refuse(path + "/" + member, "unknown");
      }
      const std::string of = core::get_string(item, {"name"});
      const std::optional<Json> count = number(item.value("count", Json()));
      if (!count || !(count->is_number_integer() || count->is_string())) return refuse(path, "count: must be a number");
      const bool none = count->is_string() || *count < 0;
      settings[name + "/" + type + (of.empty() ? "" : "/" + of)] = none ? Json(kUnlimited) : *count;
    }
  }

  /// Returns the number. nullopt: the value is no number. Null: no number is set. "": the number is infinite.
  static std::optional<Json> number(const Json& value) {
    if (value.is_number()) return value;
    if (value.is_string()) {
      const std::string text = value.get<std::string>();
      double out = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
      if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
      if (out == std::floor(out) && std::abs(out) < 1e15) return Json(static_cast<std::int64_t>(out));
      return Json(out);
    }
    if (!value.is_object()) return std::nullopt;
    for (const auto& [member, unused] : value.items()) {
      if (member != "set" && member != "infinite" && member != "number") return std::nullopt;
    }
    // If `infinite` is true, slurmrestd ignores `set` and `number`.
    if (core::get_bool(value, {"infinite"})) return Json("");
    if (!core::get_bool(value, {"set"}, value.contains("number") && !value.contains("set"))) return Json();
    if (!value.contains("number") || !value["number"].is_number()) return std::nullopt;
    return value["number"];
  }

  void take_number(const QosField& field, const std::string& path, const Json& value) {
    const std::optional<Json> read = number(value);
    if (!read) return refuse(path, "must be a number, or {set, infinite, number}");
    if (read->is_null()) return;
    if (read->is_string()) {
      if (field.form == FieldForm::kNumber || field.form == FieldForm::kSeconds) return refuse(path, "must not be infinite");
      settings[std::string(field.name)] = none_of(field);
      return;
    }
    if (*read < 0) return refuse(path, "must be 0 or more");
    if (field.form != FieldForm::kFraction && !read->is_number_integer()) return refuse(path, "must be a whole number");
    settings[std::string(field.name)] = *read;
  }

  std::string_view version_;
};

}  // namespace

const QosField* field_of(std::string_view setting) {
  const std::string_view rest = without_place(setting);
  const std::string_view name = rest.substr(0, rest.find('/'));
  const QosField* field = nullptr;
  const auto look = [&](const auto& fields) {
    const auto it = std::ranges::find(fields, name, &QosField::name);
    if (field == nullptr && it != fields.end()) field = &*it;
  };
  if (rest.size() < setting.size()) {
    look(kAssociationFields);
  } else {
    look(kQosFields);
    look(kAccountFields);
    look(kUserFields);
  }
  if (field == nullptr || (field->form == FieldForm::kTres) != (name.size() < rest.size())) return nullptr;
  return field;
}

std::string_view tres_of(std::string_view setting) {
  const std::string_view rest = without_place(setting);
  const std::size_t slash = rest.find('/');
  return slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
}

Json default_of(std::string_view setting) {
  return default_of(*field_of(setting));
}

Settings settings_of(const Qos& qos) {
  Settings out;
  std::set<std::string> flags, modes;
  for (const std::string& flag : qos.flags) {
    const Word* word = by_rest(kQosFlags, flag);
    flags.insert(word == nullptr ? flag : std::string(word->name));
  }
  for (const std::string& mode : qos.preempt_modes) {
    const Word* word = by_rest(kPreemptModes, mode);
    modes.insert(word == nullptr ? mode : std::string(word->name));
  }
  out["Description"] = qos.description;
  out["Priority"] = json_of(qos.priority, 0);
  out["Flags"] = list_json(std::move(flags));
  out["Preempt"] = list_json({qos.preempts.begin(), qos.preempts.end()});
  out["PreemptMode"] = modes.empty() ? std::string(kPreemptModes.front().name) : joined(modes);
  out["PreemptExemptTime"] = json_of(qos.preempt_exempt_seconds, kDefault);
  out["GraceTime"] = qos.grace_seconds;
  const auto fraction = [&](std::string_view name, const std::optional<double>& value) {
    out[std::string(name)] = value ? Json(*value) : default_of(name);
  };
  fraction(kUsageFactor, qos.usage_factor);
  fraction("UsageThreshold", qos.usage_threshold);
  fraction("LimitFactor", qos.limit_factor);
  put_limits(out, "", qos.limits);
  return out;
}

Json value_of(const Settings& settings, std::string_view setting) {
  const auto it = settings.find(setting);
  return it == settings.end() ? default_of(setting) : it->second;
}

std::string Difference::text() const {
  const std::optional<Place> place = place_of(setting);
  if (place && without_place(setting) == kAssociation)
    return place->text() + (is == true ? ": there is an association" : ": there is no association") +
           (wanted == true ? ", wanted one" : ", wanted none");
  return setting + " is " + shown(is) + ", wanted " + shown(wanted);
}

std::vector<Difference> differences(const Settings& wanted, const Settings& found) {
  std::vector<Difference> out;
  for (const auto& [setting, value] : wanted) {
    Json is = value_of(found, setting);
    if (!equal(setting, value, is)) out.push_back({setting, std::move(is), value});
  }
  return out;
}

core::Result<Json> qos_body(const std::string& name, const Settings& found, const Settings& wanted,
                            std::string_view data_parser) {
  for (const auto& [setting, value] : wanted) {
    const QosField* field = field_of(setting);
    if (field == nullptr || std::ranges::find(kQosFields, field->name, &QosField::name) == kQosFields.end())
      return core::fail(core::ErrorCode::kInvalid, setting + ": no such field of a QOS");
    if (field->since > data_parser)
      return core::fail(core::ErrorCode::kUnsupported, needs_later(setting, field->since, data_parser));
  }
  // slurmrestd ignores an empty list, and crashes on a list with an empty name (24.11.5, 26.05.5).
  if (const auto it = wanted.find("Preempt"); it != wanted.end() && it->second.empty() && !value_of(found, "Preempt").empty())
    return core::fail(core::ErrorCode::kUnsupported, "Preempt: slurmrestd cannot empty the list");
  Json body{{"name", name}};
  for (const QosField& field : kQosFields) {
    if (field.since > data_parser) continue;
    if (field.form == FieldForm::kTres) {
      if (Json list = tres_list(field.name, found, wanted); !list.empty()) put(body, field.path, std::move(list));
      continue;
    }
    const bool changes = wanted.contains(field.name);
    const Json value = value_of(changes ? wanted : found, field.name);
    switch (field.form) {
      case FieldForm::kFlags: {
        core::Result<Json> flags = flags_json(value, data_parser);
        if (!flags) return flags;
        put(body, field.path, *std::move(flags));
        break;
      }
      case FieldForm::kMode:
        put(body, field.path, modes_json(value));
        break;
      case FieldForm::kText:
      case FieldForm::kSeconds:
      case FieldForm::kNames:
        put(body, field.path, value);
        break;
      default:
        // An unset limit that the request does not set can be omitted.
        if (changes || value.is_number()) put(body, field.path, number_json(field, value));
    }
  }
  return body;
}

core::Result<Settings> read_qos(const Json& config, std::string_view version) {
  ConfigReader reader(version);
  if (!config.is_object()) return core::fail(core::ErrorCode::kInvalid, "must be an object");
  reader.object(config, "");
  if (!reader.problems.empty()) return core::fail(core::ErrorCode::kInvalid, reader.problems);
  return std::move(reader.settings);
}

std::string folded(std::string_view name) {
  std::string out(name);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

bool listed(std::string_view list, std::string_view name) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    if (folded(list.substr(at, end - at)) == folded(name)) return true;
    at = end + 1;
  }
  return false;
}

std::string qos_name_problem(std::string_view name) {
  const std::string other = taken_for(name);
  if (other.empty()) return {};
  return "slurmrestd takes the name \"" + std::string(name) + "\" for " + other + ", and would change another QOS or none";
}

}  // namespace slurm::accounting
