// Decides how slurmctld gets a changed configuration, and how it gets the old one back if it refuses the change. Functions
// without I/O. The caller stores the state, so that any process can continue, and transfers the offered content to slurmctld.
//
// clang-format off
// wanted != offered, and not refused -> offer the wanted content, and keep the accepted content
// wanted == refused                  -> offer the accepted content (a rollback). Offer the refused content again when another
//                                       slurmctld runs, which can have the missing file, plugin or user, and after 1, 2, 4 ...
//                                       30 minutes. Other content for the same request of users (Wanted::asked) also counts as
//                                       refused, because it differs only where Slurm's answers differ
// offered != loaded                  -> reconfigure until loaded == offered. Each wait is twice as long as the one before
// clang-format on
//
//   State next = next_state(stored, wanted, {.loaded = loaded(Owner::kEnlistment, snapshot), .refusal = ...});
//
// A caller that adds decisions of its own calls the steps of next_state() one by one, in the order of their declarations.
//
// Folder src/slurm/rollout: the rollout of slurm.conf and the files that it includes, for any program. Part of slurm_plan.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/clock.hpp"
#include "plan/plan.hpp"
#include "slurm/holds.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace slurm::rollout {

using Files = std::map<std::string, std::string>;  ///< Maps the name of a file to its text.

/// The configuration that users want.
struct Wanted {
  Files files;
  /// Hash of everything that slurmctld reads when it reconfigures. The files contain this hash, and once they are loaded, REST
  /// shows it (slurm/conf/loaded.hpp).
  std::string hash;
  /// Digest of what users ask for, without the parts that the content keeps because Slurm's answers show that jobs or Slurm
  /// nodes need them. So the content can change while this digest does not. "": only the hash is compared.
  std::string asked{};
};

/// The state of slurmctld.
struct Slurmctld {
  std::optional<std::string> loaded{};   ///< The hash of the configuration that slurmctld has loaded. nullopt: unknown.
  std::optional<std::string> refusal{};  ///< slurmctld's error if it refused the offered content.
  std::string made_of{};                 ///< Identifies slurmctld's program and machine. "": unknown.
  bool ready = false;                    ///< slurmctld is up.
  core::WallTime now{};
  bool crashes = false;  ///< slurmctld crashes repeatedly when it starts.
};

/// The state of a rollout.
struct State {
  Files offered, accepted;  ///< `accepted`: the content that was last loaded; empty if that is the offered content.
  std::string offered_hash, accepted_hash, refused_hash, refused_reason;
  std::string offered_asked, refused_asked;  ///< Wanted::asked of the offered and of the refused content; "": unknown.
  std::string refused_by;                    ///< Slurmctld::made_of of the slurmctld that refused the content.
  std::optional<core::WallTime> refused_at;  ///< When the content was last refused, in whole seconds.
  int refusals = 0;                          ///< Number of refusals of the same content.

  [[nodiscard]] bool exists() const { return !offered.empty(); }
  /// Returns the content that slurmctld last accepted. Empty: none.
  [[nodiscard]] Files accepted_files() const;
  /// True if this content is offered, or another content for the same request of users.
  [[nodiscard]] bool offers(const Wanted& wanted) const;
  /// True if slurmctld has refused this content, or another content for the same request of users.
  [[nodiscard]] bool refuses(const Wanted& wanted) const;
  /// True if there is an accepted content to return to.
  [[nodiscard]] bool can_roll_back() const { return !accepted.empty() && !accepted_hash.empty(); }
  /// True if slurmctld runs with the offered content.
  [[nodiscard]] bool is_loaded(const Slurmctld& slurmctld) const { return exists() && slurmctld.loaded == offered_hash; }
  /// Forgets refused contents. Keeps refused_by.
  void forget_refusal();
  friend bool operator==(const State&, const State&) = default;
};

/// Returns the state to store next. `wanted` is nullopt while it is not known what users want. Then a refused content is rolled
/// back, and nothing else is offered.
State next_state(const State& now, const std::optional<Wanted>& wanted, const Slurmctld& slurmctld);

// --- The steps of next_state(), in their order ---

/// If slurmctld runs with the offered content, records that slurmctld has accepted it. If this slurmctld is also ready and
/// is known not to be State::refused_by, forgets all refusals and returns true.
bool note_loaded(State& state, const Slurmctld& slurmctld);
/// True if slurmctld has refused the offered content. False if that content was loaded once: it can be loaded again, so its
/// refusal is a temporary fault.
bool is_refused(const State& state, const Slurmctld& slurmctld);
/// Records that slurmctld refused the offered content as a whole. A caller that knows the refused part should drop that part
/// instead. `asked`: Wanted::asked of the refused content. Requires is_refused().
void refuse_offered(State& state, const std::string& asked, const Slurmctld& slurmctld);
/// Records that the offered content was refused, and offers the accepted content. Does nothing if there is no accepted content.
/// Requires is_refused().
void withdraw(State& state, const Slurmctld& slurmctld);
/// Offers the wanted content, returns to the accepted content, or does neither. `may_try`: allows the function to offer a
/// refused content again when it is due.
void advance(State& state, Wanted wanted, const Slurmctld& slurmctld, bool may_try = true);

// --- When to try again ---

/// Returns how long to wait after `count` tries: `first` after one try, twice as long after each further try, at most
/// `longest`.
core::Duration wait_of_try(int count, core::Duration first, core::Duration longest);
/// Returns when a content that was refused `refusals` times, last at `refused_at`, is offered again.
core::WallTime try_at(core::WallTime refused_at, int refusals);
/// True if it is time to offer a refused content again. Also true if the clock was set back to a time before `refused_at`.
bool try_due(const std::optional<core::WallTime>& refused_at, int refusals, core::WallTime now);
/// Returns when the refused content is offered again, because the cause can be gone by then (a name that DNS did not know, a
/// node that had not registered). nullopt: nothing is offered again merely because time passes.
std::optional<core::WallTime> next_try(const State& state);

// --- Loading ---

/// Returns the hash of the configuration of this program that slurmctld has loaded. "": none. nullopt: Slurm does not answer.
std::optional<std::string> loaded(Owner writer, const SnapshotPtr& snapshot);

/// The id of the steps that reconfigure slurmctld. The object's name in the id identifies the cause of the reconfigure.
inline const plan::StepId kReconfigure{"reconfigure"};
/// Returns the outcome of a step, or null.
const plan::Outcome* outcome_of(const plan::Context& context, const plan::StepId& id);
/// True if the outcome of a reconfigure shows that slurmctld has refused the configuration.
bool refused(const plan::Outcome* outcome);
/// True if slurmctld has answered the reconfigure: it reconfigured, or refused the configuration.
bool answered(const plan::Outcome* outcome);
/// True if `from` + `wait` has passed. Otherwise, makes the plan wake the key at that time.
bool waited(const plan::Context& context, core::MonoTime from, core::Duration wait, plan::Plan& plan, const std::string& why);
/// In 26.05, a slurmctld that has refused files continues with the old configuration. But until it has read other files, it
/// sends the refused files to each slurmd that starts. So the plan makes slurmctld read the accepted files again. This is the
/// maximum number of attempts.
inline constexpr int kTriesOfFormer = 4;

// --- Jobs that are starting ---
//
// Before 26.11, slurmctld keeps the launch of a batch job only in memory while the job waits for a prolog or its nodes
// (DeferBatch in PrologFlags, PrologSlurmctld, nodes that power up). A reconfigure or restart loses the launch: the job is then
// RUNNING without its script, until somebody cancels it. So a reconfigure waits while a job is starting. The wait has a limit:
// otherwise long prologs, or a Slurm that needs repair, would prevent each change of the configuration.

/// The longest wait of a reconfigure or restart for starting jobs.
inline constexpr core::Duration kPrologLimit{60000};
/// How often the reconfigure or restart checks whether a job is still starting.
inline constexpr core::Duration kPrologPoll{500};
/// The id of the steps that ask Slurm whether any job is starting. Such a job fails the step with kBusy, which is not reported.
inline const plan::StepId kLookForStarting{"look for", "starting jobs"};
/// Returns since when the steps kLookForStarting have failed, because a job was starting or Slurm did not answer. nullopt:
/// there was no such step, the last one succeeded, or a later plan did not need it.
std::optional<core::MonoTime> looks_fail_since(const plan::Context& context);
/// Returns the jobs that are starting, from Slurm's last answer.
std::set<std::int64_t> starting_jobs(const SnapshotPtr& snapshot);

}  // namespace slurm::rollout
