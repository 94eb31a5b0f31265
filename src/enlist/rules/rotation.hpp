// Replaces the key of auth/slurm while jobs run, so that at any time every daemon can verify what any other one signs. Pure.
//
//             keys of the file   signs   ends when
//   Spread    old, new           old     all have loaded the file
//   Sign      old, new           new     all have loaded the file, and what the old key has signed has expired
//   Retire    new                new     all have loaded the file
//   Return    old                old     all have loaded the file. A rotation that was taken back, or that slurmctld refused
//
// In each phase, the coordinator writes the file. The agents fetch it and reload slurmd. When all of them, and whoever else
// holds the key, have loaded it, slurmctld is made to load it: the pool file gets the revision of the key file, so that the
// partition that marks the loaded pool file (enlist/rules/pool_file.hpp) proves that slurmctld has started after the key file
// was written.
//
// The file has a note with the phase and the time at which it began. So a phase that is entered again, after Sign was refused
// or the rotation was taken back, has another revision, and is not proven by what somebody has loaded before. If somebody
// replaces the file of a phase, the phase begins again as well.
//
// The order in which daemons load the file of a phase does not matter:
//   Spread    All sign with the old key, which all have.
//   Sign      Some sign with the old key, others with the new one. All have both since Spread.
//   Retire    All sign with the new key since Sign, and all have it since Spread.
//   Return    From Spread: as Spread. From Sign, the rotation first goes back to Spread, where all have both. It leaves Spread
//             when all have loaded that file, and what the new key has signed has expired.
// So a daemon that is restarted at any time, by whomever, reads a file that works. slurmctld comes last, because its
// reconfigure makes slurmds start again: a slurmd that is just doing so might miss the signal of its agent.
//
// A slurmstepd that manages the steps of a job (--stepmgr) keeps the keys that it has read when the job began. Jobs that began
// before a phase was loaded everywhere are waited for before the next one. All other processes of jobs have no key: they ask
// slurmd's socket for each message.
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
[[nodiscard]] std::string_view to_string(RotationPhase phase);  ///< "Spread".

/// The state of a rotation. It is stored before the act that depends on it.
struct Rotation {
  RotationPhase phase = RotationPhase::kSpread;
  std::vector<KeyId> old_keys{};
  std::string old_signer;
  KeyId fresh{};  ///< The new key. Its print is "" until the file with it was seen.
  core::WallTime began{};
  core::WallTime since{};        ///< When this phase began. Later than any phase before, also if the clock was set back.
  std::string revision{};        ///< The revision of the file of this phase. "": it was not seen yet.
  std::string mark{};            ///< The revision of the key file that the pool file carries: slurmctld has to load it.
  std::string former_mark{};     ///< `mark` before the rotation.
  core::WallTime settled{};      ///< When all had loaded the file of this phase, by slurmctld's clock; 0: not yet.
  bool signed_anew = false;      ///< The phase Sign has begun, so the new key may have signed.
  bool abandoned = false;        ///< An administrator has taken the rotation back.
  core::Duration lifetime{0};    ///< The administrator's, if he wants a longer one than the configuration of Slurm says.
  std::set<std::string> also{};  ///< Further hosts with the key, which the administrator has named.
  std::set<std::string> acknowledged{};  ///< Hosts whose copy the administrator has confirmed in this phase.
  std::set<std::string> without{};       ///< Nodes that are not waited for.
  std::string refusal{};                 ///< Why slurmctld has last refused to load a phase. "": it has not.
  int refusals = 0;                      ///< How often.
  core::WallTime refused_at{}, try_at{};
  std::string result{};  ///< How it has ended. "": it has not.
  friend bool operator==(const Rotation&, const Rotation&) = default;
};
[[nodiscard]] core::Json to_json(const Rotation& rotation);
/// Error: kInvalid with the member's name.
[[nodiscard]] core::Result<Rotation> rotation_from(const core::Json& json);

/// Begins a rotation. `kid` is the kid of the new key, which nothing else may have. Error: kInvalid, if the keys cannot be
/// rotated.
[[nodiscard]] core::Result<Rotation> begin_rotation(const KeySet& keys, const std::string& kid, core::WallTime now);

/// A host that holds the key and has no agent of this coordinator: its administrator copies the file.
struct KeyHolder {
  std::string host;
  std::string what;   ///< What has to be done there after the file was copied: "restart slurmdbd".
  bool here = false;  ///< It is this host, which has the file.
  friend bool operator==(const KeyHolder&, const KeyHolder&) = default;
};

/// Returns the others, and the nodes that Slurm has and this coordinator has not.
[[nodiscard]] std::vector<KeyHolder> all_holders(std::vector<KeyHolder> others, const std::map<std::string, Node>& nodes,
                                                 const slurm::SnapshotPtr& slurm);

struct RotationInput {
  const Rotation& state;
  const core::Result<KeySet>& keys;  ///< The file as it was last read.
  const std::map<std::string, Node>& nodes;
  std::vector<KeyHolder> others;  ///< Without the nodes that all_holders() adds.
  slurm::SnapshotPtr slurm;
  bool loaded = false;  ///< slurmctld runs with a pool file that has Rotation::mark.
  /// slurmctld has refused a pool file with that mark at this time, and why. It has not accepted another one with that mark.
  std::optional<std::pair<core::WallTime, std::string>> refused{};
  core::WallTime next_try{};   ///< When a refused pool file is tried again.
  core::Duration lifetime{0};  ///< What a key has signed is accepted for so long, by the configuration of Slurm.
  std::optional<core::MonoTime> settled_since{};  ///< When this process has first seen all have loaded the file of this phase.
  core::WallTime now;
  core::MonoTime mono;
};

/// A host that has not loaded the file of this phase.
struct RotationWait {
  std::string host;
  std::string why;         ///< One line for people. Of a KeyHolder: what has to be done there.
  bool by_people = false;  ///< It is waited for an administrator's --acknowledge.
  bool here = false;       ///< KeyHolder::here.
  friend bool operator==(const RotationWait&, const RotationWait&) = default;
};

struct Rotating {
  std::optional<Rotation> next{};    ///< To be stored. Nothing else is done before it is.
  std::optional<KeyChange> write{};  ///< The key file becomes this.
  bool settled = false;              ///< All have loaded the file of this phase.
  std::vector<RotationWait> hosts{};
  std::string waits{};                         ///< What else is waited for; "": nothing.
  std::string problem{};                       ///< Why it does not go on until somebody acts; "": it does.
  std::optional<core::Duration> look_again{};  ///< Time alone changes the result.
};

[[nodiscard]] Rotating judge_rotation(const RotationInput& input);

/// Takes a rotation back. If somebody else has changed the keys, it just ends. Error: kConflict, if it is too late, or no
/// rotation runs; that of `keys`.
[[nodiscard]] core::Result<Rotation> abandoned(const Rotation& state, const core::Result<KeySet>& keys, core::WallTime now);

/// Returns why the node cannot be left out: it has jobs, or may get some. "": it can.
[[nodiscard]] std::string must_wait_for(const slurm::SnapshotPtr& slurm, const std::string& node);

}  // namespace enlist
