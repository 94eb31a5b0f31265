// A slurmctld that does not start because it has no file of what associations have used.
//
// slurmctld writes that file (assoc_usage) every five minutes, and ends (fatal) at a start that finds the number of its cluster
// without the file (assoc_mgr_load_assoc_usage). One that was killed before it wrote the file for the first time ends so at
// each start of its container; the init container of another pod mends it: see join_script.
#pragma once

#include <optional>

#include "kube/acts.hpp"
#include "plan/plan.hpp"

namespace op::controller {

struct ConfigState;
struct Observed;

/// slurmctld's pod has ended again and again for that: nothing runs there that could be lost.
class UsageMissing final : public kube::PodEvidence {
 public:
  static std::optional<UsageMissing> of(const plan::Observing& observing, const kube::PodRecord& slurmctld);

 private:
  using PodEvidence::PodEvidence;
};

/// Deletes that pod, every few minutes at most. Nothing while slurmctld does not end so.
std::optional<plan::Step> replace_pod_without_usage(const Observed& observed, const ConfigState& state);

}  // namespace op::controller
