// Counts the sessions on login pods. The sessions end with their pods.
//
// Users work on these pods, so the pods have no rights in the Kubernetes API. The readiness probe of the container `login` runs
// as root. It counts the sessions and writes the number to a directory that users cannot enter. The sidecar `sessions` copies
// the number to its log. The operator reads the last line before pods are deleted, and while pods terminate.
#pragma once

#include <optional>
#include <string>

#include "core/json.hpp"
#include "operator/loginset/observed.hpp"
#include "plan/plan.hpp"

namespace op::loginset {

inline constexpr std::string_view kSessions = "sessions";

/// The shell function `count`. It sets $n to a sum: the SSH sessions, the SSH connections without a session (`ssh -J`, `ssh
/// -N`), and the processes srun, salloc and sattach, which can outlive a session, as in tmux. The function fails if it cannot
/// see any process.
inline constexpr std::string_view kCount =
    R"sh(count() { n=0; seen=; for p in /proc/[0-9]*; do c=; { read -r c <"$p/comm"; } 2>/dev/null; [ -z "$c" ] || seen=1;)sh"
    // The command line of sshd (sshd-session from OpenSSH 9.8 on) is "sshd: alice@pts/0" for a session, "sshd: alice" for a
    // connection with tunnels only, and "sshd: alice [net]" or "sshd: [accepted]" before the login.
    R"sh( case $c in srun|salloc|sattach) n=$((n + 1));; sshd|sshd-session) l=; { read -r l <"$p/cmdline"; } 2>/dev/null;)sh"
    R"sh( l=${l#*: }; case ${l%% *} in *@*) n=$((n + 1));; ''|/*|\[*) ;; "$l") n=$((n + 1));; esac;; esac; done;)sh"
    R"sh( [ -n "$seen" ]; }; )sh";

/// Returns the commands with which the readiness probe reports the number of sessions.
std::string report_script();
/// These functions return the sidecar that writes the number of sessions to its log, the volume from which the sidecar reads
/// the number, and the mount of this volume in the sidecar and in the container `login`.
core::Json sessions_sidecar();
core::Json sessions_volume();
core::Json sessions_mount();

/// The number of sessions on a pod. nullopt: unknown, so the pod counts as in use.
using Count = std::optional<int>;
Count read_count(const plan::Facts& facts, const kube::PodRecord& pod);

/// Ranks the pods for deletion. Call rank_pods before the Deployment is applied. `changes`: the apply would change the
/// Deployment, so Kubernetes might delete pods. If `changes` is true or a rollout is under way, reads the number of sessions on
/// the pods, and makes ReplicaSets delete the pods with the fewest sessions first. Returns true if the Deployment can be
/// applied in this pass, because the pods are ranked or need no rank.
bool rank_pods(const Observed& observed, bool changes, plan::Plan& plan);

/// Reads the sessions of terminating pods, and returns a problem for each pod that waits for its sessions.
std::vector<Problem> waits_for_sessions(const Observed& observed, plan::Plan& plan);

}  // namespace op::loginset
