// The end of the operator: workers are let go of. Their PodDisruptionBudgets, which are their Controllers' and so outlive it,
// would refuse every eviction for ever.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "kube/client.hpp"

namespace op {

/// Deletes the budgets of all workers in these namespaces (none: in all), and calls `done` with how many there were, or with
/// the first error. Nothing else may keep them meanwhile.
void remove_budgets(kube::Client& client, const std::vector<std::string>& namespaces,
                    std::function<void(core::Result<int>)> done);

}  // namespace op
