// Reads the arguments of `kubectl slurm why`.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/why.hpp"
#include "core/result.hpp"
#include "kube/object.hpp"

namespace cli {

/// The name of a pod, without its namespace.
struct PodName {
  std::string name;
};
using WhyTarget = std::variant<JobName, PodName>;

/// Reports whether the word means pods, as kubectl abbreviates them: "pod", "pods" or "po".
[[nodiscard]] bool means_pods(std::string_view word);

/// Reads what to explain: "12", "12_3", "pod/NAME", or "pod" and "NAME". Error: kInvalid, with what is allowed.
[[nodiscard]] core::Result<WhyTarget> read_target(const std::vector<std::string>& words);

/// Reads the value of --cluster: "NAME", or "NAMESPACE/NAME". The namespace or both parts of the key are "" if they are not
/// given. For a pod, the namespace is required, because it is not that of the pod. Error: kInvalid.
[[nodiscard]] core::Result<kube::Key> read_cluster(const std::string& text, const WhyTarget& target);

}  // namespace cli
