// What a Deployment or StatefulSet of ours says of its pods.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/status.hpp"
#include "kube/object.hpp"

namespace op {

/// So many pods of the template that is wanted are ready. `deployment` null: there is none.
bool rolled_out(const kube::Object* deployment, std::int64_t replicas);

/// The image of that container in the template of a Deployment or StatefulSet that exists; "": there is no such container.
std::string made_image(const kube::Object& workload, std::string_view container);

/// Those whose state says something of the owner. ReplicaSets keep pods that were evicted, or whose node ended them, for hours
/// beside those in their place.
std::vector<kube::PodPtr> pods_that_count(std::vector<kube::PodPtr> pods, bool rolled_out);

/// Where a quota or an admission hook keeps the Deployment from making pods, it says so itself.
std::optional<Problem> pods_refused(const kube::Object* deployment);

}  // namespace op
