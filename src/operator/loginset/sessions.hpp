// The sessions on login pods, which end with the pods, and how they are counted.
//
// Users work on these pods, so the pods have no rights in the Kubernetes API. Inside the container `login`, the readiness
// probe, as root, counts the sessions and writes the number to a directory that users cannot enter. The sidecar `sessions`
// copies it to its log, and the operator reads the last line when needed: before pods are deleted, and while some wait.
#pragma once

#include <optional>
#include <string>

#include "core/json.hpp"
#include "operator/loginset/observed.hpp"
#include "plan/plan.hpp"

namespace op::loginset {

inline constexpr std::string_view kSessions = "sessions";

/// A function for sh. `count` sets $n to the number of SSH sessions, of connections for others (`ssh -J`, `ssh -N`), and of
/// programs whose end ends a job, even if their session left them behind, as in tmux. It fails if it cannot see the processes.
inline constexpr std::string_view kCount =
    R"sh(count() { n=0; seen=; for p in /proc/[0-9]*; do c=; { read -r c <"$p/comm"; } 2>/dev/null; [ -z "$c" ] || seen=1;)sh"
    // sshd's command line is "sshd: alice@pts/0" (sshd-session from OpenSSH 9.8 on), before the login "sshd: alice [net]" or
    // "sshd: [accepted]", and "sshd: alice" for a connection that only has tunnels.
    R"sh( case $c in srun|salloc|sattach) n=$((n + 1));; sshd|sshd-session) l=; { read -r l <"$p/cmdline"; } 2>/dev/null;)sh"
    R"sh( l=${l#*: }; case ${l%% *} in *@*) n=$((n + 1));; ''|/*|\[*) ;; "$l") n=$((n + 1));; esac;; esac; done;)sh"
    R"sh( [ -n "$seen" ]; }; )sh";

/// Returns the commands with which the probe reports the number of sessions.
std::string report_script();
/// These return the sidecar that writes the number of sessions to its log, its volume, and the mount for the container login.
core::Json sessions_sidecar();
core::Json sessions_volume();
core::Json sessions_mount();

/// The number of sessions on a pod. nullopt: unknown, so the pod counts as in use.
using Count = std::optional<int>;
Count read_count(const plan::Facts& facts, const kube::PodRecord& pod);

/// Call it before the Deployment is applied. `changes`: the apply would change the Deployment, so pods may be deleted. In this
/// case, and during a rollout, reads the number of sessions on the pods, and makes ReplicaSets delete the pods with the fewest
/// first. Returns true if the apply may go on: the pods are ranked, or need not be.
bool rank_pods(const Observed& observed, bool changes, plan::Plan& plan);

/// Returns what terminating pods wait for. Reads their sessions.
std::vector<Problem> waits_for_sessions(const Observed& observed, plan::Plan& plan);

}  // namespace op::loginset
