// What an Accounting needs done. Lanes: "guard" (finalizer), "database" (of a managed one: Secret, Service, StatefulSet),
// "network" (Service), "pod" (ConfigMap, StatefulSet), "events", "status", "tidy" (the finalizer goes).
//
// The password of the database is read by no one but the init container of slurmdbd's pod, which writes slurmdbd.conf: the
// ConfigMap holds all lines but that.
#pragma once

#include <string>
#include <vector>

#include "core/json.hpp"
#include "operator/accounting/observed.hpp"
#include "plan/plan.hpp"

namespace op::accounting {

plan::Plan plan(const Observed& observed);

/// slurmdbd.conf without the password.
struct Rendered {
  std::string text;
  std::vector<Problem> problems;  ///< Not empty: `text` is of no use.
};
Rendered render_config(const Observed& observed);

/// The init container that writes slurmdbd.conf, and what it is to be told apart by in a pod.
inline constexpr std::string_view kInitConf = "initconf";
/// What that container does. Arguments: the folder of what it reads, the folder that it writes to, and the file for its last
/// words.
std::string write_conf_script();

/// The auth/slurm key that slurmdbd is to have: what is in force where the Secret that is named holds another one by now. Needs
/// a usable key.
SecretFacts key_in_force(const Observed& observed);

/// Of the slurmdbd that answers, or that last did, as it said itself, or "unknown"; "": none has. A slurmctld that waits looks
/// itself whether slurmdbd answers, and needs a kubelet's time to learn the release: of one that starts it is told at once
/// where it is the first one, or an earlier one, which holds back more.
std::string release_to_tell(const Observed& observed);

// The children, as data to apply.
core::Json build_service(const Observed& observed);
core::Json build_config_map(const Observed& observed, const std::string& slurmdbd_conf);
/// Needs usable keys. `slurmdbd_conf`: what the ConfigMap will hold.
core::Json build_stateful_set(const Observed& observed, const std::string& slurmdbd_conf);

}  // namespace op::accounting
