// What the charm `slurmd` decides in each hook: what its leader publishes, and when slurmd is started or reloaded on the unit's
// machine. Pure.
//
// A hook computes all of it anew from what is known, whatever the event, because Juju may join events or leave them out. Where
// nothing has changed, it does nothing. slurmd is stopped only when its node is out of Slurm.
//
// Folder src/enlist/juju: the charms of Juju. Uses enlist/agent, enlist/coordinator and enlist/host. The plans see the rules,
// and the plans of these, only.
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

/// A key, without its content.
struct KeySeen {
  std::string file{};    ///< "slurm.key" or "slurm.jwks"; "": there is none.
  std::string digest{};  ///< SHA-256 of the content.
  friend bool operator==(const KeySeen&, const KeySeen&) = default;
};

/// What the charm must know in its next hook: charm-slurmd.json.
struct ComputeMemory {
  KeySeen key{};     ///< The key that the charm has written.
  KeySeen former{};  ///< The one that it has written before, in the other file, and that is to be removed.
  KeySeen loaded{};  ///< The key that slurmd has read. It reads no other file until it is restarted.
  /// Facts::detected when slurmd was started. While it runs, other readings are no reason to restart it.
  std::string detected{};
  bool leaving = false;    ///< The relation has ended, and the node is being taken out of Slurm.
  std::string own_conf{};  ///< Words of --conf for this unit alone. They win over the option node-config.
  /// Those that the unit is to have instead. Its node is being taken out of Slurm for them, and registers anew.
  std::optional<std::string> next_conf{};
  std::string kept_by{};  ///< The reason with which somebody else keeps the node out of service, until it has registered anew.
  friend bool operator==(const ComputeMemory&, const ComputeMemory&) = default;
};
[[nodiscard]] core::Json to_json(const ComputeMemory& memory);
[[nodiscard]] core::Result<ComputeMemory> compute_memory_from(const core::Json& json);

struct ComputeSeen {
  Event event;
  bool leader = false;
  std::string partition_conf{}, node_conf{};  ///< The options partition-config and node-config.
  std::string relation{};                     ///< The relation to slurmctld; "": there is none.
  Databag published{};                        ///< What our application has published there. Known to the leader only.
  Databag theirs{};                           ///< What slurmctld has published there.
  /// What slurmd detects of the hardware (Facts::detected); if it runs, what it detected then.
  core::Result<std::string> detected = core::fail(core::ErrorCode::kUnavailable, "not read");
  core::Result<SlurmdSeen> slurmd = core::fail(core::ErrorCode::kUnavailable, "not read");
  /// The key in the secret that slurmctld names. nullopt: it names none.
  std::optional<core::Result<KeySeen>> shared_key{};
  core::Result<KeySeen> local_key = KeySeen{};  ///< The key that is now in the file of the shared key.
  core::Result<KeySeen> other_key = KeySeen{};  ///< That in the other one of the two files.
  ComputeMemory memory{};
};

struct ComputePlan {
  std::optional<Databag> publish{};
  bool write_key = false;  ///< The key must be written, and the one that the charm has written in the other file be removed.
  std::optional<Launch> start{};  ///< With its instance id.
  bool reload = false;
  /// What keeps the unit from working, before anything of the plan is done. nullopt: nothing does.
  std::optional<Status> obstacle{};
  /// Why the leader publishes nothing. It does not keep slurmd from running.
  std::optional<Status> not_published{};
};
[[nodiscard]] ComputePlan plan_compute(const ComputeSeen& seen);

/// Returns the words that the unit is to have of its own, after the action node-config. `words`: those that the action gives,
/// beside those that the unit has unless `reset`. Error: kInvalid with the word with which slurmd would not start.
[[nodiscard]] core::Result<std::string> own_conf(const ComputeSeen& seen, std::string_view words, bool reset);

/// What has to be done for slurmd to run with other words of its own.
struct ConfChange {
  bool stored_only = false;               ///< slurmd was not started for this unit, or is to leave.
  bool anew = false;                      ///< The node must register anew, because Slurm reads most words only then.
  std::optional<std::string> features{};  ///< Slurm takes them at once.
};
[[nodiscard]] core::Result<ConfChange> conf_change(const ComputeSeen& seen, const std::string& own_conf);

/// Reports whether slurmd was started for this unit.
[[nodiscard]] bool is_ours(const Event& event, const SlurmdSeen& slurmd);

/// Returns how slurmd of this unit is told apart from others of the same name.
[[nodiscard]] std::string instance_of(const Event& event);

/// The node as `scontrol show node --json` shows it.
struct Registered {
  std::string instance, state, reason;
  std::vector<std::string> partitions{};
  bool invalid = false;  ///< INVALID_REG
  friend bool operator==(const Registered&, const Registered&) = default;
};
/// nullopt: Slurm has no such node.
[[nodiscard]] core::Result<std::optional<Registered>> registered_from(const core::Json& json);

/// Returns the status of a unit whose slurmd was to run. `record`: an error if Slurm does not tell. `waited`: Slurm was asked
/// for the time in which it takes a node.
[[nodiscard]] Status status_of(const Event& event, const core::Result<SlurmdSeen>& slurmd,
                               const core::Result<std::optional<Registered>>& record, bool waited);

}  // namespace enlist::juju
