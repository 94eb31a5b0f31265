// How a changed configuration is loaded into slurmctld, and rolled back if it is refused.
//
// The state of the rollout is in the ConfigMap "X-config", so that any process can continue at any time:
//
// clang-format off
//   data: slurm.conf, cgroup.conf, topology.yaml      the offered content, which the kubelet projects into the pod
//   data: accepted.slurm.conf ...                     the last content that slurmctld loaded, if it differs (never projected)
//   annotations: slurm-config-hash                    of the offered content
//                accepted-config-hash                 of the last content that slurmctld loaded
//                refused-config-hash, refused-reason  the content that was refused, and slurmctld's error
//                asked-hash, refused-asked-hash       what users asked for with the offered and with the refused content
//                refused-by                           digest of the pod template of the slurmctld that refused it
//                refused-at, refusals                 when it was refused last, and how often
//                left-out-partitions                  those that were refused (with when, and how often), or may be the cause
//                slurm-key-hash                       of the auth/slurm key with which slurmctld was last up
//                made-with-slurm-key-hash             of the key with which its pod was made, if it differs
//                slurmctld-release                    of that slurmctld, from its image
//                cluster-numbers-differ               see cluster_number.hpp
//                served-by                            the uid of that slurmctld's pod, if its state is lost with it
//                slurmctld-ran                        it has run, although neither served-by nor an accepted content shows it
//                scripts-hash                         of the scripts that slurmctld itself runs
//                starting-at                        when slurmctld was made to load it while workers were starting
//                places-given-until, places-due     see places.hpp
//                held-since                         since when a reconfigure or restart waits for jobs that are starting
//                cut-short-jobs                     jobs that were still starting when the wait was over, and when that was
//                data-hash                            of the data: if it differs, somebody edited it, and all is offered anew
//                files-hash, accepted-files-hash      of the user's files of the offered and of the accepted content
//
// Everything that users name in configFileRefs, script refs and jwksKeyRef belongs to slurm.conf: a slurmctld that starts must
// find the set that was last accepted, whatever has happened to those ConfigMaps. The ConfigMap "X-config-files" has copies for
// the offered content and is projected into the pod. "X-config-files-accepted" has copies for the accepted content, if they
// differ. Copies are found by their digests, because the three ConfigMaps are not written at once: copies are written before
// "X-config" refers to them, and those of the accepted content are deleted only when it does not any more.
//
// wanted != offered, and not refused -> offer it, keeping what was accepted
// wanted == refused                  -> offer what was accepted (a rollback), until another slurmctld runs (a missing file, plugin or
//                                       user may be there now), and once more after 1, 2, 4 ... 30 minutes. Other content for the
//                                       same request of users also counts as refused: Slurm's answers, or their absence, do not
//                                       make it better
// refused, with NodeSets' partitions that differ from the accepted ones
//                                    -> offer it without these; once that is accepted, add them one at a time. A partition that is
//                                       refused alone is the cause, stays out, and is tried again like a refused content
// offered != loaded                  -> make the kubelet refresh the volume, then reconfigure, until loaded == offered
// clang-format on
//
// The kubelet refreshes a ConfigMap volume at once when an annotation of the pod changes. Whether it has done so is not
// visible, and a reconfigure that comes too early only loads the old content again. So: annotate, wait, reconfigure, check, and
// wait twice as long the next time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "operator/common/slinky.hpp"
#include "operator/controller/config.hpp"
#include "operator/controller/observed.hpp"
#include "plan/plan.hpp"
#include "slinky/config_map.hpp"

namespace op::controller {

inline constexpr const char* kNotLoaded = "slurmctld has not loaded the configuration yet";
/// Prefix of the refusal of a slurmctld that does not start.
inline constexpr const char* kEndsWithIt = "slurmctld ends when it starts with it";

/// In maps of files, names of users' files have this prefix, and binary files (in base64) have it twice. An entry with only
/// this name means that the users' files are known, even if there are none.
inline constexpr std::string_view kUsers = "/";

/// The state of the rollout, as stored in the ConfigMaps.
struct ConfigState {
  std::map<std::string, std::string> offered, accepted;  ///< By file name. `accepted` is empty while it equals `offered`.
  std::string offered_hash, accepted_hash, refused_hash, refused_reason;
  std::string offered_asked, refused_asked;  ///< See Rendered::asked; "": unknown.
  std::string refused_by;                    ///< See SlurmctldFacts::made_of of the slurmctld that refused.
  std::optional<core::WallTime> refused_at;  ///< The last time, in whole seconds.
  int refusals = 0;                          ///< Number of refusals of the same content.
  LeftOuts left_out;
  std::string scripts_hash;                      ///< Of slurmctld's own scripts that the kubelet was last told to refresh.
  std::string served_key;                        ///< Digest of the auth/slurm key with which slurmctld was last up.
  std::string served_made_with{};                ///< The digest in its pod, if it differs.
  std::string served_by{};                       ///< The uid of its pod, if its state is lost with the pod; "": it is not.
  std::string served_release{};                  ///< From the tag of its image; "": the tag shows no release.
  std::string numbers_differ{};                  ///< See cluster_number.hpp: "OURS THEIRS POD-UID [passed]".
  std::optional<core::WallTime> held_since{};    ///< See prologs.hpp; in seconds.
  std::optional<core::WallTime> cut_short_at{};  ///< When the wait for these jobs was over, in whole seconds.
  std::set<std::int64_t> cut_short{};
  std::optional<core::WallTime> starting_at{};  ///< See starting.hpp; in seconds.
  std::optional<Places> places{};               ///< See places.hpp.
  bool ran = false;  ///< slurmctld has run, so jobs may wait, although nothing else here shows it; see has_run.
  [[nodiscard]] bool exists() const { return !offered.empty(); }
  /// The content that slurmctld last accepted; empty: none.
  [[nodiscard]] std::map<std::string, std::string> accepted_files() const;
  /// Returns what is known against a partition with exactly this config, or null.
  [[nodiscard]] const LeftOut* known_against(std::string_view partition, std::string_view config) const;
  [[nodiscard]] bool leaves_out(std::string_view partition, std::string_view config) const;
  /// A refused partition is offered once more; everything else is as accepted.
  [[nodiscard]] bool tries_partition() const;
  /// slurmctld has refused this content, or another content for the same request of users.
  [[nodiscard]] bool refuses(const Rendered& wanted) const;
  /// There is an accepted content to return to.
  [[nodiscard]] bool can_roll_back() const { return !accepted.empty() && !accepted_hash.empty(); }
  /// Forgets refused contents. Keeps who refused (refused_by) and the partitions that are left out.
  void forget_refusal();
  friend bool operator==(const ConfigState&, const ConfigState&) = default;
};
/// Without the users' files.
ConfigState read_config_state(const kube::Object* config_map);
/// With the users' files, if they are known. If their copies are missing or were edited, neither content counts as known.
/// `copies`: the ConfigMap that is projected; `accepted`: the one with the copies of the accepted content.
ConfigState read_config_state(const kube::Object* config_map, const kube::Object* copies, const kube::Object* accepted);
ConfigState read_config_state(const Observed& observed);
/// Writes data and annotations of the ConfigMap "X-config", without the users' files.
void write_config_state(const ConfigState& state, core::Json& config_map);
/// Writes the users' files of one content into a ConfigMap of copies.
void write_file_copies(const std::map<std::string, std::string>& content, core::Json& config_map);
/// True if the users' files of this content are known.
bool knows_files(const std::map<std::string, std::string>& content);
/// True if the users' files of both contents are known.
bool knows_files(const ConfigState& state);
/// True if either content has users' files.
bool has_file_copies(const ConfigState& state);
/// The accepted content, if its users' files differ from the offered ones and need a ConfigMap of their own; else empty.
std::map<std::string, std::string> accepted_apart(const ConfigState& state);
/// The offered copy of a text file; null: none.
const std::string* file_copy(const ConfigState& state, std::string_view file);

/// The state of slurmctld.
struct SlurmctldFacts {
  std::optional<std::string> loaded;   ///< The hash with which it says that it runs; nullopt: unknown.
  std::optional<std::string> refusal;  ///< Its error about the offered content.
  std::string made_of;                 ///< Digest of its pod template (image, volumes ...); "": unknown.
  bool ready = false;                  ///< Its pod is ready.
  core::WallTime now{};
  std::string key{};                     ///< Digest of its auth/slurm key; "": it is not up.
  std::string made_with{};               ///< Digest of the key with which its pod was made.
  bool ran = false;                      ///< See has_run.
  std::optional<std::string> release{};  ///< From the tag of its image; nullopt: it is not up; "": the tag shows no release.
  std::string pod{};                     ///< The uid of its pod, if its state is lost with the pod; "": it is not up.
  bool fails = false;                    ///< It crashes repeatedly when it starts with the offered content.
  bool failed_before = false;  ///< It crashed before it had the offered content, so it says nothing about that content.
};
SlurmctldFacts read_slurmctld(const Observed& observed, const ConfigState& state);

/// When the refused content or the next refused partition is offered again, because the cause may have been solved elsewhere (a
/// name that DNS did not know, a node that had not registered). nullopt: not by time.
std::optional<core::WallTime> next_try(const ConfigState& state);

/// Renders what users want, without what the state leaves out.
using Render = std::function<Rendered(const ConfigState&)>;
/// Returns the next state to store.
ConfigState next_config_state(const ConfigState& now, const Render& render, const SlurmctldFacts& slurmctld);

/// The hash of the configuration that slurmctld has loaded; nullopt: Slurm does not answer.
std::optional<std::string> loaded_config_hash(const Observed& observed);

/// slurmctld's error if it refused the offered content: at a reconfigure, or because it does not start with it.
std::optional<std::string> find_refusal(const Observed& observed, const ConfigState& state);

/// True if slurmctld crashes and the offered content is no longer the one with which it was first seen to crash. A new pod
/// starts at once, while the kubelet waits up to five minutes before each restart.
bool restart_crashed(const Observed& observed, const ConfigState& state);

/// Id of the steps that reconfigure slurmctld. Their names say for what.
inline const plan::StepId kReconfigure{"reconfigure"};
/// True if slurmctld has refused the configuration.
bool refused(const plan::Outcome* outcome);
/// True if Slurm answers.
bool answers(const Observed& observed);
/// The running pod of slurmctld; null: none.
const kube::PodRecord* running_pod(const Observed& observed);
/// The wait after the try with that number; doubled with each.
core::Duration wait_of_try(int count, core::Duration first, core::Duration longest);
/// True if slurmctld's pod runs and does not crash repeatedly.
bool runs(const Observed& observed);

/// The outcomes without refusals by slurmctld, which the rollout reports once they are final, and without jobs that are
/// starting.
plan::Outcomes without_refusals(plan::Outcomes outcomes);

/// True if slurmctld has run: it has accepted a content, was up, has answered, or a worker was with it. Jobs may wait there.
bool has_run(const Observed& observed, const ConfigState& state);
/// True if slurmctld crashes repeatedly.
bool slurmctld_crashes(const Observed& observed);
/// True if slurmctld has run in its present pod. A slurmctld that is not ready, because it is busy or its Kubernetes node does
/// not respond, still has its state. One that crashes may need another template.
bool has_state(const Observed& observed);

/// When slurmctld last answered the reconfigure for the content that its pod was refreshed for; nullopt: unknown.
std::optional<core::MonoTime> reconfigured_at(const Observed& observed);
/// Keeps that outcome for the next pass.
void remember_reconfigure(const Observed& observed, plan::Plan& plan);

/// True if slurmctld runs with the offered content and, as far as is known, its volume has no other.
bool holds_offered(const Observed& observed, const ConfigState& state);

/// True if slurmctld is up and runs with another configuration than the offered one.
bool needs_load(const Observed& observed, const ConfigState& state);

/// True while a running slurmctld has yet to load the offered content.
bool awaits_load(const Observed& observed, const ConfigState& state);

/// The step that makes the kubelet refresh the volume at once when slurmctld's own scripts have changed. `state`: as stored.
std::optional<plan::Step> script_refresh(const Observed& observed, const ConfigState& state);

/// Adds a step that records on the pod with which content it was first seen to crash. `state`: as stored.
void add_crash_mark(const Observed& observed, const ConfigState& state, plan::Plan& plan);

/// Adds the steps that load `state` (as stored) into slurmctld, unless it lacks what `wanted` keeps for jobs.
void add_load_steps(const Observed& observed, const ConfigState& state, const Rendered& wanted, plan::Plan& plan);

}  // namespace op::controller
