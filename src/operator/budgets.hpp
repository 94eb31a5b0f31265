// The end of the operator: workers are let go of. Their PodDisruptionBudgets, which are their Controllers' and so outlive it,
// would refuse every eviction for ever.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/loop.hpp"
#include "core/result.hpp"
#include "kube/client/client.hpp"

namespace op {

/// Deletes the budgets of all workers in these namespaces (none: in all), and calls `done` with how many there were, or with
/// the first error. Nothing else may keep them meanwhile.
void remove_budgets(kube::Client& client, const std::vector<std::string>& namespaces,
                    std::function<void(core::Result<int>)> done);

/// Whether the operator of that name is there: while it is, the budgets must stay. Its Deployment is gone when its release was
/// uninstalled, but not where the Job for that was applied as any other object; and whoever holds its Lease renews it, and
/// releases it at its end. Calls `done` with what is there, "" for nothing, within a minute and a half, or with the error of a
/// read.
void look_for_operator(core::Loop& loop, kube::Client& client, const kube::Key& name,
                       std::function<void(core::Result<std::string>)> done);

}  // namespace op
