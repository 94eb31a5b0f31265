// Loads a changed configuration into slurmctld, and rolls it back if slurmctld refuses it.
//
// The ConfigMap "X-config" stores the state of the rollout, so that any process can continue at any time:
//
// clang-format off
//   data: slurm.conf, cgroup.conf, topology.yaml      the offered content, which the kubelet projects into the pod
//   data: accepted.slurm.conf ...                     the last loaded content, if it is not the offered one (never projected)
//   annotations: slurm-config-hash                    hash of the offered content
//                accepted-config-hash                 hash of the last content that slurmctld loaded
//                refused-config-hash, refused-reason  hash of the refused content, and slurmctld's error
//                asked-hash, refused-asked-hash       hashes of the users' requests behind the offered and refused content
//                refused-by                           digest of the pod template of the slurmctld that refused the content
//                refused-at, refusals                 when the content was last refused, and how often it was refused
//                left-out-partitions                  partitions that were refused, or might be the cause of a refusal
//                slurm-key-hash                       hash of the auth/slurm key with which slurmctld was last up
//                made-with-slurm-key-hash             hash of the key with which slurmctld's pod was made, if it is another
//                slurmctld-release                    release of the slurmctld that was last up, from its image
//                cluster-numbers-differ               see cluster_number.hpp
//                served-by                            uid of the pod that was last up, if the state is lost with the pod
//                slurmctld-ran                        slurmctld has run; set only if no other annotation shows it
//                scripts-hash                         hash of the scripts that slurmctld itself runs
//                starting-at                          when slurmctld was made to load the content while workers were starting
//                places-given-until, places-due       see places.hpp
//                held-since                           when a reconfigure or restart began to wait for starting jobs
//                cut-short-jobs                       jobs that were starting when the wait ended, and the time of its end
//                data-hash                            hash of the data. If it differs, somebody edited the data
//                files-hash, accepted-files-hash      hashes of the user's files of the offered and the accepted content
//
// Users' files (from configFileRefs, script refs and jwksKeyRef) belong to slurm.conf: when slurmctld starts, it must find the
// set of files that it last accepted, also after the users' ConfigMaps have changed. The ConfigMap "X-config-files" has copies
// of the offered files and is projected into the pod. "X-config-files-accepted" has copies of the accepted files, if they
// differ. The operator finds copies by their digests, because the three ConfigMaps are not written at once. Copies are written
// before "X-config" refers to them. Accepted copies are deleted only when "X-config" no longer refers to them.
//
// The state machine is in slurm/rollout/rollout.hpp. The operator adds:
//
// refused, and NodeSets' partitions differ from the accepted ones
//                                    -> offer the content without these partitions. Once this content is accepted, add the
//                                       partitions one at a time. A partition that is refused alone is the cause: leave it
//                                       out, and try it again after the same pauses as refused content
// offered != loaded                  -> make the kubelet refresh the volume before each reconfigure
// clang-format on
//
// The kubelet refreshes a ConfigMap volume at once when an annotation of the pod changes, but it does not report when it has
// done so. A reconfigure before the refresh loads the old content again. So the operator sets the annotation, waits,
// reconfigures, and checks what slurmctld has loaded. If slurmctld has loaded the old content, the operator tries again with a
// wait that is twice as long.
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
#include "slurm/rollout/rollout.hpp"

namespace op::controller {

inline constexpr const char* kNotLoaded = "slurmctld has not loaded the configuration yet";
/// If slurmctld exits when it starts with the offered content, the reason of the refusal (refused_reason) begins with this
/// text.
inline constexpr const char* kEndsWithIt = "slurmctld ends when it starts with it";

/// In maps of files, the name of a user's file has this prefix, and the name of a binary file (in base64) has the prefix twice.
/// An entry whose name is only the prefix means that the users' files are known. The set of known files can be empty.
inline constexpr std::string_view kUsers = "/";

using slurm::rollout::kReconfigure;
using slurm::rollout::refused;
using slurm::rollout::wait_of_try;

/// The state of the rollout, as stored in the ConfigMaps. Fractions of a second are dropped from all times.
struct ConfigState : slurm::rollout::State {
  LeftOuts left_out;
  std::string scripts_hash;        ///< Hash of slurmctld's own scripts at the last request to the kubelet to refresh them.
  std::string served_key;          ///< Digest of the auth/slurm key with which slurmctld was last up.
  std::string served_made_with{};  ///< The key digest in the pod of the slurmctld that was last up, if it is not served_key.
  std::string served_by{};  ///< The uid of the pod that was last up, if the state is lost with that pod. "": the state stays.
  std::string served_release{};  ///< The release in the image tag of the slurmctld that was last up. "": the tag shows none.
  std::string numbers_differ{};  ///< See cluster_number.hpp: "OURS THEIRS POD-UID [passed]".
  std::optional<core::WallTime> held_since{};    ///< Since when a reconfigure or restart waits: see prologs.hpp.
  std::optional<core::WallTime> cut_short_at{};  ///< When the wait for the jobs in `cut_short` ended.
  std::set<std::int64_t> cut_short{};
  std::optional<core::WallTime> starting_at{};  ///< When slurmctld loaded content while workers started: see starting.hpp.
  std::optional<Places> places{};               ///< Which workers have their places: see places.hpp.
  bool ran = false;                             ///< slurmctld has run; set only if no other member shows it: see has_run().
  /// Returns the recorded refusal of the partition with exactly this config, or null if slurmctld has not refused it.
  [[nodiscard]] const LeftOut* known_against(std::string_view partition, std::string_view config) const;
  [[nodiscard]] bool leaves_out(std::string_view partition, std::string_view config) const;
  /// True if a refused partition is offered once more while the rest of the content is as accepted.
  [[nodiscard]] bool tries_partition() const;
  friend bool operator==(const ConfigState&, const ConfigState&) = default;
};
/// Reads the state without the users' files.
ConfigState read_config_state(const kube::Object* config_map);
/// Reads the state with the users' files, if they are known. If a copy is missing or edited, both the offered and the accepted
/// files are unknown. `copies`: the ConfigMap that is projected into the pod. `accepted`: the ConfigMap with the accepted
/// copies.
ConfigState read_config_state(const kube::Object* config_map, const kube::Object* copies, const kube::Object* accepted);
ConfigState read_config_state(const Observed& observed);
/// Writes data and annotations of the ConfigMap "X-config", without the users' files.
void write_config_state(const ConfigState& state, core::Json& config_map);
/// Writes the users' files of `content` into a ConfigMap of copies.
void write_file_copies(const std::map<std::string, std::string>& content, core::Json& config_map);
/// True if the users' files of `content` are known.
bool knows_files(const std::map<std::string, std::string>& content);
/// True if the users' files of the offered and of the accepted content are known.
bool knows_files(const ConfigState& state);
/// True if the offered or the accepted content has users' files.
bool has_file_copies(const ConfigState& state);
/// Returns the accepted content if its users' files differ from the offered files, so that the accepted files need a ConfigMap
/// of their own. Otherwise returns an empty map.
std::map<std::string, std::string> accepted_apart(const ConfigState& state);
/// Returns the offered copy of a text file, or null.
const std::string* file_copy(const ConfigState& state, std::string_view file);

/// The state of slurmctld.
struct SlurmctldFacts {
  std::optional<std::string> loaded;   ///< The hash of the loaded configuration, as slurmctld reports it. nullopt: unknown.
  std::optional<std::string> refusal;  ///< slurmctld's error if it refused the offered content.
  std::string made_of;                 ///< Digest of the pod template (image, volumes ...). "": unknown.
  bool ready = false;                  ///< The pod is ready.
  core::WallTime now{};
  std::string key{};                     ///< Digest of the auth/slurm key. "": slurmctld is not up, or the key rotates.
  std::string made_with{};               ///< Digest of the key with which the pod was made.
  bool ran = false;                      ///< slurmctld has run: see has_run().
  std::optional<std::string> release{};  ///< The release in the image tag. nullopt: slurmctld is not up. "": the tag has none.
  std::string pod{};                     ///< The uid of the pod, if the state is lost with the pod. "": slurmctld is not up.
  bool fails = false;                    ///< slurmctld crashes repeatedly when it starts with the offered content.
  /// slurmctld crashed before it had the offered content, so the crash is no evidence against that content.
  bool failed_before = false;
  /// Returns the facts for the state machine.
  [[nodiscard]] slurm::rollout::Slurmctld for_rollout() const {
    return {loaded, refusal, made_of, ready, now, fails || failed_before};
  }
};
SlurmctldFacts read_slurmctld(const Observed& observed, const ConfigState& state);

/// Returns when the refused content or the next refused partition is offered again. nullopt: nothing is scheduled to be offered
/// again.
std::optional<core::WallTime> next_try(const ConfigState& state);

/// Renders the configuration that users want, without the partitions that the state leaves out.
using Render = std::function<Rendered(const ConfigState&)>;
/// Returns the state to store next, from the stored state (`now`), the wanted configuration, and what slurmctld reports.
ConfigState next_config_state(const ConfigState& now, const Render& render, const SlurmctldFacts& slurmctld);

/// Returns the hash of the configuration that slurmctld has loaded. nullopt: Slurm does not answer.
std::optional<std::string> loaded_config_hash(const Observed& observed);

/// Returns slurmctld's error if slurmctld refused the offered content at a reconfigure, or does not start with that content.
std::optional<std::string> find_refusal(const Observed& observed, const ConfigState& state);

/// True if slurmctld's pod should be deleted: slurmctld crashes, and the offered content has changed since slurmctld was first
/// seen to crash. A new pod starts at once, while the kubelet waits up to five minutes before each restart of a container.
/// False if slurmctld's state would be lost with its pod.
bool restart_crashed(const Observed& observed, const ConfigState& state);

/// True if slurmctld answers through slurmrestd.
bool answers(const Observed& observed);
/// Returns the running pod of slurmctld, or null.
const kube::PodRecord* running_pod(const Observed& observed);
/// True if slurmctld's pod runs and does not crash repeatedly.
bool runs(const Observed& observed);

/// Returns the outcomes without two kinds of failures: refusals by slurmctld, because the rollout reports them once they are
/// final, and failures of steps that found starting jobs.
plan::Outcomes without_refusals(plan::Outcomes outcomes);

/// True if slurmctld has run: it has accepted a configuration, was up, has answered, or has had a worker. It might have pending
/// jobs in this case.
bool has_run(const Observed& observed, const ConfigState& state);
/// True if slurmctld crashes repeatedly.
bool slurmctld_crashes(const Observed& observed);
/// True if slurmctld has run in its present pod. A slurmctld that is not ready, because it is busy or because its Kubernetes
/// node does not respond, still has its state. False if slurmctld crashes, because it might need another template.
bool has_state(const Observed& observed);

/// Returns when slurmctld last answered the reconfigure that followed the last refresh of its volume. nullopt: unknown.
std::optional<core::MonoTime> reconfigured_at(const Observed& observed);
/// Retains the outcome of the reconfigure after the last refresh, so that reconfigured_at() can read this outcome in the next
/// pass.
void remember_reconfigure(const Observed& observed, plan::Plan& plan);

/// True if slurmctld runs with the offered content and its volume is not known to have other content.
bool holds_offered(const Observed& observed, const ConfigState& state);

/// True if slurmctld runs with content other than the offered content. False if slurmctld refused the offered content and there
/// is no accepted content to return to.
bool needs_load(const Observed& observed, const ConfigState& state);

/// True if slurmctld runs and has not loaded the offered content yet. False if slurmctld refused this content, if a refused
/// partition is tried once more, or if there is no RestApi.
bool awaits_load(const Observed& observed, const ConfigState& state);

/// Returns the step that makes the kubelet refresh the volume at once after a change of the scripts that slurmctld itself runs.
/// `state`: the stored state.
std::optional<plan::Step> script_refresh(const Observed& observed, const ConfigState& state);

/// Adds a step that records on slurmctld's pod with which content slurmctld was first seen to crash. `state`: the stored state.
void add_crash_mark(const Observed& observed, const ConfigState& state, plan::Plan& plan);

/// Adds the steps that make slurmctld load `state`, the stored state. Adds none if `state` lacks an item that `wanted` retains
/// for jobs.
void add_load_steps(const Observed& observed, const ConfigState& state, const Rendered& wanted, plan::Plan& plan);

}  // namespace op::controller
