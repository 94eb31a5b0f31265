// `kubectl slurm release`: gives a cluster back. What this operator put on its objects so that nobody else could end them goes:
// finalizers, and the notes by which it knows what it did. Everything that runs stays. Pure, but for the command itself.
//
// Must not be done while the operator runs, which would put all of it back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"

namespace cli {

/// Why nobody can tell that the operator does not run, or that it does; "": it does not. `pods`: those that are labelled as an
/// operator's; `leases`: of their namespaces, and all that have the operator's usual name. The Go operator, whose pods are
/// labelled alike, is none; nor is one that acts in other namespaces only.
std::string operator_runs(const std::vector<core::Json>& pods, const std::vector<core::Json>& leases, const std::string& ns,
                          core::WallTime now);

/// One change of one object.
struct ReleaseStep {
  kube::Resource resource;
  kube::ObjectMeta object;
  std::string what;    ///< "take off the finalizer nodeset.slinky.slurm.net/drain".
  core::Json patch{};  ///< A merge patch with uid and, where a list is replaced, resourceVersion; null: the object is deleted.
};

struct ReleaseFacts {
  core::Json controller;
  std::vector<core::Json> nodesets, restapis, workers, revisions, budgets, accountings{};  ///< Of the namespace.
};

struct ReleasePlan {
  std::vector<ReleaseStep> steps;
  std::string refusal;             ///< Why none of it may be done; "": it may.
  std::vector<std::string> notes;  ///< What stays, and what the user has to look after.
};

/// In an order in which each can be interrupted. `remove_budget`: the PodDisruptionBudget of the workers goes too.
ReleasePlan plan_release(const ReleaseFacts& facts, bool remove_budget);

}  // namespace cli
