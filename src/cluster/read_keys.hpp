// Key Secrets, read through the recorder of an observation.
#pragma once

#include <string>

#include "cluster/keys.hpp"
#include "kube/cache/recorder.hpp"

namespace op {

SecretFacts read_key(kube::Recorder& recorder, const std::string& ns, const KeyRef& ref);
/// The keyring of a Controller. One that does not say what it is a copy of is not usable.
SecretFacts read_keyring(kube::Recorder& recorder, const std::string& ns, const std::string& controller);

}  // namespace op
