// Reads the objects of Kubernetes and the nodes of Slurm for the oracles.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "sim/kube/api.hpp"
#include "sim/kube/kinds.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

// Functions for any object. They return "" if the object has no such text.
std::string text_at(const core::Json& object, std::initializer_list<std::string_view> path);
std::string label(const core::Json& object, std::string_view name);
std::string annotation(const core::Json& object, std::string_view name);
std::string name_of(const core::Json& object);
std::string namespace_of(const core::Json& object);
/// Returns "namespace/name".
std::string key_of(const core::Json& object);
/// Returns the uid of the owner of this kind; "" if there is none.
std::string owner_uid(const core::Json& object, std::string_view kind);
bool condition_true(const core::Json& object, std::string_view type);

/// Reports whether a Kubernetes node is cordoned, or a taint announces its removal.
bool host_goes(const core::Json& node);

// Functions for pods.
/// Reports whether the pod has either annotation for a cordon.
bool pod_cordoned(const core::Json& pod);
bool is_worker(const core::Json& pod);
/// Returns the worker's ordinal in its NodeSet.
int ordinal_of(const core::Json& pod);
/// Returns the features that a NodeSet's workers on this Kubernetes node must have.
std::set<std::string> features_of(const core::Json& nodeset, const core::Json& host);
/// Returns the ordinal below which a NodeSet's workers keep their template.
int partition_of(const core::Json& nodeset);
/// Reports whether the pod has no Kubernetes node, and so never started. Missing container statuses alone prove nothing.
bool never_started(const core::Json& pod);
/// Reports whether the slurmd of this Slurm node runs in this pod.
bool runs_slurmd(const SlurmSite::Cluster& cluster, const std::string& node, const core::Json& pod);

// Functions for NodeSets.
/// Reports whether a Kubernetes node has the labels of the NodeSet's nodeSelector.
bool matches(const core::Json& nodeset, const core::Json& node);
/// Returns the number of wanted workers: spec.replicas, or one for each Kubernetes node that matches the nodeSelector.
std::int64_t wished_workers(const KubeApi& api, const core::Json& nodeset);
/// Reports whether the scalingMode is DaemonSet.
bool bound_to_hosts(const core::Json& nodeset);
/// Reports whether the worker was created while its NodeSet had the scalingMode DaemonSet.
bool bound_to_host(const core::Json& pod);
/// Returns the Kubernetes node that the pod's node affinity requires; "" if none.
std::string pinned_to(const core::Json& pod);
/// Returns the name in Slurm of a worker that is bound to this Kubernetes node.
std::string daemon_name_of(const core::Json& node);

// Functions for Slurm's nodes.
/// Reports whether Slurm runs no job on the node and starts none: the node is drained or down, or has no record.
bool idle_and_held(const SimSlurm& slurm, const std::string& name);
/// Returns a description: state, reason, whether the node has a comment, and a job on it.
std::string shown(const SimSlurm& slurm, const SimNode& node);
/// Reports whether the change lets a node accept jobs again.
bool frees_node(const SimNodeUpdate& update);

/// Reports whether operators that act in these namespaces act in `ns`. An empty list means all namespaces.
bool acts_in(const std::vector<std::string>& namespaces, std::string_view ns);

}  // namespace sim
