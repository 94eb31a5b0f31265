// Applies an object only if it differs: an apply without a change costs a request, and can still change the resourceVersion.
#pragma once

#include <string>
#include <string_view>

#include "core/json.hpp"
#include "kube/acts.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace kube {

inline constexpr std::string_view kIntentHash = "slinky.slurm.net/intent-hash";

/// Returns the hash of the desired object. apply_if_different() writes the hash into the annotation kIntentHash.
std::string intent_hash(const core::Json& desired);
/// Returns an Apply of `desired`, with the hash of `desired` in an annotation. Returns null if `observed` has the same hash,
/// contains all of `desired` (core::contains), and has no additional entries in its selector.
plan::ActPtr apply_if_different(const Resource& resource, core::Json desired, const Object* observed, std::string manager);

}  // namespace kube
