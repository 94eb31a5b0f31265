// Decides about new pods. Makes the pods that the bridge manages wait for Slurm, and refuses those that ask for something that
// Slurm cannot do.
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
  const kube::SchedulingPodRecord& pod;  ///< The object of the request. It can lack a name.
  /// True if the PriorityClass of the pod is the one that Kubernetes gives to pods that name none.
  bool default_class = false;
  const Settings& settings;
  std::string too_old{};  ///< The release of Slurm if it is too old for the bridge, so that no pod gets the gate.
};

/// Decides about the creation of a pod, and admits all other requests. Also admits the pods that no scheduler places: the pods
/// of DaemonSets, and the mirror pods of kubelets. Manages a pod that is in a managed namespace, or has the schedulerName of
/// the settings or kAnnotationManagedBy. A managed pod gets the gate, the scheduler of Kubernetes, and a PriorityClass that
/// does not preempt. A refusal names each wrong field and what is allowed. If Slurm is too old, admits a managed pod unchanged,
/// with a warning.
[[nodiscard]] kube::AdmissionVerdict review(const Observed& in);

}  // namespace bridge::admission
