// The pod of a worker, as users of the Go operator v1.2.1 expect it.
//
// Built once a pass without an ordinal, then stamped with one. Not part of any hash: what rolls workers is in api/revision.hpp.
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

/// spec.extraConf says nothing of a node's state.
[[nodiscard]] bool leaves_state_open(const api::NodeSetSpec& spec, std::string_view nodeset);
/// The value of `slurmd --conf`: "Features=<nodeset>[,<user's features>] <the rest of extraConf>". Keys are compared without
/// case, "Feature" is "Features", and a key given twice has its values joined by commas. Error: kInvalid for an item without
/// '='.
core::Result<std::string> slurmd_conf(const api::NodeSetSpec& spec, std::string_view nodeset);

/// What the container slurmd may use of its machine, which its entrypoint turns into CoreSpecCount and MemSpecLimit of --conf.
struct PodLimits {
  std::int64_t cpus = 0;        ///< POD_CPUS; 0: all.
  std::int64_t memory_mib = 0;  ///< POD_MEMORY; 0: all.
};
/// `slurmd`: spec.slurmd of a NodeSet; `pod_spec`: spec.template.spec, in which a container slurmd says more.
PodLimits pod_limits(const core::Json& slurmd, const core::Json& pod_spec);

/// The reason, without prefix, with which a worker's own preStop drains its node.
std::string terminating_reason(std::string_view pod_uid);

/// The taints (NoExecute) that Kubernetes sets on a node whose kubelet is away: whether slurmd is lost as well, Slurm decides.
inline constexpr std::array<std::string_view, 2> kLostHostTaints{kube::kTaintNotReady, kube::kTaintUnreachable};
/// Users have said how long their pods tolerate this taint with effect NoExecute.
bool tolerates(const core::Json& tolerations, std::string_view taint);
/// For ever.
core::Json toleration_of(std::string_view taint);

/// Workers are protected from eviction from the first moment.
[[nodiscard]] bool always_protected(const api::NodeSetSpec& spec);

/// One word for a shell, whatever it holds.
std::string shell_word(std::string_view text);

/// The name of the claim that a worker's pod has by one of spec.volumeClaimTemplates: that of StatefulSets.
std::string claim_name(const core::Json& claim_template, std::string_view pod);
/// The NodeSet as the owner of claims that are to be deleted with it. It does not wait for them.
core::Json claim_owner(const kube::ObjectMeta& nodeset);
/// That claim.
core::Json worker_claim(const core::Json& claim_template, const Observed& in, std::string_view pod);
/// What is wrong with spec.volumeClaimTemplates, with the field's path; or "".
std::string claim_templates_problem(const api::NodeSetSpec& spec);

/// Why slurmd of the workers may register under another name than slurm_node_name(), and what to write instead; or "".
[[nodiscard]] std::string name_option_problem(const api::NodeSetSpec& spec, std::string_view nodeset);

// ssh.cpp
/// spec.ssh asks for it.
[[nodiscard]] bool has_sshd(const api::NodeSetSpec& spec);
/// What the pod says of sshd; nothing where it has none.
[[nodiscard]] kube::StringMap ssh_annotations(const api::NodeSetSpec& spec);
[[nodiscard]] std::vector<std::string_view> ssh_volume_names(const api::NodeSetSpec& spec);
void add_ssh_volumes(const Observed& in, core::Json& volumes);
void add_sshd(const api::NodeSetSpec& spec, core::Json& slurmd);
/// What looks whether sshd and SSSD accept their files, among the init containers. `slurmd`: as users write it.
void add_check(const api::NodeSetSpec& spec, const core::Json& slurmd, core::Json& init);

/// The pod of any worker: everything but name, hostname and the labels that carry them. Needs `in.controller`.
/// Error: kInvalid, with the field's path.
core::Result<core::Json> worker_template(const Observed& in, const std::string& revision_hash);

/// The pod of one worker.
core::Json worker_pod(const core::Json& worker_template, const Observed& in, const SlotKey& place);

}  // namespace op::nodeset
