// A database that was restored, or lost its records, under a cluster that lives.
//
// slurmdbd gives each cluster a number. slurmctld keeps it with its state, and ends at a start (fatal: CLUSTER ID MISMATCH) at
// which slurmdbd tells another one, before it reads its jobs. slurmctld is the only program that tells both numbers. So they
// are noted from its last words, and an init container of its next pod waits for a person: whether the database that is there
// is the right one, nobody else knows. Jobs run on meanwhile, and the state stays as it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/status.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"

namespace op::controller {

/// The init container that waits.
inline constexpr const char* kClusterNumber = "cluster-number";

/// What the number of the cluster is by slurmctld's state, and by slurmdbd.
struct ClusterNumbers {
  std::string ours, theirs;
};
/// By the last words of a slurmctld that ended; nullopt: it ended for something else, or runs.
std::optional<ClusterNumbers> differing_numbers(const kube::ContainerState& slurmctld);

/// Notes them where a slurmctld ends again and again for that.
void note_numbers(const Observed& observed, ConfigState& next);

/// The arguments of the init container's script after the state's directory: both numbers, and for which pod they were noted.
/// Empty: there is nothing to wait for.
std::vector<std::string> noted_numbers(const ConfigState& state);
/// What it does. It waits once for each note: the next pods pass.
std::string wait_number_script();

/// What is wrong, and what to do about it.
std::optional<Problem> number_problem(const Observed& observed, const ConfigState& state);

}  // namespace op::controller
