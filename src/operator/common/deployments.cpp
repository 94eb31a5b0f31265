#include "operator/common/deployments.hpp"

#include "core/json.hpp"

namespace op {

bool rolled_out(const kube::Object* deployment, std::int64_t replicas) {
  if (deployment == nullptr) return false;
  const core::Json& body = deployment->body;
  return core::get_int(body, {"status", "observedGeneration"}) >= deployment->meta.generation &&
         core::get_int(body, {"status", "updatedReplicas"}) >= replicas &&
         // While pods of the previous template exist, the ready pods might be pods of the previous template.
         core::get_int(body, {"status", "replicas"}) <= core::get_int(body, {"status", "updatedReplicas"}) &&
         core::get_int(body, {"status", "readyReplicas"}) >= replicas;
}

std::string made_image(const kube::Object& workload, std::string_view container) {
  const core::Json* containers = core::find(workload.body, {"spec", "template", "spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return "";
  for (const core::Json& one : *containers) {
    if (core::get_string(one, {"name"}) == container) return core::get_string(one, {"image"});
  }
  return "";
}

std::vector<kube::PodPtr> pods_that_count(std::vector<kube::PodPtr> pods, bool rolled_out) {
  if (rolled_out)
    std::erase_if(pods, [](const kube::PodPtr& pod) { return pod->phase == "Failed" || pod->phase == "Succeeded"; });
  return pods;
}

std::optional<Problem> pods_refused(const kube::Object* deployment) {
  const core::Json* conditions = deployment == nullptr ? nullptr : core::find(deployment->body, {"status", "conditions"});
  if (conditions == nullptr) return {};
  for (const core::Json& condition : *conditions) {
    if (core::get_string(condition, {"type"}) == "ReplicaFailure" && core::get_string(condition, {"status"}) == "True") {
      return Problem{"PodsRefused", one_line(core::get_string(condition, {"message"}))};
    }
  }
  return {};
}

}  // namespace op
