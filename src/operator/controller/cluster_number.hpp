// Handles an accounting database that was restored or has lost its records while the cluster runs.
//
// slurmdbd gives each cluster a number, and slurmctld stores this number with its state. If slurmdbd reports another number
// when slurmctld starts, slurmctld exits (fatal: CLUSTER ID MISMATCH) before it reads its jobs. The operator reads both numbers
// from slurmctld's termination message. Only a person can know which database is right, so an init container of the next pod
// waits for that person. Meanwhile, jobs continue and the state stays unchanged.
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

/// Records both numbers in `next` if slurmctld crashes because they differ. Later records that slurmctld is ready. Clears
/// numbers that are no longer needed.
void note_numbers(const Observed& observed, ConfigState& next);

/// Returns the arguments that follow the state directory in the init container's command: both numbers, and the pod for which
/// they were recorded. Empty: no numbers are recorded.
std::vector<std::string> noted_numbers(const ConfigState& state);
/// Returns the script of the init container. Once a pod has passed the script, later pods do not wait again for the same
/// recorded numbers.
std::string wait_number_script();

/// Returns the problem that the numbers differ, and what to do about it. nullopt: the numbers are not known to differ.
std::optional<Problem> number_problem(const Observed& observed, const ConfigState& state);

}  // namespace op::controller
