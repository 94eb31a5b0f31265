// The names of workers: their pods, hostnames and Slurm nodes, and how to read an ordinal from them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/nodeset.hpp"
#include "kube/object.hpp"

namespace slinky {

/// Returns the ordinal, padded with zeros to at least `padding` digits: "3", or "003".
std::string padded_ordinal(int ordinal, int padding);
/// Returns the prefix of the workers' hostnames: template.spec.hostname, or else the NodeSet's name followed by a dash.
std::string host_prefix(std::string_view template_hostname, std::string_view nodeset);
std::string host_prefix(const kube::Object& nodeset);
std::string pod_name(std::string_view nodeset, int ordinal, int padding);
/// Returns the ordinal of "<prefix><digits>", or nullopt if the name has another form.
std::optional<int> ordinal_of(std::string_view name, std::string_view prefix);
/// Reports whether the workers use host networking. Their names are then those of their Kubernetes nodes.
bool uses_host_network(const api::NodeSetSpec& spec);
/// Returns the node name that the operator recorded on the pod when Slurm first had the worker's node; "" if there is none.
std::string_view stamped_node_name(const kube::PodRecord& pod);
/// Returns the name of the worker's Slurm node: the stamped name if there is one. Otherwise, the first of these that is set:
/// the pod's hostname in the spec or the label (not with host networking), the name of the Kubernetes node, the pod's name.
/// Later changes of the NodeSet have no influence.
std::string slurm_node_name(const kube::PodRecord& pod);
/// Parses the comment that the operator gives to the Slurm node of a worker; nullopt if the operator did not write the comment.
std::optional<core::Json> worker_comment(const std::string& comment);
/// Returns why a hostname with an ordinal up to `ordinal` is not valid (RFC 1123, at most 63 characters); "" if all are valid.
std::string hostname_problem(std::string_view prefix, int ordinal, int padding);
/// Returns why the hostname is not valid; "" if it is valid.
std::string hostname_problem(const std::string& name);
/// Returns why a worker's pod cannot have this name, which is also the value of a label (at most 63 characters); "" if it can.
std::string pod_name_problem(const std::string& name);

}  // namespace slinky
