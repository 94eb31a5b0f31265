// Apply only what differs: a no-op apply still costs a request and can still bump the resourceVersion.
#pragma once

#include <string>
#include <string_view>

#include "core/json.hpp"
#include "kube/acts.hpp"
#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace kube {

inline constexpr std::string_view kIntentHash = "slinky.slurm.net/intent-hash";

/// The hash of an intent, as the annotation holds it.
std::string intent_hash(const core::Json& desired);
/// An Apply of `desired` with its hash as an annotation; null when `observed` carries the same hash and still contains the
/// intent, and of its selector nothing else.
plan::ActPtr apply_if_different(const Resource& resource, core::Json desired, const Object* observed, std::string manager);

}  // namespace kube
