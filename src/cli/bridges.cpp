#include "cli/bridges.hpp"

#include <algorithm>

#include "api/well_known.hpp"
#include "bridge/common/names.hpp"
#include "cli/slurm_access.hpp"
#include "slinky/names.hpp"
#include "slinky/status.hpp"

namespace cli {
namespace {

using core::Json;

constexpr const char* kNameIt = "; --cluster NAMESPACE/NAME names its Controller";

/// Returns the words of the command lines of all containers.
std::vector<std::string> arguments_of(const Json& deployment) {
  std::vector<std::string> out;
  const Json* containers = core::find(deployment, {"spec", "template", "spec", "containers"});
  if (containers == nullptr || !containers->is_array()) return out;
  for (const Json& container : *containers) {
    for (const char* part : {"command", "args"}) {
      const Json* words = core::find(container, {part});
      if (words == nullptr || !words->is_array()) continue;
      for (const Json& word : *words) {
        if (word.is_string()) out.push_back(word.get<std::string>());
      }
    }
  }
  return out;
}

/// Returns the last value of the flag, given as "--flag=VALUE" or as "--flag" "VALUE"; "" if it is absent.
std::string value_of(const std::vector<std::string>& arguments, const std::string& flag) {
  std::string out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(flag + "=")) out = arguments[i].substr(flag.size() + 1);
    if (arguments[i] == flag && i + 1 < arguments.size()) out = arguments[i + 1];
  }
  return out;
}

std::vector<std::string> names_in(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (end > 0) out.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

PodCluster cluster_of_one(const KnownBridge& its) {
  if (its.controller) return {its.controller, ""};
  return {{},
          "slurm-bridge " + its.deployment.str() + " uses the slurmrestd " + its.settings.cluster +
              " without a Controller, which this command cannot ask"};
}

}  // namespace

KnownBridge bridge_of(const Json& deployment) {
  const std::vector<std::string> arguments = arguments_of(deployment);
  KnownBridge out{kube::key_of(deployment),
                  core::get_int(deployment, {"status", "readyReplicas"}) > 0,
                  controller_key(value_of(arguments, "--cluster")),
                  {}};
  out.settings.cluster =
      out.controller ? slinky::cluster_key(out.controller->ns, out.controller->name) : value_of(arguments, "--slurmrestd");
  out.settings.managed_namespaces = names_in(value_of(arguments, "--managed-namespaces"));
  out.settings.scheduler_name = value_of(arguments, "--scheduler-name");
  return out;
}

std::vector<const KnownBridge*> Bridges::of(const kube::SchedulingPodRecord& pod) const {
  std::vector<const KnownBridge*> out;
  for (const KnownBridge& one : known) {
    if (bridge::manages(one.settings, pod)) out.push_back(&one);
  }
  return out;
}

core::Result<Bridges> read_bridges(Api& api) {
  Bridges out;
  const auto deployments = api.list({.resource = kube::resources::kDeployment,
                                     .label_selector = std::string(api::kLabelName) + "=" + std::string(bridge::kProgram)});
  if (!deployments) {
    if (deployments.error().code == core::ErrorCode::kCancelled) return std::unexpected(deployments.error());
    out.unknown = slinky::one_line(deployments.error().message);
    return out;
  }
  for (const Json& deployment : *deployments) {
    // Slinky's Go bridge has the same label, and other arguments.
    if (KnownBridge found = bridge_of(deployment); !found.settings.cluster.empty()) out.known.push_back(std::move(found));
  }
  return out;
}

PodCluster cluster_of(const kube::SchedulingPodRecord& pod, const Bridges& bridges) {
  if (!bridges.unknown.empty()) {
    const auto key = controller_key(pod.meta.annotation(bridge::kAnnotationManagedBy));
    if (key) return {key, ""};
    return {{}, "the settings of slurm-bridge cannot be read: " + bridges.unknown + kNameIt};
  }
  std::vector<const KnownBridge*> its = bridges.of(pod);
  // The jobs of pods that are not managed any more are still in the only Slurm cluster that there is.
  if (its.empty() && bridges.known.size() == 1) its.push_back(&bridges.known.front());
  if (its.size() == 1) return cluster_of_one(*its.front());
  std::string names;
  for (const KnownBridge* one : its) names += (names.empty() ? "" : ", ") + one->deployment.str();
  if (!names.empty()) return {{}, "several slurm-bridges manage the pod (" + names + ")" + kNameIt};
  if (bridges.known.empty()) return {{}, std::string("this Kubernetes cluster has no Deployment of slurm-bridge") + kNameIt};
  return {{}, std::string("none of the slurm-bridges manages the pod") + kNameIt};
}

}  // namespace cli
