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

/// Returns the name of the pod's host, as the kubelet sets it.
const std::string& host_of(const kube::PodRecord& pod) {
  return pod.hostname.empty() ? pod.meta.name : pod.hostname;
}

/// True if our EndpointSlice can resolve the host name of the pod. This includes pods that are not ready or that wait for their
/// sessions, because srun can still run in these pods. Pods with hostNetwork are excluded, because they have the name of their
/// Kubernetes node.
bool has_name(const kube::PodPtr& pod) {
  const std::string& host = host_of(*pod);
  return !pod->pod_ip.empty() && !pod->host_network && pod->phase != "Succeeded" && pod->phase != "Failed" &&
         host.size() <= kLongestLabel && host.find('.') == std::string::npos;
}

bool is_ipv6(const kube::PodPtr& pod) {
  return pod->pod_ip.find(':') != std::string::npos;
}

/// Returns the pods for the slice, sorted. All addresses of a slice have one family. Normally all pods have addresses of the
/// cluster's first family. If the families differ, returns only the pods with an IPv4 address.
std::vector<kube::PodPtr> named_pods(const Observed& observed) {
  std::vector<kube::PodPtr> out;
  std::ranges::copy_if(observed.pods, std::back_inserter(out), has_name);
  if (!std::ranges::all_of(out, is_ipv6)) std::erase_if(out, is_ipv6);
  std::ranges::sort(out, {}, [](const kube::PodPtr& pod) -> const std::string& { return pod->meta.name; });
  return out;
}

/// Returns the observed EndpointSlice if it belongs to this LoginSet. A slice without a controller owner belongs to this
/// LoginSet if the labels of the slice name the LoginSet.
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
  // Kubernetes' own controller manages the slices with the workers of this Service. That controller ignores slices that have a
  // different value of this label.
  labels["endpointslice.kubernetes.io/managed-by"] = "slurm-operator";
  // kube-proxy ignores slices with this label.
  labels["service.kubernetes.io/headless"] = "";
  Json out =
      owned_child(kube::resources::kEndpointSlice, {meta.ns, login_hosts_name(meta.name)}, resources::kLoginSet, meta, labels);
  // After the LoginSet was deleted, pods can wait for their sessions for a day, so the pods own the slice too. While the
  // LoginSet is terminating, only the pods own the slice, because a foreground deletion deletes all objects that the LoginSet
  // owns.
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
  // If the Controller does not exist or cannot be parsed, it is unknown whether slurmctld runs in Kubernetes.
  if (!observed.controller_exists || !observed.controller_error.empty()) return;
  Json hosts = build_hosts(observed);
  const bool wanted = !observed.external && !hosts["endpoints"].empty();
  // A slice of another owner counts as missing. The apply then detects the other owner and fails.
  const kube::ObjectPtr there = own_hosts(observed);
  // The address type of a slice cannot be changed.
  const bool fits = !there || core::get_string(there->body, {"addressType"}) == core::get_string(hosts, {"addressType"});
  plan::Lane& lane = plan.lane("hosts");
  if (wanted && fits) {
    lane.add(apply_step(kube::resources::kEndpointSlice, std::move(hosts), there.get(), kManagerLoginSet));
  } else if (there && !there->meta.terminating()) {
    lane.add({{"delete", kube::resources::kEndpointSlice.kind, there->meta.name},
              wanted ? "its addresses are of another type" : "slurmctld does not need the addresses of login pods",
              kube::delete_object(kube::resources::kEndpointSlice, there->meta)});
  }
}

}  // namespace op::loginset
