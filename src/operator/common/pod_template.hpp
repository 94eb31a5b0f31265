// Merges the pod templates of users over our defaults.
//
// Users see one rule: what they write wins. Maps are merged; lists of named items (containers, env, volumes, ports) are merged
// by name, volumeMounts by mountPath. args are appended to ours. A probe's handler, an env variable's source and a volume's
// source replace ours. Null and empty lists change nothing, as with the Go operator, whose chart writes them wherever nothing
// is set. The schema checks types, but nothing here relies on it.
#pragma once

#include <string>
#include <string_view>

#include "api/common.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"

namespace op {

/// Returns our container with the container of the user merged over it. The name stays ours.
core::Json merge_container(core::Json base, const core::Json& over);

/// Returns the container of the user with this name in the pod template, or null.
const core::Json* container_in(const api::PodTemplate& over, std::string_view name);
/// Returns the image of this container: from the template, from `container` (the container of the user outside of the
/// template), or `fallback`.
std::string container_image(const api::PodTemplate& over, std::string_view name, const core::Json& container,
                            std::string_view fallback);

/// Returns {"metadata", "spec"}: the pod spec with the template of the user merged over it. The pods also get the labels and
/// annotations of the owner, except those that belong to tools; those of the template override them. `labels` and `annotations`
/// cannot be overridden: selectors depend on the labels.
core::Json merge_pod_template(core::Json pod_spec, const api::PodTemplate& over, const kube::ObjectMeta& owner,
                              const kube::StringMap& labels, const kube::StringMap& annotations);

/// Return a source of a projected volume: {"configMap": {"name", "items"}}, or {"secret": ...} with the same members.
core::Json project_config_map(std::string_view name, const core::Json& items = nullptr, bool optional = false);
core::Json project_secret(std::string_view name, std::string_view key, std::string_view path);
/// Returns a volume with these sources. Only root can read the files, unless `mode` says otherwise.
core::Json projected_volume(std::string_view name, core::Json sources, int mode = 0600);
core::Json read_only_mount(std::string_view volume, std::string_view path, std::string_view sub_path = "");

}  // namespace op
