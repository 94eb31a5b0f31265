#include "operator/governance/settings.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace op::governance {
namespace {

using core::Json;
using slurm::accounting::FieldForm;
using slurm::accounting::QosField;
using slurm::accounting::Settings;

/// Slurm stores these numbers in 32 bits and reserves the last three values.
constexpr std::int64_t kMost = 0xFFFFFFFC;

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size() || out < 0) return std::nullopt;
  return out;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

/// True if Slurm counts this TRES in MB, as it does for memory and burst buffers.
bool is_memory(std::string_view tres) {
  return tres == "mem" || tres == "vmem" || tres.starts_with("bb/");
}

/// Returns the amount in Slurm's unit for this TRES; nullopt if the text is not a valid amount of this TRES.
std::optional<std::int64_t> tres_count(std::string_view tres, std::string_view text) {
  constexpr std::string_view kUnits = "KMGTP";
  const std::size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  if (unit == std::string_view::npos) return whole(text);
  std::optional<std::int64_t> number = whole(text.substr(0, text.size() - 1));
  if (!number || !is_memory(tres)) return std::nullopt;
  constexpr std::int64_t kTooMuch = std::int64_t{1} << 40;
  if (*number > kTooMuch) return std::nullopt;
  if (unit == 0) return *number % 1024 == 0 ? std::optional(*number / 1024) : std::nullopt;
  for (std::size_t i = 1; i < unit; ++i) *number *= 1024;
  return number;
}

class Reader {
 public:
  explicit Reader(bool expressions = false) : expressions_(expressions) {}

  DeclaredQos out;
  std::string problems;

  void refuse(const std::string& path, const std::string& why) {
    const std::string problem = path + ": " + why;
    // An association is read once for each of its clusters, so the same problem can occur several times.
    if (problems.find(problem) == std::string::npos) problems += (problems.empty() ? "" : "; ") + problem;
  }

  /// Reads the members of `json` that `fields` lists. `place`: the prefix of the names of the settings.
  template <std::size_t N>
  void members(const Json& json, const std::string& above, const std::array<QosField, N>& fields,
               const std::string& place = "") {
    for (const auto& [member, value] : json.items()) {
      // The members have the names of sacctmgr, but begin with a small letter.
      const auto field = std::ranges::find_if(fields, [&](const QosField& each) {
        return slurm::accounting::folded(each.name) == slurm::accounting::folded(member);
      });
      if (field == fields.end()) continue;
      const std::string path = above + "." + member;
      const std::string name = place + std::string(field->name);
      if (field->form == FieldForm::kTres) {
        for (const auto& [tres, count] : value.items())
          take_tres(name, tres, member + "[" + tres + "]", path + "[" + tres + "]", count);
      } else {
        take(*field, name, path, value);
      }
    }
  }

  /// Reads the settings of an association, and records that the association is declared.
  void association(const Json& json, const std::string& above, const slurm::accounting::Place& place) {
    using slurm::accounting::kAssociationFields;
    out.settings[place.setting(slurm::accounting::kAssociation)] = true;
    const std::string before = place.setting("");
    members(json, above, kAssociationFields, before);
    if (const auto limits = json.find("limits"); limits != json.end())
      members(*limits, above + ".limits", kAssociationFields, before);
  }

 private:
  void take_tres(const std::string& name, const std::string& tres, std::string limit, const std::string& path,
                 const Json& value) {
    if (tres.empty() || tres.find_first_of("=, ") != std::string::npos) return refuse(path, "is no name of a TRES");
    const std::string setting = name + "/" + tres;
    if (value == "unlimited" || value == "default") {
      out.settings[setting] = slurm::accounting::kUnlimited;
      return;
    }
    if (value.is_string() && is_expression(value.get<std::string>())) {
      if (!expressions_)
        return refuse(path, "\"" + value.get<std::string>() + "\": only limits of a SlurmQos can be expressions");
      core::Result<Expression> expression = read_expression(value.get<std::string>());
      if (!expression) return refuse(path, expression.error().message);
      if (core::Result<void> known = check_tres(tres); !known) return refuse(path, known.error().message);
      out.capacity[setting] = {std::move(limit), tres, value.get<std::string>(), *std::move(expression)};
      return;
    }
    const std::optional<std::int64_t> count =
        value.is_number() ? std::optional(value.get<std::int64_t>()) : tres_count(tres, value.get<std::string>());
    if (!count)
      return refuse(path, "\"" + value.get<std::string>() + "\": must be a number" +
                              (is_memory(tres) ? ", or a number with K, M, G, T or P" : " without a unit") +
                              (expressions_ ? ", or an expression such as 50%" : ""));
    out.settings[setting] = *count;
  }

  void take(const QosField& field, const std::string& name, const std::string& path, const Json& value) {
    Json& to = out.settings[name];
    switch (field.form) {
      case FieldForm::kText:
      case FieldForm::kMode:
        to = value;
        if (field.name == slurm::accounting::kParent) to = slurm::accounting::folded(value.get<std::string>());
        return;
      case FieldForm::kFlags:
      case FieldForm::kNames: {
        std::set<std::string> words;
        for (const Json& word : value) {
          const std::string text = word.get<std::string>();
          words.insert(field.form == FieldForm::kNames ? slurm::accounting::folded(text) : text);
        }
        to = Json::array();
        for (const std::string& word : words) to.push_back(word);
        return;
      }
      default:
        break;
    }
    if (value == "default" || value == "unlimited") {
      to = slurm::accounting::default_of(name);
      return;
    }
    if (field.form == FieldForm::kShares && value == "parent") {
      to = value;
      return;
    }
    const std::optional<Json> number = value.is_number() ? std::optional(value) : read(field, value.get<std::string>());
    if (!number) return refuse(path, "\"" + value.get<std::string>() + "\": " + wanted(field));
    if (*number > kMost) return refuse(path, "must be " + std::to_string(kMost) + " or less");
    to = *number;
  }

  static std::optional<Json> read(const QosField& field, const std::string& text) {
    if (field.form == FieldForm::kFraction) {
      double out = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
      if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
      return out;
    }
    // The only optional time is PreemptExemptTime of a QOS. The priority of an association is an optional number.
    const bool time = field.form == FieldForm::kMinutes || field.form == FieldForm::kSeconds ||
                      (field.form == FieldForm::kOptional && field.path != "priority");
    std::optional<std::int64_t> out = time ? read_time(text) : whole(text);
    // sacctmgr rounds up to whole minutes too.
    if (out && field.form == FieldForm::kMinutes) *out = (*out + 59) / 60;
    return out ? std::optional<Json>(*out) : std::nullopt;
  }

  static std::string wanted(const QosField& field) {
    if (field.form == FieldForm::kFraction) return "must be a number";
    if (field.form == FieldForm::kCount || field.form == FieldForm::kNumber) return "must be a whole number";
    if (field.form == FieldForm::kShares) return "must be a whole number, parent or default";
    return "must be a time such as 1-12:00:00, 36:00:00 or 36h";
  }

  bool expressions_;  ///< Limits can follow the capacity of a cluster.
};

/// Returns the path of a setting in the spec: "spec.limits.grpJobs".
std::string path_of(std::string_view setting) {
  const QosField& field = *slurm::accounting::field_of(setting);
  std::string member(field.name);
  member[0] = static_cast<char>(member[0] - 'A' + 'a');
  std::string out = field.limits() ? "spec.limits." + member : "spec." + member;
  if (const std::string_view tres = slurm::accounting::tres_of(setting); !tres.empty()) out += "[" + std::string(tres) + "]";
  return out;
}

/// Returns the clusters in `clusters` that `named` lists. If `named` is empty, returns all of them.
std::set<std::string> chosen(const std::vector<std::string>& named, const std::set<std::string>& clusters) {
  if (named.empty()) return clusters;
  std::set<std::string> out;
  for (const std::string& each : named) {
    if (clusters.contains(slurm::accounting::folded(each))) out.insert(slurm::accounting::folded(each));
  }
  return out;
}

std::set<std::string> missing(const std::vector<std::string>& named, const std::set<std::string>& clusters) {
  std::set<std::string> out;
  for (const std::string& each : named) {
    if (!clusters.contains(slurm::accounting::folded(each))) out.insert(each);
  }
  return out;
}

}  // namespace

std::set<slurm::accounting::Place> default_places(const Settings& settings, const std::string& account) {
  std::map<std::string, slurm::accounting::Place> by_cluster;
  for (const auto& [setting, value] : settings) {
    const auto place = slurm::accounting::place_of(setting);
    if (!place || slurm::accounting::without_place(setting) != slurm::accounting::kAssociation || value != true) continue;
    if (place->account != account) continue;
    // The association for all partitions takes precedence. The name of its partition is "", which sorts first.
    const auto [it, added] = by_cluster.emplace(place->cluster, *place);
    if (!added && place->partition < it->second.partition) it->second = *place;
  }
  std::set<slurm::accounting::Place> out;
  for (auto& [cluster, place] : by_cluster) out.insert(std::move(place));
  return out;
}

std::optional<std::int64_t> read_time(std::string_view text) {
  if (text.find_first_of("hms") != std::string_view::npos) {
    const core::Result<core::Duration> duration = api::parse_duration(text);
    if (!duration || duration->count() < 0) return std::nullopt;
    return (duration->count() + 999) / 1000;
  }
  std::int64_t days = 0;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const std::optional<std::int64_t> number = whole(text.substr(0, dash));
    if (!number) return std::nullopt;
    days = *number;
    text.remove_prefix(dash + 1);
  }
  std::vector<std::int64_t> parts;
  for (const std::string_view part : split(text, ':')) {
    const std::optional<std::int64_t> number = whole(part);
    if (!number || *number > kMost) return std::nullopt;
    parts.push_back(*number);
  }
  if (parts.size() > 3 || days > kMost) return std::nullopt;
  // After days: hours[:minutes[:seconds]]. Without days: minutes, minutes:seconds or hours:minutes:seconds.
  if (dash == std::string_view::npos && parts.size() < 3) parts.insert(parts.begin(), 0);
  parts.resize(3);
  return days * 86400 + parts[0] * 3600 + parts[1] * 60 + parts[2];
}

core::Result<DeclaredQos> declared(const api::SlurmQosSpec& spec) {
  Reader reader(/*expressions=*/true);
  const Json json = api::to_json(spec);
  reader.members(json, "spec", slurm::accounting::kQosFields);
  if (const auto limits = json.find("limits"); limits != json.end())
    reader.members(*limits, "spec.limits", slurm::accounting::kQosFields);
  core::Result<Settings> config = slurm::accounting::read_qos(spec.config, spec.config_version);
  if (!config) return std::unexpected(config.error().with("spec.config"));
  for (auto& [setting, value] : *config) {
    if (reader.out.settings.contains(setting) || reader.out.capacity.contains(setting)) {
      reader.refuse("spec.config",
                    std::string(slurm::accounting::field_of(setting)->path) + ": stands in " + path_of(setting) + " as well");
      continue;
    }
    if (setting == "Preempt") {
      for (Json& name : value) name = slurm::accounting::folded(name.get<std::string>());
    }
    reader.out.settings[setting] = std::move(value);
  }
  // With the flag Relative, Slurm reads the TRES limits of a QOS as percentages of the cluster. So these limits already follow
  // the capacity.
  const auto flags = reader.out.settings.find("Flags");
  if (flags != reader.out.settings.end() && std::ranges::find(flags->second, Json("Relative")) != flags->second.end()) {
    for (const auto& [setting, limit] : reader.out.capacity)
      reader.refuse("spec.limits." + limit.limit,
                    "cannot be an expression with the flag Relative: give a percentage as a number");
  }
  if (!reader.problems.empty()) return core::fail(core::ErrorCode::kInvalid, reader.problems);
  return std::move(reader.out);
}

core::Result<Settings> declared(const api::SlurmAccountSpec& spec, const std::set<std::string>& clusters) {
  Reader reader;
  const Json json = api::to_json(spec);
  reader.members(json, "spec", slurm::accounting::kAccountFields);
  for (const std::string& cluster : chosen(spec.clusters, clusters)) reader.association(json, "spec", {"", "", cluster});
  if (!reader.problems.empty()) return core::fail(core::ErrorCode::kInvalid, reader.problems);
  return std::move(reader.out.settings);
}

core::Result<Settings> declared(const api::SlurmUserSpec& spec, const std::set<std::string>& clusters) {
  Reader reader;
  const Json json = api::to_json(spec);
  reader.members(json, "spec", slurm::accounting::kUserFields);
  const std::string wanted = slurm::accounting::folded(spec.default_account.value_or(""));
  bool has_default = wanted.empty();
  for (std::size_t i = 0; i < spec.associations.size(); ++i) {
    const api::UserAssociation& each = spec.associations[i];
    const std::string path = "spec.associations[" + std::to_string(i) + "]";
    const std::string account = slurm::accounting::folded(each.account);
    has_default = has_default || account == wanted;
    for (const std::string& cluster : chosen(each.clusters, clusters)) {
      const slurm::accounting::Place place{account, each.partition, cluster};
      if (reader.out.settings.contains(place.setting(slurm::accounting::kAssociation))) {
        reader.refuse(path, "another association is for " + place.text() + " as well");
        continue;
      }
      reader.association(json["associations"][i], path, place);
    }
  }
  if (!has_default)
    reader.refuse("spec.defaultAccount", "\"" + *spec.default_account + "\": no association is in this account");
  if (!wanted.empty()) {
    for (const slurm::accounting::Place& place : default_places(reader.out.settings, wanted))
      reader.out.settings[place.setting(slurm::accounting::kDefaultAccount)] = true;
  }
  if (!reader.problems.empty()) return core::fail(core::ErrorCode::kInvalid, reader.problems);
  return std::move(reader.out.settings);
}

core::Result<Settings> declared(const api::SlurmAssociationSpec& spec, const std::set<std::string>& clusters) {
  Reader reader;
  const Json json = api::to_json(spec);
  const std::string account = spec.user ? slurm::accounting::folded(spec.account) : "";
  for (const std::string& cluster : chosen(spec.clusters, clusters))
    reader.association(json, "spec", {account, spec.partition, cluster});
  if (!reader.problems.empty()) return core::fail(core::ErrorCode::kInvalid, reader.problems);
  return std::move(reader.out.settings);
}

std::set<std::string> unknown_clusters(const api::SlurmAccountSpec& spec, const std::set<std::string>& clusters) {
  return missing(spec.clusters, clusters);
}

std::set<std::string> unknown_clusters(const api::SlurmUserSpec& spec, const std::set<std::string>& clusters) {
  std::set<std::string> out;
  for (const api::UserAssociation& each : spec.associations) out.merge(missing(each.clusters, clusters));
  return out;
}

std::set<std::string> unknown_clusters(const api::SlurmAssociationSpec& spec, const std::set<std::string>& clusters) {
  return missing(spec.clusters, clusters);
}

}  // namespace op::governance
