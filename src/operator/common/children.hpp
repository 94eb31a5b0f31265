// Children: objects that a controller owns and applies.
//
// A child is applied if the hash of the wanted object differs from the hash in its annotation, or if the observed object no
// longer contains what is wanted. Otherwise nothing is written. Additions by others stay, except in a selector.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/common.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace op {

/// Returns {"apiVersion", "kind", "metadata"} of a child that is controlled by `owner` (of kind `owner_kind`).
core::Json child_json(const kube::Resource& resource, const kube::Key& key, const kube::Resource& owner_kind,
                      const kube::ObjectMeta& owner, const kube::StringMap& labels, const kube::StringMap& annotations = {});

/// Returns child_json with the metadata of the user: the labels and annotations of the owner, overridden by `over` (what users
/// set for this child), overridden by our labels.
core::Json owned_child(const kube::Resource& resource, const kube::Key& key, const kube::Resource& owner_kind,
                       const kube::ObjectMeta& owner, const kube::StringMap& ours, const api::Metadata& over = {});

/// Returns the step that creates the child or makes it as wanted. nullopt: the child is as wanted, or is being deleted.
/// `observed` null: the child does not exist. If a Service has our ports with other numbers, the step replaces only the ports.
/// A later pass applies the rest.
std::optional<plan::Step> apply_step(const kube::Resource& resource, core::Json intent, const kube::Object* observed,
                                     std::string_view manager);

/// Copies the immutable fields of an existing StatefulSet into the wanted spec, because other versions of the operator set
/// these fields differently. `observed` null: the StatefulSet does not exist.
void keep_fixed_fields(core::Json& spec, const kube::Object* observed);

/// Returns a step that must precede the apply of a workload (a StatefulSet or Deployment). The step removes probes with another
/// handler than the wanted one, and replaces volumes with another type than the wanted one. The API server refuses a second
/// handler or type, and server-side apply does not remove those that other managers set. The apply can change the fields that
/// we own. So for a child that we applied before, returns the step only if `outcomes` has a refusal of the apply.
std::optional<plan::Step> make_way_step(const kube::Resource& resource, const core::Json& intent, const kube::Object* observed,
                                        const plan::Outcomes& outcomes);

/// Returns a digest of the data of a Secret, for an annotation. It is salted with the uid of the owner, so that it reveals
/// nothing about other Secrets, and it is the same if the Secret is created again. "" for no data.
std::string salted_digest(const kube::ObjectMeta& owner, std::string_view content);

/// Copies the labels and annotations of a custom resource or template. Leaves out those of tools, such as kubectl and Helm, and
/// those that control what the operator does with a Controller.
void add_metadata(kube::StringMap& into, const kube::StringMap& from);

}  // namespace op
