// Plans what an Accounting needs. Lanes: "guard" (finalizer), "database" (of a managed one: Secret, Service, StatefulSet),
// "network" (Service), "pod" (ConfigMap, StatefulSet), "events", "status", "tidy" (removal of the finalizer).
//
// In slurmdbd's pod, only the init container reads the password of the database. It writes slurmdbd.conf. The ConfigMap has all
// lines except the line with the password.
#pragma once

#include <string>
#include <vector>

#include "core/json.hpp"
#include "operator/accounting/observed.hpp"
#include "plan/plan.hpp"

namespace op::accounting {

plan::Plan plan(const Observed& observed);

/// The content of slurmdbd.conf, without the line with the password.
struct Rendered {
  std::string text;
  std::vector<Problem> problems;  ///< Not empty: `text` is not usable.
};
Rendered render_config(const Observed& observed);

/// The init container that writes slurmdbd.conf.
inline constexpr std::string_view kInitConf = "initconf";
/// Returns the script of the init container. Arguments: the directory that it reads, the directory to which it writes, and the
/// file for its termination message.
std::string write_conf_script();

/// Returns the auth/slurm key for slurmdbd: the one that the clusters' daemons use, even if the data of the named Secret have
/// changed since. Requires a usable key.
SecretFacts key_in_force(const Observed& observed);

/// Returns the release of slurmdbd to publish for slurmctlds that wait for it. This is the release that the ready slurmdbd has
/// reported ("unknown" if it reported none), otherwise the published release, or "". The release of a starting slurmdbd is
/// returned at once if it is later than the published one, because the kubelet delivers the ConfigMap late. A waiting slurmctld
/// also waits for slurmdbd's answer.
std::string release_to_tell(const Observed& observed);

// The children, as data to apply.
core::Json build_service(const Observed& observed);
core::Json build_config_map(const Observed& observed, const std::string& slurmdbd_conf);
/// Returns the StatefulSet of slurmdbd. Needs usable keys. `slurmdbd_conf`: the new content of the ConfigMap.
core::Json build_stateful_set(const Observed& observed, const std::string& slurmdbd_conf);

}  // namespace op::accounting
