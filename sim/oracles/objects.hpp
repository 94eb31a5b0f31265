// How oracles read what they judge: objects of Kubernetes, and nodes of Slurm.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
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

// Of pods.
bool is_worker(const core::Json& pod);
/// Without a node: what a kubelet has not reported yet proves nothing.
bool never_started(const core::Json& pod);
/// The slurmd of that node is this pod's.
bool runs_slurmd(const SlurmSite::Cluster& cluster, const std::string& node, const core::Json& pod);

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
