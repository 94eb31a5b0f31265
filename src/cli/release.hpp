// `kubectl slurm release`: removes what this operator put on the objects of a cluster: annotations, and finalizers that
// prevent the deletion of the objects. Pods and daemons keep running. Pure, except for the command itself.
//
// The operator must not run during a release, because it would add the annotations and finalizers again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"

namespace cli {

/// Returns the evidence that an operator runs, or might run; "" if there is none. `pods`: all pods with an operator's labels.
/// `leases`: all Leases of the pods' namespaces, and the Leases named slurm-operator in any namespace. Ignores operators that
/// do not act in the namespace `ns`. Ignores the Go operator, whose pods have the same labels.
std::string operator_runs(const std::vector<core::Json>& pods, const std::vector<core::Json>& leases, const std::string& ns,
                          core::WallTime now);

/// One change of one object.
struct ReleaseStep {
  kube::Resource resource;
  kube::ObjectMeta object;
  std::string what;    ///< "remove the finalizer nodeset.slinky.slurm.net/drain".
  core::Json patch{};  ///< A merge patch with uid and, where a list is replaced, resourceVersion; null: the object is deleted.
};

struct ReleaseFacts {
  core::Json controller;
  std::vector<core::Json> nodesets, restapis, workers, revisions, budgets, accountings{};  ///< All in the same namespace.
};

struct ReleasePlan {
  std::vector<ReleaseStep> steps;
  std::string refusal;             ///< Why the release is refused; "" if it is not.
  std::vector<std::string> notes;  ///< What remains, and what the user has to take care of.
};

/// Returns the steps in order. A user can interrupt the command after any step and run it again. With `remove_budget`, one
/// step removes the PodDisruptionBudget of the workers.
ReleasePlan plan_release(const ReleaseFacts& facts, bool remove_budget);

}  // namespace cli
