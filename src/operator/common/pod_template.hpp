// Merges the pod templates of users over our defaults.
//
// Users see one rule: what they write takes precedence. Maps are merged. Lists of named items (containers, env, volumes, ports)
// are merged by name, and volumeMounts by mountPath. The user's args are appended to ours. A probe's handler, an env variable's
// source or a volume's source replaces ours if the user sets it. Null and empty lists change nothing. The Go operator also
// ignores them, because its chart writes them for fields that are not set. The schema checks types, but this code does not rely
// on the schema.
#pragma once

#include <string>
#include <string_view>

#include "api/common.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"

namespace op {

/// Returns `base`, our container, with `over`, the user's container, merged over it. The name of `base` stays.
core::Json merge_container(core::Json base, const core::Json& over);

/// Returns the user's container with this name in the pod template, or null.
const core::Json* container_in(const api::PodTemplate& over, std::string_view name);
/// Returns the image of the container `name`. An image in the pod template `over` takes precedence over an image in
/// `container`, the user's container in a field outside of the template. If neither has an image, returns `fallback`.
std::string container_image(const api::PodTemplate& over, std::string_view name, const core::Json& container,
                            std::string_view fallback);

/// Returns {"metadata", "spec"}. The spec is `pod_spec` with the user's template `over` merged over it. The metadata has the
/// labels and annotations of `owner`, except those of tools. Labels and annotations of `over` override the owner's. `labels`
/// and `annotations` override all other values, because selectors depend on the labels.
core::Json merge_pod_template(core::Json pod_spec, const api::PodTemplate& over, const kube::ObjectMeta& owner,
                              const kube::StringMap& labels, const kube::StringMap& annotations);

/// These functions return a source of a projected volume: {"configMap": {"name", "items"}} or {"secret": {"name", "items"}}.
core::Json project_config_map(std::string_view name, const core::Json& items = nullptr, bool optional = false);
core::Json project_secret(std::string_view name, std::string_view key, std::string_view path);
/// Returns a projected volume with these sources. `mode`: the permissions of the files. By default, only root can read the
/// files.
core::Json projected_volume(std::string_view name, core::Json sources, int mode = 0600);
core::Json read_only_mount(std::string_view volume, std::string_view path, std::string_view sub_path = "");

}  // namespace op
