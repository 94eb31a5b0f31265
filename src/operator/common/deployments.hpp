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

/// True if `replicas` pods of the current pod template are ready. `deployment` null: the Deployment or StatefulSet does not
/// exist.
bool rolled_out(const kube::Object* deployment, std::int64_t replicas);

/// Returns the image of the named container in the pod template of a Deployment or StatefulSet. "": there is no such container.
std::string made_image(const kube::Object& workload, std::string_view container);

/// Returns the pods whose problems a LoginSet or RestApi reports. If `rolled_out` is false, these are all pods. If `rolled_out`
/// is true, leaves out pods that have ended. Such pods (evicted, or ended by their kubelet) remain for hours after the
/// ReplicaSet has replaced them.
std::vector<kube::PodPtr> pods_that_count(std::vector<kube::PodPtr> pods, bool rolled_out);

/// Returns a problem if the Deployment's status reports that a quota or an admission webhook prevents the creation of pods.
std::optional<Problem> pods_refused(const kube::Object* deployment);

}  // namespace op
