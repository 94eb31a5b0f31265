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
  std::vector<std::string> managed_namespaces{};  ///< The namespaces whose pods are managed: the bridge submits jobs for them.
  /// Pods with this schedulerName are managed in other namespaces as well; "": no such pods. Only admission sees the
  /// schedulerName, because admission replaces it and adds kAnnotationManagedBy.
  std::string scheduler_name{};
  std::string partition{};         ///< The partition of pods that name none; "": Slurm's default.
  std::string mcs_label{};         ///< The MCS label of all jobs; "": none.
  bool whole_nodes = true;         ///< Jobs are exclusive, unless the pod's annotation says otherwise.
  bool holds_native_jobs = false;  ///< A node with a slurmd gets pods only once its `extra` lists their job.
  /// Default annotations for pods that lack them. In the settings for one namespace, the defaults come from the annotations of
  /// the Namespace object, which users of the namespace cannot write.
  kube::StringMap defaults{};
  bool trusts_identities = false;        ///< Pods can choose the user, the group and the priority of their jobs.
  bool retires = false;                  ///< The bridge is being removed: pods that wait lose their gate.
  core::Duration bind_limit{120000};     ///< How long a placed pod may stay unbound, or a job may lack pods of its group.
  core::Duration evict_limit{300000};    ///< How long a PodDisruptionBudget may protect a pod whose job has ended.
  core::Duration outlive_limit{300000};  ///< How long a pod may take to end after its job has ended.
  core::Duration silence_limit{600000};  ///< How long a node must be not ready before its pods lose their jobs.
};

/// Reports whether the bridge submits jobs for the pod, because of its namespace or the annotation kAnnotationManagedBy.
[[nodiscard]] bool manages(const Settings& settings, const kube::SchedulingPodRecord& pod);

}  // namespace bridge
