// Decides about new pods: those that the bridge manages wait for Slurm, and those that ask for what Slurm cannot do are
// refused.
//
// Folder src/bridge/admission: the admission webhook of slurm-bridge. Uses bridge/common.
#pragma once

#include <string>

#include "bridge/common/settings.hpp"
#include "kube/admission.hpp"

namespace bridge::admission {

/// The facts about one request.
struct Observed {
  const kube::AdmissionRequest& request;
  const kube::SchedulingPodRecord& pod;  ///< The object of the request. It may lack a name.
  /// The PriorityClass of the pod is the one that Kubernetes gives to pods that name none.
  bool default_class = false;
  const Settings& settings;
  std::string too_old{};  ///< The release of Slurm, if it is too old for the bridge. Then no pod gets the gate.
};

/// Decides about the creation of a pod. Admits all other requests, and pods that no scheduler places: those that Kubernetes
/// creates for DaemonSets, and mirror pods of kubelets. Otherwise a pod of a managed namespace, or with the schedulerName of
/// the settings or kAnnotationManagedBy, gets the gate, the scheduler of Kubernetes, and a PriorityClass that does not preempt.
/// A refusal names each wrong field and what is allowed. If Slurm is too old, such a pod is admitted without a change, with a
/// warning.
[[nodiscard]] kube::AdmissionVerdict review(const Observed& in);

}  // namespace bridge::admission
