// Replaces the key of auth/slurm while jobs run, so that at any time every daemon can verify what any other one signs. Pure.
//
//             keys in the file   signs   ends when
//   Spread    old, new           old     all daemons have loaded the file
//   Sign      old, new           new     all daemons have loaded the file, and what the old key has signed has expired
//   Retire    new                new     all daemons have loaded the file
//   Return    old                old     all daemons have loaded the file
// Return is only for a rotation that an administrator has abandoned, or that slurmctld has refused.
//
// In each phase, the coordinator writes the key file. The agents fetch the file and reload slurmd. When all agents, and the
// other holders of the key, have loaded the file, slurmctld is made to load it: the pool file gets the revision of the key
// file, so that the partition that marks the loaded pool file (enlist/rules/pool_file.hpp) proves that slurmctld has started
// after the key file was written.
//
// The key file contains a note with the phase and the time at which the phase began. So a phase that begins again, after
// slurmctld refused Sign or the rotation was abandoned, has another revision, and files that daemons have loaded before do not
// count. If somebody replaces the file of a phase, the phase begins again as well.
//
// The order in which daemons load the file of a phase does not matter:
//   Spread    All daemons sign with the old key, which all have.
//   Sign      Some daemons sign with the old key, others with the new one. All have both since Spread.
//   Retire    All daemons sign with the new key since Sign, and all have it since Spread.
//   Return    From Spread: as in Spread. From Sign, the rotation first goes back to Spread, where all have both keys. It leaves
//             Spread when all have loaded that file, and what the new key has signed has expired.
// So a daemon that anybody restarts at any time reads a file that works. slurmctld loads the file last, because its reconfigure
// makes all slurmds start again, and a slurmd that is just starting can miss the signal of its agent.
//
// A slurmstepd that manages the steps of a job (--stepmgr) uses the keys that it read when the job began. So the next phase
// waits for such jobs that began before the file of this phase was loaded everywhere. All other processes of jobs have no key:
// they ask slurmd's socket for each message.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/result.hpp"
#include "enlist/rules/key_file.hpp"
#include "enlist/rules/model.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace enlist {

enum class RotationPhase { kSpread, kSign, kRetire, kReturn, kEnded };
[[nodiscard]] std::string_view to_string(RotationPhase phase);  ///< Returns the name: "Spread".

/// The state of a rotation. The coordinator stores it before each act that depends on it.
struct Rotation {
  RotationPhase phase = RotationPhase::kSpread;
  std::vector<KeyId> old_keys{};
  std::string old_signer;
  KeyId fresh{};  ///< The new key. Its print is "" until the coordinator has read a file with this key.
  core::WallTime began{};
  core::WallTime since{};        ///< When this phase began: later than every earlier phase, even if the clock was set back.
  std::string revision{};        ///< The revision of the key file of this phase. "": the file was not read yet.
  std::string mark{};            ///< The revision of the key file that the pool file contains, for slurmctld to load.
  std::string former_mark{};     ///< `mark` before the rotation.
  core::WallTime settled{};      ///< When all daemons had loaded the file of this phase, by slurmctld's clock; 0: not yet.
  bool signed_anew = false;      ///< The phase Sign has begun, so daemons have possibly signed with the new key.
  bool abandoned = false;        ///< An administrator has abandoned the rotation.
  core::Duration lifetime{0};    ///< A minimum for RotationInput::lifetime, which the administrator has set.
  std::set<std::string> also{};  ///< Further hosts with the key, which the administrator has named.
  std::set<std::string> acknowledged{};   ///< Hosts for which the administrator has confirmed the load in this phase.
  std::set<std::string> without{};        ///< Nodes that the rotation does not wait for.
  std::string refusal{};                  ///< Why slurmctld last refused to load the file of a phase. "": it never has.
  int refusals = 0;                       ///< How often slurmctld has refused.
  core::WallTime refused_at{}, try_at{};  ///< When slurmctld last refused, and when the next phase is tried again.
  std::string result{};                   ///< How the rotation has ended. "": it has not.
  friend bool operator==(const Rotation&, const Rotation&) = default;
};
[[nodiscard]] core::Json to_json(const Rotation& rotation);
/// Parses a state that to_json() has written. Error: kInvalid with the member's name.
[[nodiscard]] core::Result<Rotation> rotation_from(const core::Json& json);

/// Returns the state of a rotation that begins now. `kid`: the kid of the new key. Error: kInvalid, if one of `keys` has this
/// kid.
[[nodiscard]] core::Result<Rotation> begin_rotation(const KeySet& keys, const std::string& kid, core::WallTime now);

/// A host that holds the key and has no agent of this coordinator. An administrator copies the key file to it.
struct KeyHolder {
  std::string host;
  std::string what;   ///< What the administrator has to do there after the copy: "restart slurmdbd".
  bool here = false;  ///< This is the coordinator's own host, which needs no copy.
  friend bool operator==(const KeyHolder&, const KeyHolder&) = default;
};

/// Returns `others`, and the nodes of Slurm that this coordinator has no record of.
[[nodiscard]] std::vector<KeyHolder> all_holders(std::vector<KeyHolder> others, const std::map<std::string, Node>& nodes,
                                                 const slurm::SnapshotPtr& slurm);

struct RotationInput {
  const Rotation& state;
  const core::Result<KeySet>& keys;  ///< The keys of the key file as it was last read.
  const std::map<std::string, Node>& nodes;
  std::vector<KeyHolder> others;  ///< Without the nodes that all_holders() adds.
  slurm::SnapshotPtr slurm;
  bool loaded = false;  ///< slurmctld runs with a pool file that has Rotation::mark.
  /// When and why slurmctld has refused a pool file with Rotation::mark. nullopt: it has refused none, or the pool file that it
  /// accepted last has this mark too.
  std::optional<std::pair<core::WallTime, std::string>> refused{};
  core::WallTime next_try{};                      ///< When a refused pool file is tried again.
  core::Duration lifetime{0};                     ///< How long Slurm accepts what a key has signed, by its configuration.
  std::optional<core::MonoTime> settled_since{};  ///< When this process of the coordinator first saw Rotation::settled set.
  core::WallTime now;
  core::MonoTime mono;
};

/// A host that has not loaded the key file of this phase.
struct RotationWait {
  std::string host;
  std::string why;         ///< One line for people. For a KeyHolder: KeyHolder::what.
  bool by_people = false;  ///< The rotation waits until an administrator confirms the load (--acknowledge).
  bool here = false;       ///< KeyHolder::here.
  friend bool operator==(const RotationWait&, const RotationWait&) = default;
};

struct Rotating {
  std::optional<Rotation> next{};    ///< The state to store, before anything else is done.
  std::optional<KeyChange> write{};  ///< The change to make to the key file.
  bool settled = false;              ///< All daemons have loaded the key file of this phase.
  std::vector<RotationWait> hosts{};
  std::string waits{};                         ///< What else the rotation waits for; "": nothing.
  std::string problem{};                       ///< Why the rotation cannot go on until somebody acts; "": it can.
  std::optional<core::Duration> look_again{};  ///< The result can change after this time without any event.
};

[[nodiscard]] Rotating judge_rotation(const RotationInput& input);

/// Returns the state after an administrator abandons the rotation: it goes back to the old key. If somebody else has changed
/// the key file, the rotation ends at once. Errors: kConflict (the phase is Retire, or no rotation runs); kUnavailable of
/// `keys`.
[[nodiscard]] core::Result<Rotation> abandoned(const Rotation& state, const core::Result<KeySet>& keys, core::WallTime now);

/// Returns why the rotation must wait for the node: it has jobs, can get some, or Slurm does not answer. "": it need not wait.
[[nodiscard]] std::string must_wait_for(const slurm::SnapshotPtr& slurm, const std::string& node);

}  // namespace enlist
