// How a changed configuration gets into slurmctld, and out of it again when it is refused.
//
// The memory of the rollout stands in the ConfigMap "X-config", so that any process can go on at any time:
//
// clang-format off
//   data: slurm.conf, cgroup.conf, topology.yaml      what is offered: what the kubelet projects into the pod
//   data: accepted.slurm.conf ...                     the last content that slurmctld had loaded, while it is another (never projected)
//   annotations: slurm-config-hash                    of what is offered
//                accepted-config-hash                 of the last content that slurmctld had loaded
//                refused-config-hash, refused-reason  the content that was refused, and slurmctld's words
//                asked-hash, refused-asked-hash       what people asked for with what is offered, and with what was refused
//                refused-by                           of the pod template of the slurmctld that refused it
//                refused-at, refusals                 when it was refused last, and how often
//                left-out-partitions                  those that were refused (with when, and how often), or may be to blame
//                slurm-key-hash                       of the auth/slurm key that slurmctld was last up with
//                made-with-slurm-key-hash             of the one that its pod was made with, where that is another
//                slurmctld-release                    of that slurmctld, by its image
//                cluster-numbers-differ               see cluster_number.hpp
//                served-by                            the uid of that slurmctld's pod, where its state goes with it
//                slurmctld-ran                        it has run, of which neither that nor an accepted content tells
//                scripts-hash                         of the scripts that slurmctld runs itself
//                starting-at                        when slurmctld was made to load it while workers were starting
//                places-given-until, places-due     see places.hpp
//                held-since                         since when a reconfigure or restart waits for jobs that are starting
//                cut-short-jobs                     jobs that were starting when it was not waited for any longer, with when
//                data-hash                            of the data: where it is another, somebody edited it, and all is offered anew
//                files-hash, accepted-files-hash      of the user's files that belong to what is offered, and to what was accepted
//
// With slurm.conf goes all that users name in configFileRefs, script refs and jwksKeyRef: a slurmctld that starts is to find the
// set that was last taken, whatever has become of these ConfigMaps. Copies of what is offered stand in the ConfigMap
// "X-config-files", which is projected into the pod, and those of what was accepted, while they are others, in
// "X-config-files-accepted". They are found by their digests, for the three ConfigMaps are not written at once: the copies are
// written before "X-config" tells of them, and those of what was accepted go only after it does not any more.
//
// wanted != offered, and not refused -> offer it, keeping what was accepted
// wanted == refused                  -> offer what was accepted (a rollback), until another slurmctld runs (a file, a plugin or a
//                                       user that was missing may be there now), and once more after 1, 2, 4 ... 30 minutes
//                                       Other content that is wanted for what people ask for still counts as refused: what Slurm
//                                       says, or that it is silent, does not make it better
// refused, with NodeSets' partitions that differ from the accepted ones
//                                    -> offer it without these; once that is accepted, one more of them at a time: who is refused
//                                       alone is to blame, stays out, and is tried again as a refused content is
// offered != loaded                  -> make the kubelet refresh the volume, then reconfigure, until loaded == offered
// clang-format on
//
// The kubelet refreshes a ConfigMap volume at once when an annotation of the pod changes. Whether it has done so cannot be
// seen, and a reconfigure too early only loads the old content again: so annotate, wait, reconfigure, look, and wait twice as
// long the next time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "cluster/config_map.hpp"
#include "operator/controller/config.hpp"
#include "operator/controller/observed.hpp"
#include "plan/plan.hpp"

namespace op::controller {

inline constexpr const char* kNotLoaded = "slurmctld has not loaded the configuration yet";
/// How the refusal begins of a slurmctld that does not get up.
inline constexpr const char* kEndsWithIt = "slurmctld ends when it starts with it";

/// Among files by name, those of users have this before their names, and twice what is no text, which is in base64. Where a
/// content has an entry of this name alone, its files of users are known, be there any or none.
inline constexpr std::string_view kUsers = "/";

/// The ConfigMaps' content as data.
struct ConfigState {
  std::map<std::string, std::string> offered, accepted;  ///< By file name. `accepted` is empty while it equals `offered`.
  std::string offered_hash, accepted_hash, refused_hash, refused_reason;
  std::string offered_asked, refused_asked;  ///< See Rendered::asked; "": not known.
  std::string refused_by;                    ///< See SlurmctldFacts::made_of; of the one that refused.
  std::optional<core::WallTime> refused_at;  ///< The last time, in seconds.
  int refusals = 0;                          ///< How often, without a change of the content.
  LeftOuts left_out;
  std::string scripts_hash;                      ///< Of slurmctld's own scripts, whose change the kubelet has been told of.
  std::string served_key;                        ///< The digest of the auth/slurm key that slurmctld was last up with.
  std::string served_made_with{};                ///< And what its pod says instead; "": the same.
  std::string served_by{};                       ///< The uid of its pod, where the state goes with that; "": it does not.
  std::string served_release{};                  ///< Of the same slurmctld, by the tag of its image; "": that tells none.
  std::string numbers_differ{};                  ///< See cluster_number.hpp: "OURS THEIRS POD-UID".
  std::optional<core::WallTime> held_since{};    ///< See prologs.hpp; in seconds.
  std::optional<core::WallTime> cut_short_at{};  ///< When it was not waited for these any longer; likewise.
  std::set<std::int64_t> cut_short{};
  std::optional<core::WallTime> starting_at{};  ///< See starting.hpp; in seconds.
  std::optional<Places> places{};               ///< See places.hpp.
  bool ran = false;  ///< slurmctld has run, and jobs may wait, though none of the rest tells of it; see has_run.
  [[nodiscard]] bool exists() const { return !offered.empty(); }
  /// The content that slurmctld last accepted; empty when there is none.
  [[nodiscard]] std::map<std::string, std::string> accepted_files() const;
  /// What is known against a partition with this very config; null: nothing.
  [[nodiscard]] const LeftOut* known_against(std::string_view partition, std::string_view config) const;
  [[nodiscard]] bool leaves_out(std::string_view partition, std::string_view config) const;
  /// A partition that was refused is offered once more; all else is as it was accepted.
  [[nodiscard]] bool tries_partition() const;
  /// slurmctld has refused it, or another content for what people ask for still.
  [[nodiscard]] bool refuses(const Rendered& wanted) const;
  /// A content to go back to.
  [[nodiscard]] bool can_roll_back() const { return !accepted.empty() && !accepted_hash.empty(); }
  /// No content counts as refused any more; who refused (refused_by), and the partitions left out, stay.
  void forget_refusal();
  friend bool operator==(const ConfigState&, const ConfigState&) = default;
};
/// Without the files of users.
ConfigState read_config_state(const kube::Object* config_map);
/// With them, where they are known. Where their copies are gone or were edited, nothing is known of either content.
/// `copies`: the ConfigMap that is projected; `accepted`: the other one.
ConfigState read_config_state(const kube::Object* config_map, const kube::Object* copies, const kube::Object* accepted);
ConfigState read_config_state(const Observed& observed);
/// Writes data and annotations into the ConfigMap that is to be applied: all but the files of users.
void write_config_state(const ConfigState& state, core::Json& config_map);
/// And these, of one content, into another one.
void write_file_copies(const std::map<std::string, std::string>& content, core::Json& config_map);
/// The files of users are known that belong to this content.
bool knows_files(const std::map<std::string, std::string>& content);
/// That belong to each of them.
bool knows_files(const ConfigState& state);
/// There are any, in one of them.
bool has_file_copies(const ConfigState& state);
/// What was accepted, where its files of users are others than those that are offered, and need a ConfigMap of their own;
/// empty.
std::map<std::string, std::string> accepted_apart(const ConfigState& state);
/// One that is offered, and is text; null: there is none.
const std::string* file_copy(const ConfigState& state, std::string_view file);

/// What is known of slurmctld.
struct SlurmctldFacts {
  std::optional<std::string> loaded;   ///< The hash it says it runs with; nullopt when unknown.
  std::optional<std::string> refusal;  ///< Its words about what is offered.
  std::string made_of;                 ///< A digest of what it was made of (image, volumes ...); "" when unknown.
  bool ready = false;                  ///< Its probes say that it is up.
  core::WallTime now{};
  std::string key{};                     ///< The digest of the auth/slurm key that it has; "" when it is not up.
  std::string made_with{};               ///< Of the key that its pod was made with.
  bool ran = false;                      ///< See has_run.
  std::optional<std::string> release{};  ///< By the tag of its image; nullopt when it is not up, "" when that tells none.
  std::string pod{};                     ///< The uid of its pod, where its state goes with that; "" when it is not up.
  bool fails = false;                    ///< It ends again and again when it starts with what is offered.
  bool failed_before = false;            ///< It fails, and did before it had what is offered: that is not judged by it.
};
SlurmctldFacts read_slurmctld(const Observed& observed, const ConfigState& state);

/// When the refused content, or the next partition that was refused, is offered once more: what was wrong may have been mended
/// elsewhere (a name that DNS did not know, a node that had not registered). nullopt: not by time.
std::optional<core::WallTime> next_try(const ConfigState& state);

/// What users want, with what the state leaves out of it.
using Render = std::function<Rendered(const ConfigState&)>;
/// What the ConfigMap should hold next.
ConfigState next_config_state(const ConfigState& now, const Render& render, const SlurmctldFacts& slurmctld);

/// The hash of the configuration that slurmctld has loaded; nullopt when Slurm did not say (lately).
std::optional<std::string> loaded_config_hash(const Observed& observed);

/// slurmctld's words when what is offered was refused: by a reconfigure, or by never getting up with it.
std::optional<std::string> find_refusal(const Observed& observed, const ConfigState& state);

/// True when slurmctld does not get up, and is offered something else than when it was first seen to fail: the kubelet waits
/// longer before each start, up to five minutes, and a new pod starts at once.
bool restart_crashed(const Observed& observed, const ConfigState& state);

/// Of steps that reconfigure slurmctld, which are told apart by what for.
inline const plan::StepId kReconfigure{"reconfigure"};
/// slurmctld has refused the configuration.
bool refused(const plan::Outcome* outcome);
/// Slurm has answered, and lately.
bool answers(const Observed& observed);
/// slurmctld's pod that runs; null: there is none.
const kube::PodRecord* running_pod(const Observed& observed);
/// From the try of that number to the next: doubled with each.
core::Duration wait_of_try(int count, core::Duration first, core::Duration longest);
/// slurmctld's pod runs, and it does not end again and again.
bool runs(const Observed& observed);

/// The outcomes without slurmctld's refusals, of which the rollout itself tells once they are settled, and without jobs that
/// are starting, which are waited for.
plan::Outcomes without_refusals(plan::Outcomes outcomes);

/// slurmctld has run: it was accepted or up with something, or has answered, or a worker has been with it. Jobs may wait there.
bool has_run(const Observed& observed, const ConfigState& state);
/// slurmctld ends again and again.
bool slurmctld_crashes(const Observed& observed);
/// slurmctld has run in the pod that there is. One that is busy, or whose Kubernetes node does not answer, is not ready, and
/// has its state all the same; one that crashes may need another template to come up.
bool has_state(const Observed& observed);

/// When slurmctld last answered the reconfigure that loaded what its pod was refreshed for; nullopt: not known (any more).
std::optional<core::MonoTime> reconfigured_at(const Observed& observed);
/// Keeps that known for the next pass.
void remember_reconfigure(const Observed& observed, plan::Plan& plan);

/// slurmctld runs with what is offered, and nothing else is in its volume, for all that is known.
bool holds_offered(const Observed& observed, const ConfigState& state);

/// slurmctld is up, and runs with another configuration than what is offered.
bool needs_load(const Observed& observed, const ConfigState& state);

/// True while a running slurmctld has yet to load what is offered.
bool awaits_load(const Observed& observed, const ConfigState& state);

/// The step that makes the kubelet refresh the volume at once when slurmctld's own scripts have changed. `state`: as it stands.
std::optional<plan::Step> script_refresh(const Observed& observed, const ConfigState& state);

/// Adds a step that makes the pod remember with which content it was first seen to fail. `state`: as it stands.
void add_crash_mark(const Observed& observed, const ConfigState& state, plan::Plan& plan);

/// Adds the steps that bring `state` (as it stands) into slurmctld, unless it lacks what is in `wanted` for jobs.
void add_load_steps(const Observed& observed, const ConfigState& state, const Rendered& wanted, plan::Plan& plan);

}  // namespace op::controller
