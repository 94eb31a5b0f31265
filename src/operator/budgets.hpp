// Removes the PodDisruptionBudgets of workers when the operator is uninstalled. The Controllers own the budgets, so they would
// outlive the operator and refuse every eviction forever.
//
// Folder src/operator: the operator as a whole, which brings its controllers together. Uses all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/loop.hpp"
#include "core/result.hpp"
#include "kube/client/client.hpp"

namespace op {

/// Deletes the budgets of all workers in these namespaces (empty: in all), and calls `done` with the number of deleted budgets
/// or with the first error. Call it only if no operator runs that would create them again.
void remove_budgets(kube::Client& client, const std::vector<std::string>& namespaces,
                    std::function<void(core::Result<int>)> done);

/// Checks whether the operator `name` is still installed or still runs: then the budgets must stay. Normally, the Job that
/// removes the budgets runs after `helm uninstall` has deleted the operator's Deployment, but a user may have applied that Job
/// directly. A running operator renews its Lease, and releases it when it ends. Calls `done` within 90 seconds: with the
/// Deployment if it exists, with "" if no operator runs, or with an error. Errors: those of a read, and kConflict if the
/// Deployment is gone but the Lease is still renewed.
void look_for_operator(core::Loop& loop, kube::Client& client, const kube::Key& name,
                       std::function<void(core::Result<std::string>)> done);

}  // namespace op
