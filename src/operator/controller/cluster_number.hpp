// Handles an accounting database that was restored, or lost its records, while the cluster lives on.
//
// slurmdbd gives each cluster a number. slurmctld stores it with its state, and exits at its start (fatal: CLUSTER ID
// MISMATCH), before it reads its jobs, if slurmdbd reports another number. Only slurmctld reports both numbers. So they are
// taken from its termination message, and an init container of its next pod waits for a person, because nobody else knows which
// database is the right one. Jobs run on in the meantime, and the state stays as it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/common/slinky.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/status.hpp"

namespace op::controller {

/// The init container of slurmctld's pod that waits until a person has resolved the difference.
inline constexpr const char* kClusterNumber = "cluster-number";

/// The number of the cluster in slurmctld's state and in slurmdbd.
struct ClusterNumbers {
  std::string ours, theirs;
};
/// Parses the termination message of slurmctld. Returns nullopt if slurmctld is ready or has ended for another reason.
std::optional<ClusterNumbers> differing_numbers(const kube::ContainerState& slurmctld);

/// Records the numbers if slurmctld crashes repeatedly because of them, and later that it is up again. Forgets old numbers.
void note_numbers(const Observed& observed, ConfigState& next);

/// Returns the arguments of the init container's script after the state directory: both numbers, and the pod for which they
/// were recorded. Empty: there is nothing to wait for.
std::vector<std::string> noted_numbers(const ConfigState& state);
/// Returns the script of the init container. It waits in one pod for each record of numbers; later pods do not wait.
std::string wait_number_script();

/// Returns the problem that the numbers differ, and what to do about it. nullopt: no difference is known.
std::optional<Problem> number_problem(const Observed& observed, const ConfigState& state);

}  // namespace op::controller
