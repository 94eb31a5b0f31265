#include "enlist/juju/data.hpp"

#include <algorithm>
#include <cctype>

#include "core/json.hpp"
#include "enlist/rules/names.hpp"
#include "enlist/rules/pool_file.hpp"
#include "slurm/conf/conf.hpp"

namespace enlist::juju {
namespace {

using core::ErrorCode;

constexpr const char *kPartition = "partition", *kNodeSet = "nodeset", *kKeyId = "auth_key_id", *kControllers = "controllers";
constexpr const char *kPartitionName = "partitionname", *kNodes = "nodes", *kFeature = "feature";

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// Returns the JSON in the databag under this key. nullopt: the key is missing, or its value is empty.
core::Result<std::optional<core::Json>> value_of(const Databag& databag, const char* key) {
  const auto found = databag.find(key);
  if (found == databag.end() || found->second.empty()) return std::nullopt;
  core::Result<core::Json> json = core::parse_json(found->second);
  if (!json) return std::unexpected(json.error().with(std::string("the databag's ") + key));
  if (json->is_null() || json->empty() || *json == "") return std::nullopt;
  return *std::move(json);
}

std::unexpected<core::Error> wrong(const char* key, const std::string& what) {
  return core::fail(ErrorCode::kInvalid, std::string("the databag's ") + key + " " + what);
}

/// Returns the settings of the partition, except for its name and its nodes, as on its line in slurm.conf.
core::Result<std::string> words_of(const core::Json& partition) {
  std::string out;
  for (const auto& [key, value] : partition.items()) {
    if (key == kPartitionName || key == kNodes) continue;
    if (!value.is_string() || value.get_ref<const std::string&>().find('"') != std::string::npos)
      return wrong(kPartition, "has no string in " + key);
    const auto& text = value.get_ref<const std::string&>();
    const char* quote = text.empty() || text.find_first_of(" \t") != std::string::npos ? "\"" : "";
    out += (out.empty() ? "" : " ") + key + "=" + quote + text + quote;
  }
  return out;
}

}  // namespace

core::Result<Databag> compute_data(const std::string& app, std::string_view partition_conf) {
  if (auto good = check_pool_name(app); !good) return std::unexpected(good.error());
  if (auto good = check_partition_conf(partition_conf); !good) return std::unexpected(good.error());
  slurm::conf::Conf line;
  line.add_record("PartitionName", app, partition_conf);
  core::Json partition{{kPartitionName, app}, {kNodes, app}};
  const auto& settings = line.entries().front().settings;
  for (auto setting = settings.begin() + 1; setting != settings.end(); ++setting)
    partition[lower_case(setting->key)] = setting->value;
  return Databag{{kPartition, partition.dump()}, {kNodeSet, core::Json{{kNodeSet, app}, {kFeature, app}}.dump()}};
}

core::Result<std::optional<Pool>> pool_from(const Databag& databag, const std::string& app) {
  const auto partition = value_of(databag, kPartition), node_set = value_of(databag, kNodeSet);
  if (!partition) return std::unexpected(partition.error());
  if (!node_set) return std::unexpected(node_set.error());
  if (!*partition || !*node_set) return std::nullopt;
  if (auto good = check_pool_name(app); !good) return std::unexpected(good.error());
  const auto is_app = [&](const core::Json& json, const char* key) { return core::get_string(json, {key}) == app; };
  if (!is_app(**partition, kPartitionName) || !is_app(**partition, kNodes))
    return wrong(kPartition, "does not have the name of the application " + app);
  if (!is_app(**node_set, kNodeSet) || !is_app(**node_set, kFeature))
    return wrong(kNodeSet, "does not have the name of the application " + app);
  const core::Result<std::string> words = words_of(**partition);
  if (!words) return std::unexpected(words.error());
  if (auto good = check_partition_conf(*words); !good) return std::unexpected(good.error().with("partition " + app));
  return Pool{.name = app, .partition_conf = *words};
}

Databag to_databag(const ControllerData& data) {
  return {{kKeyId, core::Json(data.auth_key_id).dump()}, {kControllers, core::Json(data.controllers).dump()}};
}

core::Result<std::optional<ControllerData>> controller_data_from(const Databag& databag) {
  const auto id = value_of(databag, kKeyId), controllers = value_of(databag, kControllers);
  if (!id) return std::unexpected(id.error());
  if (!controllers) return std::unexpected(controllers.error());
  if (!*id || !*controllers) return std::nullopt;
  if (!(*id)->is_string()) return wrong(kKeyId, "is not a string");
  ControllerData out{(*id)->get<std::string>(), {}};
  if (!(*controllers)->is_array()) return wrong(kControllers, "is not a list");
  for (const core::Json& controller : **controllers) {
    if (!controller.is_string()) return wrong(kControllers, "is not a list of strings");
    // Drops a repeated host, because slurmd would exit.
    if (std::string host = controller.get<std::string>(); std::ranges::find(out.controllers, host) == out.controllers.end())
      out.controllers.push_back(std::move(host));
  }
  return out;
}

}  // namespace enlist::juju
