// Children: objects that a controller owns and applies.
//
// A child is applied when the hash of what we want differs from the hash that stands in its annotation, or when what we want is
// no longer contained in what is observed; otherwise nothing is written. What others add beside it stays
// theirs, but in a selector.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/common.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace op {

/// {"apiVersion", "kind", "metadata"} of a child that `owner` (of kind `owner_kind`) controls.
core::Json child_json(const kube::Resource& resource, const kube::Key& key, const kube::Resource& owner_kind,
                      const kube::ObjectMeta& owner, const kube::StringMap& labels, const kube::StringMap& annotations = {});

/// The same for a child that shows what users wrote on its owner: the owner's labels and annotations, over them those of `over`
/// (what users want on this child), over them our labels.
core::Json owned_child(const kube::Resource& resource, const kube::Key& key, const kube::Resource& owner_kind,
                       const kube::ObjectMeta& owner, const kube::StringMap& ours, const api::Metadata& over = {});

/// The step that makes the child as wanted, or nothing. `observed` null: it does not exist.
std::optional<plan::Step> apply_step(const kube::Resource& resource, core::Json intent, const kube::Object* observed,
                                     std::string_view manager);

/// Takes into the spec of a StatefulSet what is never changed once it is made, as it is: other versions of the operator made it
/// otherwise. `observed` null: it does not exist.
void keep_fixed_fields(core::Json& spec, const kube::Object* observed);

/// Goes before the apply of a workload (a StatefulSet or Deployment): takes probes away that have another handler than the one
/// wanted, and replaces volumes of a wanted name that are of another type. A probe has one handler and a volume one type;
/// server-side apply leaves what others have set, and the API server refuses the two. Our own are changed by the apply itself:
/// of a child that we applied before, it is done once that was refused, as `outcomes` tells.
std::optional<plan::Step> make_way_step(const kube::Resource& resource, const core::Json& intent, const kube::Object* observed,
                                        const plan::Outcomes& outcomes);

/// A digest of what a Secret holds, for an annotation: salted with the owner's uid, so that it tells nothing about other
/// Secrets; the same for a Secret that was made again. "": of nothing.
std::string salted_digest(const kube::ObjectMeta& owner, std::string_view content);

/// Copies labels and annotations that users set on a custom resource or template, without those that tools keep for themselves,
/// and those that tell the operator what to do with a Controller.
void add_metadata(kube::StringMap& into, const kube::StringMap& from);

}  // namespace op
