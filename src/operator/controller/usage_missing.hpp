// Repairs a slurmctld that does not start because its file with the usage of associations is missing.
//
// slurmctld writes that file (assoc_usage) every five minutes. If slurmctld starts with the number of its cluster but without
// the file, it exits (fatal in assoc_mgr_load_assoc_usage). So a slurmctld that was killed before its first write exits at each
// start of its container. The init container of a new pod repairs the state: see join_script.
#pragma once

#include <optional>

#include "kube/acts.hpp"
#include "plan/plan.hpp"

namespace op::controller {

struct ConfigState;
struct Observed;

/// Evidence that allows the deletion of slurmctld's pod: slurmctld crashes repeatedly because the file is missing. So the pod
/// runs nothing that could be lost.
class UsageMissing final : public kube::PodEvidence {
 public:
  static std::optional<UsageMissing> of(const plan::Observing& observing, const kube::PodRecord& slurmctld);

 private:
  using PodEvidence::PodEvidence;
};

/// Returns the step that deletes the pod, at most once every five minutes. nullopt: slurmctld does not crash because of the
/// missing file, or deletions are stopped.
std::optional<plan::Step> replace_pod_without_usage(const Observed& observed, const ConfigState& state);

}  // namespace op::controller
