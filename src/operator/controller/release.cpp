#include "operator/controller/release.hpp"

#include <fmt/format.h>

#include "operator/common/deployments.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/backups.hpp"
#include "operator/controller/build.hpp"
#include "slinky/releases.hpp"

namespace op::controller {
namespace {

/// Returns by how many releases the wanted slurmctld is later than the slurmctld that last served. Negative: the wanted
/// slurmctld is earlier. 0: both have the same release, or a release is unknown.
int releases_ahead(const Observed& observed, const ConfigState& state) {
  return releases_between(slurm_release("slurmctld:" + state.served_release),
                          slurm_release(slurmctld_image(observed.controller.spec)));
}

/// Returns why the wanted slurmctld could not read the state that the present slurmctld has written, or "".
std::string why_refused(const Observed& observed, const ConfigState& state) {
  const int ahead = releases_ahead(observed, state);
  if (!observed.controller.spec.persistence.enabled || (ahead >= 0 && ahead <= kMostReleasesApart)) return "";
  const std::string image = slurmctld_image(observed.controller.spec);
  const std::string why = ahead < 0 ? "Slurm does not go back to an earlier release"
                                    : fmt::format("Slurm reads that of the {} releases before. Upgrade to one in between first",
                                                  kMostReleasesApart);
  return fmt::format(
      "spec.slurmctld.image {} is of Slurm {}, which cannot read the state that slurmctld {} has written: {}. slurmctld keeps "
      "its "
      "image",
      image, to_string(slurm_release(image)), state.served_release, why);
}

/// Returns why slurmdbd would refuse the wanted slurmctld, or "".
std::string why_slurmdbd_first(const Observed& observed) {
  if (!observed.accounting) return "";
  const std::string image = slurmctld_image(observed.controller.spec);
  if (releases_between(observed.accounting->slurmdbd_release, slurm_release(image)) <= 0) return "";
  return fmt::format(
      "spec.slurmctld.image {} is of Slurm {}, and the slurmdbd of Accounting {}/{} of {}, which does not understand it: "
      "upgrade that slurmdbd first (spec.slurmdbd.image). slurmctld keeps its image",
      image, to_string(slurm_release(image)), observed.object->meta.ns, observed.accounting->name,
      to_string(observed.accounting->slurmdbd_release));
}

}  // namespace

bool changes_release(const Observed& observed, const ConfigState& state) {
  return releases_ahead(observed, state) != 0;
}

std::optional<HeldRelease> hold_release(const Observed& observed) {
  const ConfigState state = read_config_state(observed.config_map.get());
  if (!observed.stateful_set || !changes_release(observed, state)) return {};
  std::optional<Problem> problem;
  // A user who scaled the StatefulSet to 0 may have restored another state. If the pod is missing for another reason, the state
  // is still that of the last slurmctld.
  const bool scaled_to_0 = observed.pods.empty() && core::get_int(observed.stateful_set->body, {"spec", "replicas"}, 1) == 0;
  if (std::string why = scaled_to_0 ? "" : why_refused(observed, state); !why.empty()) {
    problem = Problem{"ReleaseRefused", std::move(why)};
  } else if (std::string first = why_slurmdbd_first(observed); !first.empty()) {
    problem = Problem{"SlurmdbdFirst", std::move(first)};
  } else if (!primary_ready(observed) && !observed.backup_pods.empty()) {
    problem =
        Problem{"ReleaseWaits",
                "slurmctld keeps its image until the primary is ready: a backup of the former release may serve, and one of "
                "another release would not understand it",
                Problem::Kind::kComing};
  }
  if (!problem && observed.accounting && observed.accounting->slurmdbd_changes) {
    problem = Problem{"ReleaseWaits",
                      fmt::format("slurmctld keeps its image until the slurmdbd of Accounting {}/{} answers with its new "
                                  "image, which may take long if it converts its tables",
                                  observed.object->meta.ns, observed.accounting->name),
                      Problem::Kind::kComing};
  }
  if (!problem) return {};
  HeldRelease out{observed, *std::move(problem)};
  out.observed.controller.spec.slurmctld["image"] = made_image(*observed.stateful_set, kAppController);
  return out;
}

}  // namespace op::controller
