// Handles an accounting database that was restored or has lost its records while the cluster runs.
//
// slurmdbd gives each cluster a number. slurmctld stores it with its state, and exits at its start (fatal: CLUSTER ID
// MISMATCH), before it reads its jobs, if slurmdbd reports another number. The operator reads both numbers from slurmctld's
// termination message. Only a person can know which database is right, so an init container of the next pod waits for that
// person. Meanwhile, jobs continue and the state stays unchanged.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/common/slinky.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/status.hpp"

namespace op::controller {

/// The init container of slurmctld's pod that waits until a person has resolved the difference between the two numbers.
inline constexpr const char* kClusterNumber = "cluster-number";

/// The number of the cluster in slurmctld's state (`ours`) and in slurmdbd (`theirs`).
struct ClusterNumbers {
  std::string ours, theirs;
};
/// Parses the termination message of slurmctld. Returns nullopt if slurmctld is ready or has ended for another reason.
std::optional<ClusterNumbers> differing_numbers(const kube::ContainerState& slurmctld);

/// Records in `next` the numbers if slurmctld crashes because they differ, and later that slurmctld is ready. Clears numbers
/// that are no longer needed.
void note_numbers(const Observed& observed, ConfigState& next);

/// Returns the arguments of the init container's script after the state directory: both numbers, and the pod for which they
/// were recorded. Empty: no numbers are recorded.
std::vector<std::string> noted_numbers(const ConfigState& state);
/// Returns the script of the init container. Once a pod has passed the script, later pods do not wait because of the same
/// record.
std::string wait_number_script();

/// Returns the problem that the numbers differ, with what to do about it. nullopt: they do not differ, as far as is known.
std::optional<Problem> number_problem(const Observed& observed, const ConfigState& state);

}  // namespace op::controller
