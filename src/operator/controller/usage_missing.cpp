#include "operator/controller/usage_missing.hpp"

#include <algorithm>
#include <string>

#include "operator/controller/accounting.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"

namespace op::controller {

std::optional<UsageMissing> UsageMissing::of(const plan::Observing& observing, const kube::PodRecord& slurmctld) {
  const bool missing = std::ranges::any_of(slurmctld.containers, [](const kube::ContainerState& container) {
    return container.name == kAppController && container.crashed &&
           container.message.find("fatal: No Assoc usage file") != std::string::npos;
  });
  if (!missing || slurmctld.meta.terminating()) return std::nullopt;
  return UsageMissing(observing, slurmctld, "UsageMissing", "slurmctld does not start: it has no usage file", std::nullopt,
                      About::kVersion);
}

std::optional<plan::Step> replace_pod_without_usage(const Observed& observed, const ConfigState& state) {
  if (observed.stopped || !observed.usage_missing || joins(observed, state).empty()) return {};
  const auto pod = std::ranges::find(observed.pods, observed.usage_missing->uid(),
                                     [](const kube::PodPtr& each) -> const std::string& { return each->meta.uid; });
  if (pod == observed.pods.end()) return {};
  constexpr core::Duration kAgain{5 * 60 * 1000};
  plan::StepId id{"replace", "Pod", (*pod)->meta.name};
  const auto before = observed.context.outcomes.find(id);
  if (before != observed.context.outcomes.end() && before->second.state == plan::Outcome::State::kDone &&
      observed.context.mono - before->second.last < kAgain)
    return {};
  return plan::Step{std::move(id), "slurmctld does not start without its usage file, and the init container repairs that",
                    kube::delete_pod(**pod, *observed.usage_missing)};
}

}  // namespace op::controller
