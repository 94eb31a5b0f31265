// What the charm `slurmctld` decides in each hook: which partitions slurmctld must have, and what each application `slurmd`
// gets to know. Pure.
//
// Only the leader changes Slurm and what Juju has. A new leader takes over from the databags, the labels of the secrets, and
// the pool file. Every unit notes which units of slurmd have departed.
//
// slurmctld ends the jobs of a partition that is removed. So when a relation ends, the partition first takes no new jobs. A
// later hook removes its lines if slurmctld has loaded that and no job is left there. The secret of the relation goes last.
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

/// A relation to an application slurmd, without one that ends with this event.
struct ComputeRelation {
  std::string id, app;
  Databag theirs{};     ///< What slurmd has published.
  Databag published{};  ///< What our application has published.
};

/// What the charm must know in its next hook: charm-slurmctld.json.
struct ControllerMemory {
  std::string accepted{};  ///< The pool file with which slurmctld runs; "": it is not known.
  std::string refused{};   ///< The pool file that it has refused; "": none.
  std::string reason{};    ///< Why.
  /// Maps the ids of relations to their applications, because Juju may not tell the name any more when the relation ends.
  std::map<std::string, std::string> relations{};
  /// Maps the applications whose partitions are being removed to the ids of their relations.
  std::map<std::string, std::string> removing{};
  /// Maps the units of slurmd that have departed, and whose records Slurm may still have, to the ids of their relations.
  std::map<std::string, std::string> departed{};
  /// Maps those whose slurmds are silent to when that was first seen, in milliseconds of the clock that never jumps.
  std::map<std::string, std::int64_t> silent{};
  /// Maps those whose records Slurm does not have to when that was first seen, by the same clock.
  std::map<std::string, std::int64_t> absent{};
  friend bool operator==(const ControllerMemory&, const ControllerMemory&) = default;
};
[[nodiscard]] core::Json to_json(const ControllerMemory& memory);
[[nodiscard]] core::Result<ControllerMemory> controller_memory_from(const core::Json& json);

/// A slurmctld of slurm.conf.
struct Slurmctld {
  std::string name;     ///< As in SlurmctldHost.
  std::string address;  ///< "host:port", for slurmd's --conf-server.
  bool up = false;
};
/// Returns the slurmctlds of slurm.conf(5), the primary first, from the text of the file and of those that it includes, and
/// from what `scontrol ping` prints. Error: kInvalid if the file lacks something.
[[nodiscard]] core::Result<std::vector<Slurmctld>> slurmctlds_of(std::string_view slurm_conf, std::string_view ping);
/// Returns what has to be set in slurm.conf before nodes can register by themselves, in one line; "": nothing.
[[nodiscard]] std::string missing_in(std::string_view slurm_conf);
/// Returns the pools in a pool file. One whose partition has State=DRAIN is being removed.
[[nodiscard]] std::map<std::string, Pool> pools_in(std::string_view pool_file);

// --- The partitions ---

struct PartitionsSeen {
  Event event;
  std::vector<ComputeRelation> relations{};
  std::set<std::string> ended{};  ///< The ids of relations that have ended and that Juju lists still.
  /// The pool file. nullopt: there is none.
  std::optional<std::string> file{};
  std::optional<std::string> loaded{};  ///< The hash of the file with which slurmctld runs; "": none. nullopt: it does not run.
  /// The jobs that run or wait in the partitions of closed_in(). Of one that is missing, nothing is known.
  std::map<std::string, std::vector<std::string>> jobs{};
  ControllerMemory memory{};
};
struct PartitionsPlan {
  std::string text{};                   ///< The pool file, as it must be.
  bool write = false;                   ///< The file has another content.
  bool reconfigure = false;             ///< slurmctld runs with another one.
  ControllerMemory memory{};            ///< As it must be stored before the file is written.
  std::vector<std::string> problems{};  ///< Why an application has no partition, or not the one it asks for: one line each.
  std::vector<std::string> waits{};     ///< What the removal of a partition waits for: one line each.
};
/// Returns the partitions in the pool file that take no new jobs and whose application has no relation.
[[nodiscard]] std::set<std::string> closed_in(const PartitionsSeen& seen);
/// While slurmctld does not run, the file is left as it is. Error: it is somebody else's.
[[nodiscard]] core::Result<PartitionsPlan> plan_partitions(const PartitionsSeen& seen);

/// Reports whether the words of a `scontrol reconfigure` that failed say that slurmctld has kept the former file, or was not
/// asked. After a lost answer it may run with the new one.
[[nodiscard]] bool tells_refusal(std::string_view said);

// --- Units that are gone ---

// A unit that is removed by force, or with a machine that is gone, runs no hook, and leaves its record in Slurm. The leader
// deletes it by the rules for a host that is dead (enlist/rules/leave.hpp).

/// Notes the unit that departs with this event.
void note_departure(const Event& event, ControllerMemory& memory);
/// Forgets the units that are to stay: those that are in their relation, and those whose application has another relation now.
/// `units`: by the id of the relation. Juju may list there the unit that departs with this event.
void forget_staying(const Event& event, const std::vector<ComputeRelation>& relations,
                    const std::map<std::string, std::vector<std::string>>& units, ControllerMemory& memory);
/// Returns for how long the slurmd of a unit that has departed has been silent; nullopt: it is not. Notes since when. `record`:
/// Slurm's record of the node; nullopt: Slurm does not tell.
[[nodiscard]] std::optional<core::Duration> silent_for(const std::string& unit, const std::optional<slurm::Node>& record,
                                                       core::MonoTime now, ControllerMemory& memory);
/// Reports whether Slurm has lacked the record of a departed unit for so long that slurmctld has saved its deletion
/// (kSavedAfter in enlist/rules/leave.hpp). Notes since when. `lacks`: it does so now.
[[nodiscard]] bool is_forgotten(const std::string& unit, bool lacks, core::MonoTime now, ControllerMemory& memory);

// --- What the applications get ---

struct SharesSeen {
  std::vector<ComputeRelation> relations{};
  /// Maps the ids of relations, also of those that are gone, to the secrets with their keys.
  std::map<std::string, std::string> secrets{};
  std::set<std::string> outdated{};               ///< The secrets that have another key than slurmctld.
  std::string file{};                             ///< The pool file with which slurmctld runs; "": not known.
  std::map<std::string, std::string> removing{};  ///< ControllerMemory::removing.
  std::vector<Slurmctld> slurmctlds{};
};
struct Share {
  std::string relation;
  std::string secret{};  ///< "": it must be made, and granted.
  bool renew = false;    ///< The secret must get the key of now.
  std::vector<std::string> controllers{};
  bool publish = false;  ///< The databag must be written.
};
struct SharesPlan {
  std::vector<Share> shares{};
  std::vector<std::string> remove{};  ///< Secrets of relations that are gone.
};
[[nodiscard]] SharesPlan plan_shares(const SharesSeen& seen);

/// Returns the label of the secret of a relation, and the relation of a label; "": it is not a label of ours.
[[nodiscard]] std::string label_of(std::string_view relation);
[[nodiscard]] std::string relation_of(std::string_view label);

}  // namespace enlist::juju
