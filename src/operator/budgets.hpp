// Uninstalling the operator: removes the PodDisruptionBudgets of workers. They belong to the Controllers, so they would outlive
// the operator and refuse every eviction forever.
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

/// Deletes the budgets of all workers in these namespaces (empty: in all), and calls `done` with their number or with the first
/// error. Nothing else may recreate them in the meantime.
void remove_budgets(kube::Client& client, const std::vector<std::string>& namespaces,
                    std::function<void(core::Result<int>)> done);

/// Checks whether the operator of that name exists: while it does, the budgets must stay. `helm uninstall` deletes the
/// operator's Deployment, but somebody may have applied the Job that removes the budgets like any other object. A running
/// operator renews its Lease, and releases it at its end. Calls `done` within a minute and a half: with what exists, with ""
/// for nothing, or with an error. Errors: those of a read, and kConflict if the Deployment is gone but the Lease is still
/// renewed.
void look_for_operator(core::Loop& loop, kube::Client& client, const kube::Key& name,
                       std::function<void(core::Result<std::string>)> done);

}  // namespace op
