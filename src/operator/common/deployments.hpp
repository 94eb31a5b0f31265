// Reads what the status of a Deployment or StatefulSet says about its pods.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/status.hpp"

namespace op {

/// True if `replicas` pods of the present template are ready. `deployment` null: it does not exist.
bool rolled_out(const kube::Object* deployment, std::int64_t replicas);

/// Returns the image of a container in the template of a Deployment or StatefulSet, or "".
std::string made_image(const kube::Object& workload, std::string_view container);

/// Returns the pods whose state matters to the owner: all pods, or, if `rolled_out`, only pods that have not ended. For hours,
/// ReplicaSets keep pods that were evicted or ended by their node, in addition to the pods that replace them.
std::vector<kube::PodPtr> pods_that_count(std::vector<kube::PodPtr> pods, bool rolled_out);

/// Returns a problem if, according to its status, a quota or an admission webhook keeps the Deployment from creating pods.
std::optional<Problem> pods_refused(const kube::Object* deployment);

}  // namespace op
