// Finds missing Secrets and ConfigMaps that users name in pod templates. The kubelet does not start a pod that names a missing
// object. If the missing object is the source of a volume, only events of the pod show that the object is missing.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "api/common.hpp"
#include "kube/cache/recorder.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/keys.hpp"
#include "slinky/status.hpp"

namespace op {

/// A container that a field outside of the pod template configures, such as "spec.slurmd".
struct NamedContainer {
  std::string_view path;
  const core::Json& container;
};

/// Returns one problem for each missing object, and each missing data key, that is not optional. The problem names the field
/// that refers to the object. Reads all named objects through the recorder, so that the controller watches them.
std::vector<Problem> missing_objects(kube::Recorder& recorder, const std::string& ns, const api::PodTemplate& pod_template,
                                     std::initializer_list<NamedContainer> containers);

SecretFacts read_key(kube::Recorder& recorder, const std::string& ns, const KeyRef& ref);
/// Returns the facts about the keyring of a Controller. The keyring is not usable if somebody has edited it, if it is being
/// deleted, or if it lacks the annotation with the digest of the copied key.
SecretFacts read_keyring(kube::Recorder& recorder, const std::string& ns, const std::string& controller);

}  // namespace op
