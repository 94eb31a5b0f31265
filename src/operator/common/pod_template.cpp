#include "operator/common/pod_template.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "operator/common/children.hpp"

namespace op {
namespace {

/// Removes our alternative from `base` if the user sets a different alternative in `over`. An object with alternatives, such
/// as a volume, has exactly one member that is not in `kept`: the alternative.
void drop_replaced_alternatives(core::Json& base, const core::Json& over, std::initializer_list<const char*> kept) {
  if (!base.is_object() || !over.is_object()) return;
  bool names_one = false;
  const auto is_kept = [&](const std::string& key) {
    return std::any_of(kept.begin(), kept.end(), [&](const char* name) { return key == name; });
  };
  for (const auto& [key, value] : over.items()) names_one = names_one || (!is_kept(key) && !base.contains(key));
  if (!names_one) return;
  for (auto it = base.begin(); it != base.end();) it = is_kept(it.key()) ? std::next(it) : base.erase(it);
}

void drop_replaced_probe_handler(core::Json& base, const core::Json& over) {
  constexpr std::array<const char*, 4> kHandlers{"httpGet", "tcpSocket", "exec", "grpc"};
  for (const char* probe : {"startupProbe", "livenessProbe", "readinessProbe"}) {
    if (!base.contains(probe) || !over.contains(probe) || !over[probe].is_object()) continue;
    for (const char* handler : kHandlers) {
      if (!over[probe].contains(handler)) continue;
      for (const char* ours : kHandlers) base[probe].erase(ours);
    }
  }
}

/// Calls drop_replaced_alternatives for each item of our list whose name also occurs in the user's list.
void drop_in_list(core::Json& base, const core::Json& over, const char* list) {
  if (!base.contains(list) || !over.contains(list) || !over[list].is_array()) return;
  for (const core::Json& wanted : over[list]) {
    for (core::Json& ours : base[list]) {
      if (core::get_string(ours, {"name"}) == core::get_string(wanted, {"name"})) {
        drop_replaced_alternatives(ours, wanted, {"name"});
      }
    }
  }
}

/// Merges the user's containers over ours by name. `list` is "containers" or "initContainers".
void merge_containers(core::Json& spec, core::Json& over, const char* list) {
  if (!over.contains(list) || !over[list].is_array()) return;
  core::Json& ours = spec[list];
  if (!ours.is_array()) ours = core::Json::array();
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < ours.size(); ++i) places.emplace(core::get_string(ours[i], {"name"}), i);
  for (const core::Json& wanted : over[list]) {
    const auto [place, is_new] = places.emplace(core::get_string(wanted, {"name"}), ours.size());
    if (is_new) {
      ours.push_back(wanted);
    } else {
      ours[place->second] = merge_container(std::move(ours[place->second]), wanted);
    }
  }
  over.erase(list);
}

}  // namespace

core::Json merge_container(core::Json base, const core::Json& over) {
  if (!over.is_object()) return base;
  core::Json wanted = core::without_unsaid(over);
  wanted.erase("name");
  if (const auto theirs = wanted.find("args"); theirs != wanted.end()) {
    core::Json args = base.value("args", core::Json::array());
    if (theirs->is_array()) args.insert(args.end(), theirs->begin(), theirs->end());
    *theirs = std::move(args);
  }
  drop_replaced_probe_handler(base, wanted);
  drop_in_list(base, wanted, "env");
  return core::merge(std::move(base), wanted);
}

const core::Json* container_in(const api::PodTemplate& over, std::string_view name) {
  const core::Json* containers = core::find(over.spec, {"containers"});
  if (containers == nullptr || !containers->is_array()) return nullptr;
  const auto found =
      std::ranges::find_if(*containers, [&](const core::Json& theirs) { return core::get_string(theirs, {"name"}) == name; });
  return found == containers->end() ? nullptr : &*found;
}

std::string container_image(const api::PodTemplate& over, std::string_view name, const core::Json& container,
                            std::string_view fallback) {
  const core::Json* theirs = container_in(over, name);
  const std::string image = theirs == nullptr ? "" : core::get_string(*theirs, {"image"});
  return image.empty() ? core::get_string(container, {"image"}, fallback) : image;
}

core::Json merge_pod_template(core::Json pod_spec, const api::PodTemplate& over, const kube::ObjectMeta& owner,
                              const kube::StringMap& labels, const kube::StringMap& annotations) {
  core::Json wanted = over.spec.is_object() ? core::without_unsaid(over.spec) : core::Json::object();
  merge_containers(pod_spec, wanted, "containers");
  merge_containers(pod_spec, wanted, "initContainers");
  drop_in_list(pod_spec, wanted, "volumes");
  core::Json metadata = core::Json::object();
  const auto add = [&](const char* field, const kube::StringMap& owners, const api::StringMap& theirs,
                       const kube::StringMap& ours) {
    kube::StringMap all;
    add_metadata(all, owners);
    for (const auto& [name, value] : theirs) all[name] = value;
    for (const auto& [name, value] : ours) all[name] = value;
    if (!all.empty()) metadata[field] = std::move(all);
  };
  add("labels", owner.labels, over.metadata.labels, labels);
  add("annotations", owner.annotations, over.metadata.annotations, annotations);
  return {{"metadata", std::move(metadata)}, {"spec", core::merge(std::move(pod_spec), wanted)}};
}

core::Json project_config_map(std::string_view name, const core::Json& items, bool optional) {
  core::Json source{{"name", name}};
  if (!items.is_null()) source["items"] = items;
  if (optional) source["optional"] = true;
  return {{"configMap", std::move(source)}};
}

core::Json project_secret(std::string_view name, std::string_view key, std::string_view path) {
  return {{"secret", {{"name", name}, {"items", core::Json::array({{{"key", key}, {"path", path}}})}}}};
}

core::Json projected_volume(std::string_view name, core::Json sources, int mode) {
  return {{"name", name}, {"projected", {{"defaultMode", mode}, {"sources", std::move(sources)}}}};
}

core::Json read_only_mount(std::string_view volume, std::string_view path, std::string_view sub_path) {
  core::Json out{{"name", volume}, {"mountPath", path}, {"readOnly", true}};
  if (!sub_path.empty()) out["subPath"] = sub_path;
  return out;
}

}  // namespace op
