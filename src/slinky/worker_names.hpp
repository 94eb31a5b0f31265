// The names of workers: pod, hostname and Slurm node, and their way back to an ordinal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/nodeset.hpp"
#include "kube/object.hpp"

namespace slinky {

/// "3" or, filled up to `padding` digits, "003".
std::string padded_ordinal(int ordinal, int padding);
/// What the hostnames of a NodeSet's workers begin with: template.spec.hostname, or the NodeSet's name and a dash.
std::string host_prefix(std::string_view template_hostname, std::string_view nodeset);
std::string host_prefix(const kube::Object& nodeset);
std::string pod_name(std::string_view nodeset, int ordinal, int padding);
/// The ordinal in "<prefix><digits>"; empty when the name is not of that form.
std::optional<int> ordinal_of(std::string_view name, std::string_view prefix);
/// Whether workers are named after the Kubernetes nodes that run them.
bool uses_host_network(const api::NodeSetSpec& spec);
/// The name of the Slurm node that was seen behind a worker first; "" where it was not, or that was not written down.
std::string_view stamped_node_name(const kube::PodRecord& pod);
/// The name under which a worker is a Slurm node: the stamped one; else, by the pod itself, its hostname, or for host
/// networking its Kubernetes node's name; else the pod's. What its NodeSet says by now changes nothing.
std::string slurm_node_name(const kube::PodRecord& pod);
/// The comment that names the pod and the NodeSet behind a Slurm node, read back; empty when it is not one of ours.
std::optional<core::Json> worker_comment(const std::string& comment);
/// Why names of workers up to `ordinal` are no valid hostnames (RFC 1123, at most 63 characters); empty when they are.
std::string hostname_problem(std::string_view prefix, int ordinal, int padding);
/// The same of one name.
std::string hostname_problem(const std::string& name);
/// Why a worker's pod cannot have this name, which stands in a label of it (at most 63 characters); empty when it can.
std::string pod_name_problem(const std::string& name);

}  // namespace slinky
