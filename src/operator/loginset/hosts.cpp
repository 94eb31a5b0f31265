#include "operator/loginset/hosts.hpp"

#include <algorithm>
#include <iterator>

#include "cluster/names.hpp"
#include "kube/acts.hpp"
#include "operator/common/children.hpp"

namespace op::loginset {
namespace {

using core::Json;

constexpr std::size_t kLongestLabel = 63;

/// As the kubelet names it.
const std::string& host_of(const kube::PodRecord& pod) {
  return pod.hostname.empty() ? pod.meta.name : pod.hostname;
}

/// Pods that are not ready, or wait for their sessions, have an srun as well. In the network of its Kubernetes node a pod has
/// that one's name.
bool has_name(const kube::PodPtr& pod) {
  const std::string& host = host_of(*pod);
  return !pod->pod_ip.empty() && !pod->host_network && pod->phase != "Succeeded" && pod->phase != "Failed" &&
         host.size() <= kLongestLabel && host.find('.') == std::string::npos;
}

bool is_ipv6(const kube::PodPtr& pod) {
  return pod->pod_ip.find(':') != std::string::npos;
}

/// A slice is of one family. All pods have the same: the first of the cluster.
std::vector<kube::PodPtr> named_pods(const Observed& observed) {
  std::vector<kube::PodPtr> out;
  std::ranges::copy_if(observed.pods, std::back_inserter(out), has_name);
  if (!std::ranges::all_of(out, is_ipv6)) std::erase_if(out, is_ipv6);
  std::ranges::sort(out, {}, [](const kube::PodPtr& pod) -> const std::string& { return pod->meta.name; });
  return out;
}

bool is_ours(const Observed& observed) {
  const kube::OwnerReference* owner = observed.hosts ? observed.hosts->meta.controller_owner() : nullptr;
  return owner != nullptr && owner->uid == observed.object->meta.uid;
}

}  // namespace

Json build_hosts(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  kube::StringMap labels = loginset_labels(meta.name);
  labels["kubernetes.io/service-name"] = workers_service_name(observed.loginset.spec.controller_ref.name);
  // Kubernetes' own controller, which keeps the slices of this Service's workers, leaves those of others alone.
  labels["endpointslice.kubernetes.io/managed-by"] = "slurm-operator";
  // It is no business of kube-proxy's.
  labels["service.kubernetes.io/headless"] = "";
  Json out =
      owned_child(kube::resources::kEndpointSlice, {meta.ns, login_hosts_name(meta.name)}, resources::kLoginSet, meta, labels);
  const std::vector<kube::PodPtr> pods = named_pods(observed);
  out["addressType"] = std::ranges::any_of(pods, is_ipv6) ? "IPv6" : "IPv4";
  out["endpoints"] = Json::array();
  for (const kube::PodPtr& pod : pods) {
    out["endpoints"].push_back(
        {{"addresses", Json::array({pod->pod_ip})}, {"hostname", host_of(*pod)}, {"conditions", {{"ready", true}}}});
    // When the LoginSet is deleted, the last of these may wait for its sessions for a day.
    out["metadata"]["ownerReferences"].push_back(
        {{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod->meta.name}, {"uid", pod->meta.uid}});
  }
  return out;
}

void plan_hosts(const Observed& observed, plan::Plan& plan) {
  // Whether it has a slurmctld is not known.
  if (!observed.controller_exists || !observed.controller_error.empty()) return;
  Json hosts = build_hosts(observed);
  const bool wanted = !observed.external && !hosts["endpoints"].empty();
  // The type of its addresses cannot be changed.
  const bool fits =
      !observed.hosts || core::get_string(observed.hosts->body, {"addressType"}) == core::get_string(hosts, {"addressType"});
  plan::Lane& lane = plan.lane("hosts");
  if (wanted && fits) {
    lane.add(apply_step(kube::resources::kEndpointSlice, std::move(hosts), observed.hosts.get(), kManagerLoginSet));
  } else if (is_ours(observed) && !observed.hosts->meta.terminating()) {
    lane.add({{"delete", kube::resources::kEndpointSlice.kind, observed.hosts->meta.name},
              wanted ? "its addresses are of another type" : "slurmctld looks for no login pod",
              kube::delete_object(kube::resources::kEndpointSlice, observed.hosts->meta)});
  }
}

}  // namespace op::loginset
