// The Status bodies with which the API server refuses, worded as Kubernetes words them. Private to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/kube/api.hpp"
#include "sim/kube/merge.hpp"

namespace sim {

/// `pods "name"`.
std::string quoted(const kube::Resource& resource, std::string_view name);

Refusal not_found(const kube::Resource& resource, std::string_view name);
Refusal already_exists(const kube::Resource& resource, std::string_view name);
Refusal conflict(const kube::Resource& resource, std::string_view name, std::string_view why);
Refusal bad_request(std::string message);
/// The store is not as far yet as the caller wants it.
Refusal too_large(std::uint64_t wanted, std::uint64_t current);
/// Fields that others hold.
Refusal apply_conflict(const kube::Resource& resource, const std::vector<ApplyConflict>& conflicts);
/// A failed precondition of a DELETE, which names the kind where others name the resource.
Refusal delete_conflict(const kube::Resource& resource, std::string_view name, std::string_view why);
/// 422, as field validation answers it.
Refusal invalid(const kube::Resource& resource, std::string_view name, const std::vector<FieldProblem>& problems);

}  // namespace sim
