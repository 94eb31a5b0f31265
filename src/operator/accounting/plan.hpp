// Plans what an Accounting needs. Lanes: "guard" (finalizer), "database" (Secret, Service and StatefulSet of a managed
// database), "network" (Service), "pod" (ConfigMap, StatefulSet), "events", "status", "tidy" (removal of the finalizer).
//
// In slurmdbd's pod, only the init container reads the password of the database. The init container writes slurmdbd.conf: all
// lines of the ConfigMap, and a line with the password.
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
/// Returns the script of the init container. The arguments of the script are the directory from which the script reads, the
/// directory to which it writes, and the file for its termination message.
std::string write_conf_script();

/// Returns the auth/slurm key that slurmdbd mounts, which is the key that the clusters' daemons use. If the data of the Secret
/// that the spec names changes, this key stays the old one until the daemons use the new data. Requires a usable key.
SecretFacts key_in_force(const Observed& observed);

/// Returns the release of slurmdbd to publish for slurmctlds that wait for slurmdbd. If slurmdbd is ready, this is the release
/// that slurmdbd has reported, or "unknown" if it has reported none. If slurmdbd is not ready, this is the published release,
/// or "". Exception: if a starting slurmdbd has reported a later release than the published one, returns the later release at
/// once, because the kubelet delivers the ConfigMap late. This is not too early, because a waiting slurmctld also waits for
/// slurmdbd's answer.
std::string release_to_tell(const Observed& observed);

// The children, as data to apply.
core::Json build_service(const Observed& observed);
core::Json build_config_map(const Observed& observed, const std::string& slurmdbd_conf);
/// Returns the StatefulSet of slurmdbd. Needs usable keys. `slurmdbd_conf`: the new content of the ConfigMap.
core::Json build_stateful_set(const Observed& observed, const std::string& slurmdbd_conf);

}  // namespace op::accounting
