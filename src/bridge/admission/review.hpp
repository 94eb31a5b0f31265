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
  bool default_class = false;            ///< Kubernetes gives the PriorityClass of the pod to pods that name none.
  const Settings& settings;
  std::string too_old{};  ///< The release of Slurm, if it is too old for the bridge. Then no pod gets the gate.
};

/// Decides about the creation of a pod. Admits everything else, and pods that no scheduler places: those of DaemonSets, and
/// mirror pods. Otherwise a pod of a managed namespace, or with the schedulerName of the settings, gets the gate, the scheduler
/// of Kubernetes, and a PriorityClass that does not preempt. A refusal names each field and what is allowed. With a Slurm that
/// is too old, such a pod is admitted as it is, with a warning.
[[nodiscard]] kube::AdmissionVerdict review(const Observed& in);

}  // namespace bridge::admission
