#include "sim/programs/operator/oracles/policies.hpp"

#include <optional>
#include <string>
#include <vector>

#include "sim/programs/operator/oracles/objects.hpp"

namespace sim {
namespace {

using core::Json;

bool meant(op::Deleters deleters, const std::string& user) {
  switch (deleters) {
    case op::Deleters::kCleaners:
      return user.ends_with(":generic-garbage-collector") || user.ends_with(":namespace-controller");
    case op::Deleters::kSchedulers:
      return user == "system:kube-scheduler";
    case op::Deleters::kUsers:
      break;
  }
  return false;  // the histories' users may delete anything, as with deletionByUsers: Allow
}

/// Returns the policy's parameter objects in the namespace; one null pointer for a policy without parameters.
std::vector<const Json*> parameters(const op::AdmissionPolicy& policy, const KubeApi& api, const std::string& ns) {
  if (policy.params == nullptr) return {nullptr};
  std::vector<const Json*> out;
  for (const auto& [key, stored] : api.store().all(table_name(*policy.params))) {
    if (key.ns == ns) out.push_back(&stored->body);
  }
  return out;
}

}  // namespace

Admission admission_of(const op::AdmissionPolicy& policy, const KubeApi& api) {
  return [&policy, &api](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation != "DELETE" || request.before == nullptr || !meant(policy.deleters, request.user)) return {};
    op::Deletion deletion{.resource = request.resource,
                          .user = request.user,
                          .object = *request.before,
                          .space = api.peek(kube::resources::kNamespace, {"", request.key.ns})};
    if (!policy.concerns(deletion)) return {};
    for (const Json* params : parameters(policy, api, request.key.ns)) {
      deletion.params = params;
      if (!policy.allows(deletion))
        return make_status(403, "Forbidden", policy.refusal(deletion), &request.resource, request.key.name);
    }
    return {};
  };
}

}  // namespace sim
