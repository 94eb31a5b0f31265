// Secrets and ConfigMaps that users name in pod templates. A pod that names one that does not exist waits in its kubelet, which
// tells the cause of a volume that it cannot mount in events of the pod only.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "api/common.hpp"
#include "cluster/keys.hpp"
#include "cluster/status.hpp"
#include "kube/cache/recorder.hpp"

namespace op {

/// A container that stands beside the pod template: "spec.slurmd".
struct NamedContainer {
  std::string_view path;
  const core::Json& container;
};

/// What of those that are not optional does not exist, each told once, with the field that names it. All that are named are
/// read through the recorder, so each is watched.
std::vector<Problem> missing_objects(kube::Recorder& recorder, const std::string& ns, const api::PodTemplate& pod_template,
                                     std::initializer_list<NamedContainer> containers);

SecretFacts read_key(kube::Recorder& recorder, const std::string& ns, const KeyRef& ref);
/// The keyring of a Controller. One that does not say what it is a copy of is not usable.
SecretFacts read_keyring(kube::Recorder& recorder, const std::string& ns, const std::string& controller);

}  // namespace op
