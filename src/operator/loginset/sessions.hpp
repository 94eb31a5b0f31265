// The sessions on login pods: what ends with a pod, and who counts it.
//
// Users are on these pods, so the pods have no rights in the Kubernetes API. Inside the container `login`, the readiness probe
// counts, as root, and leaves the number in a directory that users cannot enter. The sidecar `sessions` writes it to its log,
// and the operator reads the last line there when it has to know: before pods go, and while some wait.
#pragma once

#include <optional>
#include <string>

#include "core/json.hpp"
#include "operator/loginset/observed.hpp"
#include "plan/plan.hpp"

namespace op::loginset {

inline constexpr std::string_view kSessions = "sessions";

/// For sh: `count` sets $n to the number of SSH sessions, of connections that others go through (`ssh -J`, `ssh -N`), and of
/// programs whose end ends a job, which may have been left behind by their session, as in tmux. It fails where it cannot see
/// the processes.
inline constexpr std::string_view kCount =
    R"sh(count() { n=0; seen=; for p in /proc/[0-9]*; do c=; { read -r c <"$p/comm"; } 2>/dev/null; [ -z "$c" ] || seen=1;)sh"
    // "sshd: alice@pts/0", or sshd-session from OpenSSH 9.8 on; before the login "alice [net]" or "[accepted]", and "alice"
    // alone where nothing but tunnels was asked for.
    R"sh( case $c in srun|salloc|sattach) n=$((n + 1));; sshd|sshd-session) l=; { read -r l <"$p/cmdline"; } 2>/dev/null;)sh"
    R"sh( l=${l#*: }; case ${l%% *} in *@*) n=$((n + 1));; ''|/*|\[*) ;; "$l") n=$((n + 1));; esac;; esac; done;)sh"
    R"sh( [ -n "$seen" ]; }; )sh";

/// What the probe runs to report the number.
std::string report_script();
/// The container that tells it, its volume, and the mount for the container login.
core::Json sessions_sidecar();
core::Json sessions_volume();
core::Json sessions_mount();

/// The number of sessions on a pod; empty: it is not known, and the pod counts as in use.
using Count = std::optional<int>;
Count read_count(const plan::Facts& facts, const kube::PodRecord& pod);

/// Pods may go soon: `changes`, what is about to be applied would have some go; or a rollout is under way. Asks how many
/// sessions they have, and has ReplicaSets take those with the fewest first. True when that is done, so that pods may go.
bool rank_pods(const Observed& observed, bool changes, plan::Plan& plan);

/// What the pods wait for that are on their way out; asks for it.
std::vector<Problem> waits_for_sessions(const Observed& observed, plan::Plan& plan);

}  // namespace op::loginset
