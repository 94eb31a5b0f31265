#include "operator/loginset/hosts.hpp"

#include <algorithm>
#include <iterator>

#include "kube/acts.hpp"
#include "operator/common/children.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/names.hpp"

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

/// The slice of this LoginSet, or one that no LoginSet owns any more: its labels tell of which name that was.
kube::ObjectPtr own_hosts(const Observed& observed) {
  if (!observed.hosts) return nullptr;
  const kube::ObjectMeta& there = observed.hosts->meta;
  const kube::ObjectMeta& loginset = observed.object->meta;
  if (const kube::OwnerReference* owner = there.controller_owner())
    return owner->uid == loginset.uid ? observed.hosts : nullptr;
  const kube::StringMap labels = loginset_labels(loginset.name);
  const bool ours = std::ranges::all_of(labels, [&](const auto& label) { return there.label(label.first) == label.second; });
  return ours ? observed.hosts : nullptr;
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
  // Pods may wait for their sessions for a day after the LoginSet was deleted: the slice is theirs as well. In a foreground
  // deletion, which deletes what the LoginSet owns, it is theirs alone.
  Json& owners = out["metadata"]["ownerReferences"];
  if (meta.terminating()) owners.clear();
  const std::vector<kube::PodPtr> pods = named_pods(observed);
  out["addressType"] = std::ranges::any_of(pods, is_ipv6) ? "IPv6" : "IPv4";
  out["endpoints"] = Json::array();
  for (const kube::PodPtr& pod : pods) {
    out["endpoints"].push_back(
        {{"addresses", Json::array({pod->pod_ip})}, {"hostname", host_of(*pod)}, {"conditions", {{"ready", true}}}});
    owners.push_back({{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod->meta.name}, {"uid", pod->meta.uid}});
  }
  return out;
}

void plan_hosts(const Observed& observed, plan::Plan& plan) {
  // Whether it has a slurmctld is not known.
  if (!observed.controller_exists || !observed.controller_error.empty()) return;
  Json hosts = build_hosts(observed);
  const bool wanted = !observed.external && !hosts["endpoints"].empty();
  // One of somebody else's is not seen: the apply looks whose it is, and refuses.
  const kube::ObjectPtr there = own_hosts(observed);
  // The type of its addresses cannot be changed.
  const bool fits = !there || core::get_string(there->body, {"addressType"}) == core::get_string(hosts, {"addressType"});
  plan::Lane& lane = plan.lane("hosts");
  if (wanted && fits) {
    lane.add(apply_step(kube::resources::kEndpointSlice, std::move(hosts), there.get(), kManagerLoginSet));
  } else if (there && !there->meta.terminating()) {
    lane.add({{"delete", kube::resources::kEndpointSlice.kind, there->meta.name},
              wanted ? "its addresses are of another type" : "slurmctld looks for no login pod",
              kube::delete_object(kube::resources::kEndpointSlice, there->meta)});
  }
}

}  // namespace op::loginset
