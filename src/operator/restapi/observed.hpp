// The facts for the plan of a RestApi, copied from the caches at one moment.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/controller.hpp"
#include "api/restapi.hpp"
#include "kube/object.hpp"
#include "operator/common/slinky.hpp"
#include "plan/plan.hpp"
#include "slinky/keys.hpp"

namespace op::restapi {

struct Observed {
  plan::Context context;
  kube::ObjectPtr object;
  api::RestApi restapi;
  std::string parse_error;

  bool controller_exists = false;
  bool external = false;                     ///< slurmctld is outside of Kubernetes.
  bool accounting = false;                   ///< The Controller names an Accounting, and slurm.conf has a slurmdbd.
  std::string controller_error;              ///< Why the Controller's spec cannot be parsed.
  std::optional<Problem> newer;              ///< The image is of a later release than slurmctld: see slinky/releases.hpp.
  SecretFacts sssd_conf;                     ///< The Secret of spec.sssdConfRef.
  std::vector<Problem> missing;              ///< Missing Secrets and ConfigMaps that the pod's spec names.
  kube::ObjectPtr config_map;                ///< The Controller's "X-config".
  std::vector<std::string> ending_nodesets;  ///< NodeSets of the same Controller that are being deleted.
                                             ///< They might need slurmrestd to drain workers.
  std::vector<std::string> ending_workers;   ///< Workers of a Controller that is being deleted with deletionPolicy: Drain.
  bool lasting_nodesets = false;             ///< There are NodeSets that are not being deleted.

  kube::ObjectPtr service, deployment;
  std::vector<kube::PodPtr> pods;
};

}  // namespace op::restapi
