// What the charm `slurmd` decides in each hook: what its leader publishes, and when slurmd is started or reloaded on the unit's
// machine. Pure.
//
// Each hook plans from the current state, whatever its event is, because Juju can merge or omit events. A hook does nothing if
// nothing has changed. A hook stops a running slurmd only when Slurm no longer has its node.
//
// Folder src/enlist/juju: the charms of Juju. Uses enlist/agent, enlist/coordinator and enlist/host. The plans (compute,
// controller, data, event and leaving) include only enlist/rules and the plans of enlist/agent and enlist/coordinator.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "enlist/agent/plan.hpp"
#include "enlist/juju/data.hpp"
#include "enlist/juju/event.hpp"
#include "enlist/juju/status.hpp"

namespace enlist::juju {

/// The endpoint of the charm slurmd. Its other end is `slurmd` of the charm slurmctld.
inline constexpr const char* kComputeEndpoint = "slurmctld";

/// The name and the digest of a file with an auth key.
struct KeySeen {
  std::string file{};    ///< "slurm.key" or "slurm.jwks"; "": there is no key.
  std::string digest{};  ///< SHA-256 of the content.
  friend bool operator==(const KeySeen&, const KeySeen&) = default;
};

/// What the charm stores for its next hook, in charm-slurmd.json.
struct ComputeMemory {
  KeySeen key{};     ///< The key that the charm has written.
  KeySeen former{};  ///< The key that the charm has written to the other file before, and must remove.
  KeySeen loaded{};  ///< The key that slurmd has read. slurmd reads the same file again until it is restarted.
  /// Facts::detected when slurmd was started. While slurmd runs, other detected values are no reason to restart it.
  std::string detected{};
  bool leaving = false;    ///< The relation has ended, and the node is being taken out of Slurm.
  std::string own_conf{};  ///< Settings in --conf for this unit alone. They override the option node-config.
  /// The settings that will replace own_conf. The node is being taken out of Slurm, and registers anew with them.
  std::optional<std::string> next_conf{};
  std::string kept_by{};  ///< Somebody else's reason for a drain. The node gets it again when it registers anew.
  friend bool operator==(const ComputeMemory&, const ComputeMemory&) = default;
};
[[nodiscard]] core::Json to_json(const ComputeMemory& memory);
[[nodiscard]] core::Result<ComputeMemory> compute_memory_from(const core::Json& json);

struct ComputeSeen {
  Event event;
  bool leader = false;
  std::string partition_conf{}, node_conf{};  ///< The options partition-config and node-config.
  std::string relation{};                     ///< The id of the relation to slurmctld; "": there is no relation.
  Databag published{};                        ///< Our application's databag in the relation. Only the leader knows it.
  Databag theirs{};                           ///< The databag of slurmctld's application in the relation.
  /// The hardware that slurmd detects (Facts::detected). While slurmd runs: ComputeMemory::detected, if it is set.
  core::Result<std::string> detected = core::fail(core::ErrorCode::kUnavailable, "not read");
  core::Result<SlurmdSeen> slurmd = core::fail(core::ErrorCode::kUnavailable, "not read");
  /// The key in the secret that slurmctld has published. nullopt: slurmctld has published no secret.
  std::optional<core::Result<KeySeen>> shared_key{};
  core::Result<KeySeen> local_key = KeySeen{};  ///< The current content of the file in which the shared key belongs.
  core::Result<KeySeen> other_key = KeySeen{};  ///< The current content of the other key file.
  ComputeMemory memory{};
};

struct ComputePlan {
  std::optional<Databag> publish{};
  bool write_key = false;         ///< The shared key must be written, and the charm's key in the other file be removed.
  std::optional<Launch> start{};  ///< slurmd must be started with these arguments. They include the instance id.
  bool reload = false;
  /// Why slurmd cannot run. If this is set, the plan writes no key, and neither starts nor reloads slurmd. nullopt: it can run.
  std::optional<Status> obstacle{};
  /// Why the leader publishes nothing. slurmd can run in spite of it.
  std::optional<Status> not_published{};
};
[[nodiscard]] ComputePlan plan_compute(const ComputeSeen& seen);

/// Returns the unit's own settings after the action node-config: the former settings (none if `reset`), overridden by `words`,
/// the settings that the action gives. Error: kInvalid with the setting with which slurmd would not start.
[[nodiscard]] core::Result<std::string> own_conf(const ComputeSeen& seen, std::string_view words, bool reset);

/// What is needed to make slurmd run with other settings of its own.
struct ConfChange {
  bool stored_only = false;               ///< slurmd was not started for this unit, or the unit has no relation.
  bool anew = false;                      ///< The node must register anew, because Slurm reads most settings only then.
  std::optional<std::string> features{};  ///< The new features, which Slurm can change at once. nullopt: no change.
};
[[nodiscard]] core::Result<ConfChange> conf_change(const ComputeSeen& seen, const std::string& own_conf);

/// Reports whether slurmd was started for this unit.
[[nodiscard]] bool is_ours(const Event& event, const SlurmdSeen& slurmd);

/// Returns the value of --instance-id for this unit's slurmd. It differs from that of other units with the same node name.
[[nodiscard]] std::string instance_of(const Event& event);

/// The node as `scontrol show node --json` shows it.
struct Registered {
  std::string instance, state, reason;
  std::vector<std::string> partitions{};
  bool invalid = false;  ///< INVALID_REG
  friend bool operator==(const Registered&, const Registered&) = default;
};
/// Parses the output of `scontrol show node --json`. nullopt: Slurm has no such node.
[[nodiscard]] core::Result<std::optional<Registered>> registered_from(const core::Json& json);

/// Returns the status of a unit whose slurmd should run. `record`: an error if Slurm does not answer. `waited`: slurmd had
/// enough time to register, so a missing record is a fault.
[[nodiscard]] Status status_of(const Event& event, const core::Result<SlurmdSeen>& slurmd,
                               const core::Result<std::optional<Registered>>& record, bool waited);

}  // namespace enlist::juju
