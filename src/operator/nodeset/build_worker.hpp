// Builds the pod of a worker, compatible with the workers of the Go operator v1.2.1.
//
// The pod is built once per pass without an ordinal, and then completed for each worker. No hash of a template is computed from
// it: api/revision.hpp says which changes replace workers.
//
// Folder src/operator/nodeset: the controller of NodeSets: workers. Uses operator/common, and no other controller.
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

/// Seconds from SIGTERM to SIGKILL, unless the template has its own.
inline constexpr std::int64_t kWorkerGraceSeconds = 30;

/// True if spec.extraConf is valid and does not set the state or reason of a node.
[[nodiscard]] bool leaves_state_open(const api::NodeSetSpec& spec, std::string_view nodeset);
/// Returns the value of `slurmd --conf`: "Features=<nodeset>[,<user's features>] <the rest of extraConf>". Keys are
/// case-insensitive, "Feature" counts as "Features", and the values of a repeated key are joined by commas. Error: kInvalid for
/// an item without '=', and for NodeName.
core::Result<std::string> slurmd_conf(const api::NodeSetSpec& spec, std::string_view nodeset);

/// The limits of the container slurmd, which its entrypoint turns into CoreSpecCount and MemSpecLimit of --conf.
struct PodLimits {
  std::int64_t cpus = 0;        ///< The variable POD_CPUS; 0: all CPUs.
  std::int64_t memory_mib = 0;  ///< The variable POD_MEMORY; 0: all memory.
};
/// Returns the limits. `slurmd` is spec.slurmd of a NodeSet, and `pod_spec` is spec.template.spec. In increasing precedence,
/// the limits come from the pod level of `pod_spec`, from `slurmd`, and from the container slurmd in `pod_spec`.
PodLimits pod_limits(const core::Json& slurmd, const core::Json& pod_spec);

/// Returns the reason, without prefix, with which the preStop hook drains the node of the worker.
std::string terminating_reason(std::string_view pod_uid);

/// Taints (NoExecute) that Kubernetes sets on a node whose kubelet does not respond. Workers tolerate them, because slurmd may
/// still run: only Slurm's reports show whether slurmd is lost as well.
inline constexpr std::array<std::string_view, 2> kLostHostTaints{kube::kTaintNotReady, kube::kTaintUnreachable};
/// True if the tolerations of the user include this taint with the effect NoExecute, for any time.
bool tolerates(const core::Json& tolerations, std::string_view taint);
/// Returns a toleration of the taint (NoExecute) without a time limit.
core::Json toleration_of(std::string_view taint);

/// True if workers are protected from eviction from their creation on.
[[nodiscard]] bool always_protected(const api::NodeSetSpec& spec);

/// Quotes the text as one word for a shell.
std::string shell_word(std::string_view text);

/// Returns the name of the claim of a worker for one of spec.volumeClaimTemplates, as in StatefulSets.
std::string claim_name(const core::Json& claim_template, std::string_view pod);
/// Returns the owner reference for claims that are deleted with the NodeSet. It does not block the deletion of the NodeSet.
core::Json claim_owner(const kube::ObjectMeta& nodeset);
/// Returns the claim of a worker for one of spec.volumeClaimTemplates.
core::Json worker_claim(const core::Json& claim_template, const Observed& in, std::string_view pod);
/// Returns what is wrong with spec.volumeClaimTemplates, with the field's path; "" if nothing is.
std::string claim_templates_problem(const api::NodeSetSpec& spec);

/// Returns why the slurmd of workers may register under another name than slurm_node_name(), and what to write instead. "": it
/// registers under that name.
[[nodiscard]] std::string name_option_problem(const api::NodeSetSpec& spec, std::string_view nodeset);

// ssh.cpp
/// True if spec.ssh enables sshd in workers.
[[nodiscard]] bool has_sshd(const api::NodeSetSpec& spec);
/// Returns the annotations of the pod with the configuration of sshd. Empty without sshd.
[[nodiscard]] kube::StringMap ssh_annotations(const api::NodeSetSpec& spec);
[[nodiscard]] std::vector<std::string_view> ssh_volume_names(const api::NodeSetSpec& spec);
void add_ssh_volumes(const Observed& in, core::Json& volumes);
void add_sshd(const api::NodeSetSpec& spec, core::Json& slurmd);
/// Adds the init container that checks the files of sshd and SSSD. `slurmd`: the container as users write it.
void add_check(const api::NodeSetSpec& spec, const core::Json& slurmd, core::Json& init);

/// Returns the pod of any worker, without its name, its hostname and the labels that contain them. Needs `in.controller`.
/// Error: kInvalid, with the path of the field.
core::Result<core::Json> worker_template(const Observed& in, const std::string& revision_hash);

/// Returns the pod of one worker, from the result of worker_template.
core::Json worker_pod(const core::Json& worker_template, const Observed& in, const SlotKey& place);

}  // namespace op::nodeset
