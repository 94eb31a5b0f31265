// Removes the PodDisruptionBudgets of workers when the operator is uninstalled. The Controllers own the budgets, so the budgets
// would outlive the operator and refuse every eviction of workers forever.
//
// Folder src/operator: the operator as a whole. It uses and connects all controllers.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/loop.hpp"
#include "core/result.hpp"
#include "kube/client/client.hpp"

namespace op {

/// Deletes the budgets of all workers in these namespaces (empty: in all namespaces). Calls `done` with the number of deleted
/// budgets or with the first error. Call remove_budgets only if no operator runs, because an operator would create the budgets
/// again.
void remove_budgets(kube::Client& client, const std::vector<std::string>& namespaces,
                    std::function<void(core::Result<int>)> done);

/// Checks whether the operator `name` is still installed or still runs. If so, the budgets must stay. Normally, the Job that
/// removes the budgets runs after `helm uninstall` has deleted the operator's Deployment, but a user can apply the Job
/// directly. A running operator renews its Lease, and releases the Lease when the operator ends. Calls `done` within 90
/// seconds. The result is "Deployment NS/NAME" if this Deployment exists, or "" if no operator runs. Errors: the error of a
/// failed read, or kConflict if the Deployment is gone but an operator still renews the Lease.
void look_for_operator(core::Loop& loop, kube::Client& client, const kube::Key& name,
                       std::function<void(core::Result<std::string>)> done);

}  // namespace op
