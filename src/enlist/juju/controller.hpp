// What the charm `slurmctld` decides in each hook: which partitions slurmctld must have, and what is published to each
// application `slurmd`. Pure.
//
// Only the leader changes Slurm, the databags and the secrets. A new leader reads the state from the databags, the labels of
// the secrets, and the pool file. Every unit stores which units of slurmd have departed.
//
// slurmctld ends the jobs of a partition that is removed. So when a relation ends, its partition is first set to State=DRAIN. A
// later hook removes the lines of the partition, if slurmctld has loaded this state and the partition has no job any more. The
// secret of the relation is removed last.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/result.hpp"
#include "enlist/juju/data.hpp"
#include "enlist/juju/event.hpp"
#include "enlist/juju/status.hpp"
#include "enlist/rules/model.hpp"
#include "slurm/model.hpp"

namespace enlist::juju {

/// The endpoint of the charm slurmctld.
inline constexpr const char* kControllerEndpoint = "slurmd";

/// A relation to an application of the charm slurmd. A relation that ends with this event is not included.
struct ComputeRelation {
  std::string id, app;
  Databag theirs{};     ///< The databag of the application slurmd.
  Databag published{};  ///< The databag of our application.
};

/// What the charm stores for its next hook, in charm-slurmctld.json.
struct ControllerMemory {
  std::string accepted{};  ///< The text of the pool file with which slurmctld runs; "": not known.
  std::string refused{};   ///< The text of the pool file that slurmctld has refused; "": none.
  std::string reason{};    ///< Why slurmctld has refused that file.
  /// Maps the ids of relations to their applications. When a relation ends, Juju sometimes no longer names its application.
  std::map<std::string, std::string> relations{};
  /// Maps the applications whose partitions are being removed to the ids of their relations.
  std::map<std::string, std::string> removing{};
  /// Maps the units of slurmd that have departed, and whose records Slurm might still have, to the ids of their relations.
  std::map<std::string, std::string> departed{};
  /// Maps departed units whose slurmd is silent to the time when that was first seen, in milliseconds of the monotonic clock.
  std::map<std::string, std::int64_t> silent{};
  /// Maps departed units without a record in Slurm to the time when that was first seen, by the same clock.
  std::map<std::string, std::int64_t> absent{};
  friend bool operator==(const ControllerMemory&, const ControllerMemory&) = default;
};
[[nodiscard]] core::Json to_json(const ControllerMemory& memory);
[[nodiscard]] core::Result<ControllerMemory> controller_memory_from(const core::Json& json);

/// A slurmctld that slurm.conf names.
struct Slurmctld {
  std::string name;     ///< The name in SlurmctldHost.
  std::string address;  ///< "host:port", for slurmd's --conf-server.
  bool up = false;
};
/// Returns the slurmctlds, the primary first. `slurm_conf`: the text of slurm.conf(5) and of the files that it includes.
/// `ping`: the output of `scontrol ping`. Error: kInvalid if slurm.conf lacks ClusterName or SlurmctldHost, or names a host
/// twice.
[[nodiscard]] core::Result<std::vector<Slurmctld>> slurmctlds_of(std::string_view slurm_conf, std::string_view ping);
/// Returns the settings that slurm.conf needs before nodes can register by themselves, in one line; "": no setting is missing.
[[nodiscard]] std::string missing_in(std::string_view slurm_conf);
/// Returns the pools in a pool file. A pool whose partition has State=DRAIN is being removed.
[[nodiscard]] std::map<std::string, Pool> pools_in(std::string_view pool_file);

// --- The partitions ---

struct PartitionsSeen {
  Event event;
  std::vector<ComputeRelation> relations{};
  std::set<std::string> ended{};  ///< The ids of relations that have ended and that Juju still lists.
  /// The text of the pool file. nullopt: the file does not exist.
  std::optional<std::string> file{};
  std::optional<std::string> loaded{};  ///< Hash of the file that slurmctld has loaded; "": none. nullopt: unknown.
  /// The jobs that run or wait in the partitions of closed_in(). The jobs of a partition without an entry are not known.
  std::map<std::string, std::vector<std::string>> jobs{};
  ControllerMemory memory{};
};
struct PartitionsPlan {
  std::string text{};                   ///< The wanted text of the pool file.
  bool write = false;                   ///< The file must be written, because its content differs.
  bool reconfigure = false;             ///< slurmctld must be reconfigured, because it runs with another file.
  ControllerMemory memory{};            ///< Must be stored before the file is written.
  std::vector<std::string> problems{};  ///< Why an application has no partition, or one with other settings: a line each.
  std::vector<std::string> waits{};     ///< What the removal of a partition waits for: a line each.
};
/// Returns the partitions in the pool file that take no new jobs and whose application has no relation.
[[nodiscard]] std::set<std::string> closed_in(const PartitionsSeen& seen);
/// Decides on the partitions. If slurmctld does not answer, only creates a missing pool file, without partitions. Error:
/// kAlreadyExists if somebody else has written the pool file.
[[nodiscard]] core::Result<PartitionsPlan> plan_partitions(const PartitionsSeen& seen);

/// Reports whether the error output of a failed `scontrol reconfigure` shows that slurmctld still runs with the former file. If
/// not, for example after a lost answer, slurmctld possibly runs with the new file.
[[nodiscard]] bool tells_refusal(std::string_view said);

// --- Units that are gone ---

// A unit that is removed by force, or whose machine is gone, runs no hook, so its node record stays in Slurm. The leader
// deletes the record by the rules for a dead host (enlist/rules/leave.hpp).

/// Adds the unit that departs with this event to ControllerMemory::departed.
void note_departure(const Event& event, ControllerMemory& memory);
/// Removes units that stay from ControllerMemory::departed: units that are in their relation, and units whose application has
/// another relation now. `units`: the units of each relation, by its id. Juju can still list the unit that departs now.
void forget_staying(const Event& event, const std::vector<ComputeRelation>& relations,
                    const std::map<std::string, std::vector<std::string>>& units, ControllerMemory& memory);
/// Returns for how long the slurmd of a departed unit has been silent; nullopt: it is not silent, or nobody knows. Stores the
/// start of the silence in ControllerMemory::silent. `record`: Slurm's record of the node; nullopt: Slurm does not answer.
[[nodiscard]] std::optional<core::Duration> silent_for(const std::string& unit, const std::optional<slurm::Node>& record,
                                                       core::MonoTime now, ControllerMemory& memory);
/// Reports whether Slurm has lacked the record of a departed unit for so long that slurmctld has saved its deletion
/// (kSavedAfter in enlist/rules/leave.hpp). Stores the start in ControllerMemory::absent. `lacks`: Slurm lacks the record now.
[[nodiscard]] bool is_forgotten(const std::string& unit, bool lacks, core::MonoTime now, ControllerMemory& memory);

// --- What the applications get ---

struct SharesSeen {
  std::vector<ComputeRelation> relations{};
  /// Maps the ids of relations, including relations that are gone, to the ids of the secrets with their keys.
  std::map<std::string, std::string> secrets{};
  std::set<std::string> outdated{};               ///< The ids of secrets whose key differs from slurmctld's.
  std::string file{};                             ///< The text of the pool file with which slurmctld runs; "": not known.
  std::map<std::string, std::string> removing{};  ///< ControllerMemory::removing.
  std::vector<Slurmctld> slurmctlds{};
};
struct Share {
  std::string relation;
  std::string secret{};  ///< The id; "": the secret must be created and granted.
  bool renew = false;    ///< The secret must get slurmctld's current key.
  std::vector<std::string> controllers{};
  bool publish = false;  ///< The databag must be written.
};
struct SharesPlan {
  std::vector<Share> shares{};
  std::vector<std::string> remove{};  ///< The ids of secrets to remove: their relations are gone.
};
[[nodiscard]] SharesPlan plan_shares(const SharesSeen& seen);

/// Return the label of a relation's secret, and the relation to which a label belongs; "": the label is not one of this charm.
[[nodiscard]] std::string label_of(std::string_view relation);
[[nodiscard]] std::string relation_of(std::string_view label);

}  // namespace enlist::juju
