// `kubectl slurm drain` and `kubectl slurm resume`: selects workers, follows the progress of their drains, and decides whether
// workers may be resumed. All functions except the commands themselves are pure.
//
// A drain sets an annotation on the worker's pod; the operator then drains the node in Slurm. A resume only removes the
// annotation: it does not end a drain that a person or another program has set in Slurm.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/slurm_facts.hpp"
#include "core/json.hpp"
#include "core/result.hpp"
#include "kube/object.hpp"

namespace cli {

/// Returns the workers that `words` name, in the order of `words`, without duplicates. A word is a pod, a Slurm node, a
/// hostlist of pods or nodes ("cpu-[0-3]"), or "node/NAME" for all workers on a Kubernetes node. "node/" may be omitted if no
/// worker is called NAME. The name of a pod takes precedence over that of a Slurm node. Errors: kNotFound; kInvalid for a
/// malformed hostlist or a name that fits several workers.
core::Result<std::vector<kube::PodPtr>> select_workers(const std::vector<std::string>& words,
                                                       const std::vector<kube::PodPtr>& workers);

/// The progress of a worker's drain.
enum class DrainState {
  kAsked,     ///< Slurm does not show the drain yet.
  kDraining,  ///< The node takes no new jobs. Some jobs still run.
  kDrained,   ///< No job runs on the node, and none will start.
  kOut,       ///< The node is down or failing and runs nothing, so the operator does not drain it.
  kNoNode,    ///< Slurm has no such node.
};
DrainState drain_state(const Said& said);
/// Describes the progress of the drain: "draining, its last job ends at the latest in 1h5m".
std::string drain_text(const Said& said, core::WallTime now);

/// States whether the requested drain is over. Slurm's answer decides; without an answer, the pod's conditions decide.
struct DrainJudgement {
  enum class Verdict {
    kOpen,    ///< The drain is not over.
    kOver,    ///< The node is drained, or runs nothing anyway.
    kNoNode,  ///< Slurm has no node to drain.
    kUnsure,  ///< Slurm cannot be asked, and the pod might still show an earlier drain.
  };
  Verdict verdict = Verdict::kOpen;
  std::string message;
};
DrainJudgement judge_drain(const kube::PodRecord& pod, const SlurmFacts& slurm, core::WallTime now);

/// Returns the reason for a drain by `user` with the remark `text`: "drained by alice: bad disk". Both can be empty.
std::string cordon_reason(std::string_view user, std::string_view text);
core::Json drain_patch(const kube::PodRecord& pod, std::string_view reason);
core::Json resume_patch(const kube::PodRecord& pod);

/// The facts besides the pod on which a resume depends.
struct ResumeFacts {
  std::shared_ptr<const kube::NodeRecord> host;  ///< Null: the pod has no Kubernetes node, or the node cannot be read.
  std::string host_unread;                       ///< Why the Kubernetes node cannot be read.
  std::string scales_in;                         ///< The name of the worker's NodeSet if it is scaling in; else "".
  std::string scontrol;                          ///< The command that runs scontrol: "kubectl -n hpc exec ... -- scontrol".
};

/// The decision about the resume of a worker.
struct ResumeJudgement {
  bool remove = false;   ///< The annotation cordons the worker and is to be removed.
  bool refused = false;  ///< The worker stays out of service for a cause that a resume cannot end.
  std::string message;   ///< Says what is done or not done, who drained the worker, and how the drain ends.
};
ResumeJudgement judge_resume(const kube::PodRecord& pod, const ResumeFacts& facts);

}  // namespace cli
