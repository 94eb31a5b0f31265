// Builds the pod of a worker, compatible with the workers of the Go operator v1.2.1.
//
// The pod is built once per pass without an ordinal, and then completed for each worker. A change of the built pod does not
// replace workers, because template hashes do not include the pod. api/revision.hpp says which changes replace workers.
//
// Folder src/operator/nodeset: the controller of NodeSets, which manages workers. The folder uses operator/common, and no other
// controller.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/nodeset.hpp"
#include "core/json.hpp"
#include "core/result.hpp"
#include "operator/nodeset/observed.hpp"

namespace op::nodeset {

/// Seconds from SIGTERM to SIGKILL, unless the template sets terminationGracePeriodSeconds.
inline constexpr std::int64_t kWorkerGraceSeconds = 30;

/// True if spec.extraConf is valid and does not set the state or reason of a node.
[[nodiscard]] bool leaves_state_open(const api::NodeSetSpec& spec, std::string_view nodeset);
/// Returns the value of `slurmd --conf`: "Features=<nodeset>[,<user's features>] <the rest of extraConf>". Keys are
/// case-insensitive, "Feature" counts as "Features", and the values of a repeated key are joined by commas. Error: kInvalid for
/// an item without '=', and for NodeName.
core::Result<std::string> slurmd_conf(const api::NodeSetSpec& spec, std::string_view nodeset);

/// The resource limits of the container slurmd. The entrypoint of the container turns these limits into CoreSpecCount and
/// MemSpecLimit of --conf.
struct PodLimits {
  std::int64_t cpus = 0;        ///< The variable POD_CPUS; 0: all CPUs.
  std::int64_t memory_mib = 0;  ///< The variable POD_MEMORY; 0: all memory.
};
/// Returns the limits. `slurmd` is spec.slurmd of a NodeSet, and `pod_spec` is spec.template.spec. In increasing precedence,
/// the limits come from the pod level of `pod_spec`, from `slurmd`, and from the container slurmd in `pod_spec`.
PodLimits pod_limits(const core::Json& slurmd, const core::Json& pod_spec);

/// Returns the reason, without prefix, with which the preStop hook drains the node of the worker.
std::string terminating_reason(std::string_view pod_uid);

/// Taints (NoExecute) that Kubernetes sets on a node whose kubelet does not respond. Workers tolerate these taints, because
/// slurmd might still run. Only Slurm's reports show whether slurmd is lost as well.
inline constexpr std::array<std::string_view, 2> kLostHostTaints{kube::kTaintNotReady, kube::kTaintUnreachable};
/// True if the user's tolerations tolerate this taint with the effect NoExecute. A toleration for a limited time also counts.
bool tolerates(const core::Json& tolerations, std::string_view taint);
/// Returns a toleration of the taint (NoExecute) without a time limit.
core::Json toleration_of(std::string_view taint);

/// True if workers are protected from eviction from their creation on.
[[nodiscard]] bool always_protected(const api::NodeSetSpec& spec);

/// Quotes the text as one word for a shell.
std::string shell_word(std::string_view text);

/// Returns the name of the claim that a worker gets from one of spec.volumeClaimTemplates. StatefulSets use the same names.
std::string claim_name(const core::Json& claim_template, std::string_view pod);
/// Returns the owner reference to the NodeSet, for claims that are deleted with it. The reference has no blockOwnerDeletion.
core::Json claim_owner(const kube::ObjectMeta& nodeset);
/// Returns the claim that a worker gets from one of spec.volumeClaimTemplates.
core::Json worker_claim(const core::Json& claim_template, const Observed& in, std::string_view pod);
/// Returns the problem of spec.volumeClaimTemplates, with the path of the field. "": there is no problem.
std::string claim_templates_problem(const api::NodeSetSpec& spec);

/// Returns why the slurmd of workers might register under another name than slurm_node_name(), and what the user should write
/// instead. "": slurmd registers under slurm_node_name().
[[nodiscard]] std::string name_option_problem(const api::NodeSetSpec& spec, std::string_view nodeset);

// ssh.cpp
/// True if spec.ssh enables sshd in workers.
[[nodiscard]] bool has_sshd(const api::NodeSetSpec& spec);
/// Returns the annotations that a worker's pod needs for sshd: they contain sshd_config. Empty without sshd.
[[nodiscard]] kube::StringMap ssh_annotations(const api::NodeSetSpec& spec);
[[nodiscard]] std::vector<std::string_view> ssh_volume_names(const api::NodeSetSpec& spec);
void add_ssh_volumes(const Observed& in, core::Json& volumes);
void add_sshd(const api::NodeSetSpec& spec, core::Json& slurmd);
/// Adds the init container that checks the files of sshd and SSSD. `slurmd`: the container as users write it.
void add_check(const api::NodeSetSpec& spec, const core::Json& slurmd, core::Json& init);

/// Returns the pod that all workers share. It lacks the worker's name, the hostname, and the labels that contain these. Needs
/// `in.controller`. Error: kInvalid, with the path of the field.
core::Result<core::Json> worker_template(const Observed& in, const std::string& revision_hash);

/// Returns the pod of one worker, from the result of worker_template.
core::Json worker_pod(const core::Json& worker_template, const Observed& in, const SlotKey& place);

}  // namespace op::nodeset
