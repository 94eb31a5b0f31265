// Children: objects that a controller owns and applies.
//
// The operator applies a child if the hash of the wanted object differs from the hash in an annotation of the child, or if the
// observed child lacks some of the wanted content. Otherwise the operator writes nothing. Fields that other managers have added
// to the child stay, except in a selector.
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

/// Returns child_json with additional labels and annotations. They are copied from `owner`. The metadata that users set for
/// this child, `over`, overrides them. The labels in `ours` override all other labels.
core::Json owned_child(const kube::Resource& resource, const kube::Key& key, const kube::Resource& owner_kind,
                       const kube::ObjectMeta& owner, const kube::StringMap& ours, const api::Metadata& over = {});

/// Returns the step that creates the child, or changes the child to the wanted state. nullopt: the child is already in the
/// wanted state, or is being deleted. `observed` null: the child does not exist. If somebody has changed the number or protocol
/// of our ports in a Service, the step replaces only the ports, and a later pass applies the rest of the Service.
std::optional<plan::Step> apply_step(const kube::Resource& resource, core::Json intent, const kube::Object* observed,
                                     std::string_view manager);

/// Copies the immutable fields of an existing StatefulSet into the wanted spec, because other versions of the operator set
/// these fields differently. `observed` null: the StatefulSet does not exist.
void keep_fixed_fields(core::Json& spec, const kube::Object* observed);

/// Returns a step that must precede the apply of a workload (a StatefulSet or Deployment). The step removes probes whose
/// handler differs from the wanted handler, and replaces volumes whose type differs from the wanted type. Without this step,
/// the API server would refuse the apply: server-side apply keeps a handler or type that another manager has set, and adds a
/// second handler or type. Fields that the operator has set itself need no such step. So for a child that the operator has
/// applied before, returns the step only if `outcomes` shows that the API server refused the apply.
std::optional<plan::Step> make_way_step(const kube::Resource& resource, const core::Json& intent, const kube::Object* observed,
                                        const plan::Outcomes& outcomes);

/// Returns a digest of a Secret's data, for an annotation. The digest is salted with the uid of `owner`, so that it does not
/// reveal whether other Secrets have equal data. If the Secret is created again with equal data, the digest stays the same.
/// Returns "" if `content` is empty.
std::string salted_digest(const kube::ObjectMeta& owner, std::string_view content);

/// Copies labels or annotations of a custom resource or template. Leaves out labels and annotations of tools, such as kubectl
/// and Helm, and annotations that control what the operator does with a Controller.
void add_metadata(kube::StringMap& into, const kube::StringMap& from);

}  // namespace op
