#include "operator/common/keyring_volume.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "api/well_known.hpp"

namespace op {
namespace {

const core::Json* named(const core::Json& object, std::string_view list, std::string_view name) {
  const core::Json* items = core::find(object, {list});
  if (items == nullptr || !items->is_array()) return nullptr;
  const auto found = std::ranges::find_if(*items, [&](const core::Json& i) { return core::get_string(i, {"name"}) == name; });
  return found == items->end() ? nullptr : &*found;
}

/// Returns a projected source with optional files of the keyring. `files`: pairs of a data key in the Secret and the name of
/// the file for its value.
core::Json optional_files(std::string_view keyring,
                          std::initializer_list<std::pair<std::string_view, std::string_view>> files) {
  core::Json items = core::Json::array();
  for (const auto& [key, path] : files) items.push_back({{"key", key}, {"path", path}});
  return {{"secret", {{"name", keyring}, {"items", std::move(items)}, {"optional", true}}}};
}

bool is_rotation(const core::Json& source) {
  const std::string keyring = core::get_string(source, {"secret", "name"});
  return !keyring.empty() && source == project_rotation(keyring);
}

}  // namespace

core::Json project_rotation(std::string_view keyring) {
  return optional_files(keyring, {{api::kKeyJwks, api::kKeyJwks}, {api::kKeyGeneration, api::kKeyGeneration}});
}

core::Json project_login_rotation(std::string_view keyring) {
  return optional_files(keyring, {{api::kKeyLoginJwks, api::kKeyJwks}, {api::kKeyLoginGeneration, api::kKeyLoginGeneration}});
}

core::Json wait_for_keys(std::string_view generation) {
  return {
      "sh", "-c",
      fmt::format("until [ \"$(cat /etc/slurm/{} 2>/dev/null)\" = {} ]; do sleep 0.2; done", api::kKeyGeneration, generation)};
}

core::Json keys_env() {
  return core::Json::array({{{"name", "SLURM_SACK_KEY"}, {"value", "/etc/slurm/slurm.key"}},
                            {{"name", "SLURM_SACK_JWKS"}, {"value", "/etc/slurm/slurm.jwks"}}});
}

void mark_reader(core::Json& pod_template, std::string_view container) {
  const core::Json* volume = named(pod_template["spec"], "volumes", kEtcVolume);
  const core::Json* daemon = named(pod_template["spec"], "containers", container);
  const core::Json* sources = volume == nullptr ? nullptr : core::find(*volume, {"projected", "sources"});
  if (daemon == nullptr || sources == nullptr || !sources->is_array()) return;
  const bool told = std::ranges::all_of(keys_env(), [&](const core::Json& ours) {
    const core::Json* variable = named(*daemon, "env", core::get_string(ours, {"name"}));
    return variable != nullptr && *variable == ours;
  });
  if (told && std::ranges::any_of(*sources, is_rotation))
    pod_template["metadata"]["annotations"][std::string(api::kAnnotationReadsJwks)] = "true";
}

}  // namespace op
