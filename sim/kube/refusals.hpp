// The Status bodies of the API server's refusals, in the words of Kubernetes. Private to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/kube/api.hpp"
#include "sim/kube/merge.hpp"

namespace sim {

/// Returns the name with its resource, as messages show it: `pods "name"`.
std::string quoted(const kube::Resource& resource, std::string_view name);

Refusal not_found(const kube::Resource& resource, std::string_view name);
Refusal already_exists(const kube::Resource& resource, std::string_view name);
Refusal conflict(const kube::Resource& resource, std::string_view name, std::string_view why);
Refusal bad_request(std::string message);
/// Refuses a revision that the store has not reached yet.
Refusal too_large(std::uint64_t wanted, std::uint64_t current);
/// Refuses an apply of fields that belong to other managers.
Refusal apply_conflict(const kube::Resource& resource, const std::vector<ApplyConflict>& conflicts);
/// Refuses a DELETE with a failed precondition. Names the kind where the other refusals name the resource.
Refusal delete_conflict(const kube::Resource& resource, std::string_view name, std::string_view why);
/// Refuses an object with a 422 of the field validation.
Refusal invalid(const kube::Resource& resource, std::string_view name, const std::vector<FieldProblem>& problems);

}  // namespace sim
