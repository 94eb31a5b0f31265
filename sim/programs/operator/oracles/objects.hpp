// How oracles read what they judge: objects of Kubernetes, and nodes of Slurm.
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

// Of any object; "": it has none.
std::string text_at(const core::Json& object, std::initializer_list<std::string_view> path);
std::string label(const core::Json& object, std::string_view name);
std::string annotation(const core::Json& object, std::string_view name);
std::string name_of(const core::Json& object);
std::string namespace_of(const core::Json& object);
/// "namespace/name".
std::string key_of(const core::Json& object);
/// The uid of an owner of this kind; "": it has none.
std::string owner_uid(const core::Json& object, std::string_view kind);
bool condition_true(const core::Json& object, std::string_view type);

/// Cordoned, or announced to go by a taint: of a Kubernetes node.
bool host_goes(const core::Json& node);

// Of pods.
/// By either annotation.
bool pod_cordoned(const core::Json& pod);
bool is_worker(const core::Json& pod);
/// Its number in its NodeSet.
int ordinal_of(const core::Json& pod);
/// Of a NodeSet and a Kubernetes node: what the nodes of its workers there have.
std::set<std::string> features_of(const core::Json& nodeset, const core::Json& host);
/// Of a NodeSet: workers below it keep their template.
int partition_of(const core::Json& nodeset);
/// Without a node: what a kubelet has not reported yet proves nothing.
bool never_started(const core::Json& pod);
/// The slurmd of that node is this pod's.
bool runs_slurmd(const SlurmSite::Cluster& cluster, const std::string& node, const core::Json& pod);

// Of NodeSets.
/// A Kubernetes node has the labels of its nodeSelector.
bool matches(const core::Json& nodeset, const core::Json& node);
/// How many workers it wants: spec.replicas, or one on each Kubernetes node that matches its nodeSelector.
std::int64_t wished_workers(const KubeApi& api, const core::Json& nodeset);
/// Its scalingMode is DaemonSet.
bool bound_to_hosts(const core::Json& nodeset);
/// So is that of the NodeSet that made the worker.
bool bound_to_host(const core::Json& pod);
/// The Kubernetes node that it is bound to, by its node affinity; "": to none.
std::string pinned_to(const core::Json& pod);
/// What a worker that is bound to the Kubernetes node is called.
std::string daemon_name_of(const core::Json& node);

// Of Slurm's nodes.
/// Slurm runs nothing there, and starts nothing.
bool idle_and_held(const SimSlurm& slurm, const std::string& name);
/// Its state, reason, whether it has a comment, and a job on it.
std::string shown(const SimSlurm& slurm, const SimNode& node);
/// A change that lets a node take jobs again.
bool frees_node(const SimNodeUpdate& update);

/// Operators that are limited to these namespaces (none: to nothing) act in this one.
bool acts_in(const std::vector<std::string>& namespaces, std::string_view ns);

}  // namespace sim
