// Pod templates: our defaults, and what users write over them.
//
// Users see one rule: what they write wins. Maps are merged, lists of named things (containers, env, volumes, ports) by name,
// volumeMounts by mountPath; args are appended to ours; a probe's handler, an env variable's source and a volume's source
// replace ours. Null and empty lists change nothing, as with the Go operator, whose chart writes them wherever nothing is set.
// Types are as the schema has let them through; nothing here relies on it.
#pragma once

#include <string>
#include <string_view>

#include "api/common.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"

namespace op {

/// A container of ours with the user's container merged over it. The name stays ours.
core::Json merge_container(core::Json base, const core::Json& over);

/// What users write in the pod template of the container with this name, or null.
const core::Json* container_in(const api::PodTemplate& over, std::string_view name);
/// The image that this container will run with: that of the template, of `container` (what stands beside the template), or
/// `fallback`.
std::string container_image(const api::PodTemplate& over, std::string_view name, const core::Json& container,
                            std::string_view fallback);

/// {"metadata", "spec"}: the pod spec with the user's template merged over it. The owner's labels and annotations are the
/// pods' too, but for those that tools keep there; the template's stand over them. `labels` cannot be overridden: selectors
/// depend on them.
core::Json merge_pod_template(core::Json pod_spec, const api::PodTemplate& over, const kube::ObjectMeta& owner,
                              const kube::StringMap& labels, const kube::StringMap& annotations);

/// {"name", "configMap": {"name", "items"}} and its kin, as sources of a projected volume.
core::Json project_config_map(std::string_view name, const core::Json& items = nullptr, bool optional = false);
core::Json project_secret(std::string_view name, std::string_view key, std::string_view path);
/// A volume of such sources, with files for root alone unless `mode` says otherwise.
core::Json projected_volume(std::string_view name, core::Json sources, int mode = 0600);
core::Json read_only_mount(std::string_view volume, std::string_view path, std::string_view sub_path = "");

}  // namespace op
