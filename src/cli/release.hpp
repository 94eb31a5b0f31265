// `kubectl slurm release`: removes what this operator put on the objects of a cluster, namely annotations, and the finalizers
// that keep others from deleting the objects. Everything that runs stays. Pure, except for the command itself.
//
// The operator must not run during a release, because it would put everything back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"

namespace cli {

/// Returns what shows that an operator runs or may run; "" if nothing does. `pods`: all pods with an operator's labels.
/// `leases`: all Leases of the pods' namespaces, and those named slurm-operator in any namespace. Ignores operators that do not
/// act in the namespace `ns`, and the Go operator, whose pods have the same labels.
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
  std::vector<core::Json> nodesets, restapis, workers, revisions, budgets, accountings{};  ///< All in the same namespace.
};

struct ReleasePlan {
  std::vector<ReleaseStep> steps;
  std::string refusal;             ///< Why the release is refused; "" if it is not.
  std::vector<std::string> notes;  ///< What remains, and what the user has to take care of.
};

/// Returns the steps in order. The command may be interrupted after any of them, and run again. With `remove_budget`, a step
/// removes the workers' PodDisruptionBudget.
ReleasePlan plan_release(const ReleaseFacts& facts, bool remove_budget);

}  // namespace cli
