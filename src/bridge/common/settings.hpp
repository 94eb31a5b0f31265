// The settings of the bridge, from the flags of the program.
#pragma once

#include <string>
#include <vector>

#include "core/clock.hpp"
#include "kube/object.hpp"
#include "slurm/model.hpp"

namespace bridge {

struct Settings {
  slurm::ClusterKey cluster;                      ///< The Slurm cluster that runs the jobs.
  std::vector<std::string> managed_namespaces{};  ///< The pods in these are managed: jobs are submitted for them.
  /// Pods with this schedulerName are managed in other namespaces as well; "": none are. Only admission sees the name, because
  /// it replaces it (kAnnotationManagedBy).
  std::string scheduler_name{};
  std::string partition{};         ///< The partition of pods that name none; "": Slurm's default.
  std::string mcs_label{};         ///< The MCS label of all jobs; "": none.
  bool whole_nodes = true;         ///< A pod that does not say otherwise gets its node alone.
  bool holds_native_jobs = false;  ///< A pod beside a slurmd waits until `extra` of the node lists its job.
  /// Annotations that count for pods that lack them. In the settings of one namespace they are those of the Namespace, which
  /// its users cannot write.
  kube::StringMap defaults{};
  bool trusts_identities = false;        ///< Pods may name the user, the group and the priority of their jobs.
  bool retires = false;                  ///< The bridge is being removed: pods that wait lose their gate.
  core::Duration bind_limit{120000};     ///< The time for a pod to be bound after its job has started.
  core::Duration evict_limit{300000};    ///< The time for which a budget may keep a pod whose job has ended.
  core::Duration outlive_limit{300000};  ///< The longest time that a pod may take to end after its job has ended.
  core::Duration silence_limit{600000};  ///< The time after which a node that is not ready loses the jobs of its pods.
};

}  // namespace bridge
