// The decisions about the pool file: what it contains, when it is written, and when slurmctld reads it. Pure.
//
// The rollout is that of slurm/rollout/rollout.hpp. The plan adds:
//
// - Before the file is written, the store has the content and the last one that slurmctld accepted. So after a crash between
//   the two writes, the file is written again.
// - A changed file is written only while Slurm answers, and slurmctld is reconfigured right after. So a file that slurmctld
//   may refuse is not there for long: every Slurm command reads the file, and so does a slurmctld that starts.
// - If slurmctld refuses the file, the accepted content is written back at once. It is not while slurmctld does not answer:
//   slurmctld may have run with the offered file, and would end the jobs that run or wait in a partition that only this file
//   has. If somebody changes the file meanwhile, so that a slurmctld can start that ends with it, that stays until Slurm
//   answers.
// - Changes of pools that follow each other closely are one change. A change waits until the pools have stayed the same for
//   kQuiet, but at most kQuietLimit.
// - A reconfigure waits while jobs are starting, at most slurm::rollout::kPrologLimit.
// - A partition in which Slurm has jobs is not removed, because slurmctld would end the jobs. All changes wait until these
//   jobs have ended. That holds for a partition that only the file on the disk has, or a loaded file that is not known.
// - A pool that is being removed first takes no new jobs. When slurmctld has loaded that and no job runs or waits in the
//   partition, its nodes leave. When the last one is forgotten, so is the pool, and its lines go with the next change of the
//   file.
// - The file of somebody else is not replaced. If the store knows nothing of a pool file of ours, the store was lost: the
//   file on the disk is taken for the accepted content.
// - A pool of our file on the disk that the store has never known, because it was lost or an older copy was restored, is
//   *found*: its lines stay in the file until somebody takes it up (make_pool) or removes it (remove_pool).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"
#include "enlist/coordinator/pools_acts.hpp"
#include "enlist/rules/model.hpp"
#include "plan/plan.hpp"
#include "slurm/model.hpp"
#include "slurm/rollout/rollout.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace enlist {

inline constexpr core::Duration kQuiet{1000};
inline constexpr core::Duration kQuietLimit{5000};

/// When the pools were changed in a way that changes the pool file, and the change is not offered yet.
struct Edits {
  core::MonoTime first, last;
};

struct PoolsObserved {
  plan::Context context;
  slurm::ClusterKey cluster;
  std::map<std::string, Pool> pools{};
  std::string key_mark{};                         ///< The revision of the auth key in the pool file (key_mark_of).
  std::optional<core::Json> state{}, problems{};  ///< The values kRolloutValue and kProblemsValue of the store.
  std::optional<Edits> edits{};                   ///< nullopt: this process has seen no change that is not offered.
  /// The pool file as it was last read. nullopt: there is none. An error means that nothing is known.
  core::Result<std::optional<std::string>> file = std::optional<std::string>();
  slurm::SnapshotPtr slurm{};
  /// The numbers of nodes of a pool that is being removed: all, and those that do not leave yet.
  struct Left {
    int nodes = 0, staying = 0;
  };
  std::map<std::string, Left> left{};
  std::map<std::string, Pool> found{};  ///< found_pools() of the store.
  std::set<std::string> elsewhere{};    ///< The partitions that slurm.conf has without the pool file.
};

[[nodiscard]] plan::Plan plan_pools(const PoolsObserved& observed);

/// Returns the jobs that run or wait in a partition, as "12 (RUNNING)". A job whose partition cannot be read is among them.
[[nodiscard]] std::vector<std::string> jobs_in(const slurm::Snapshot& slurm, std::string_view partition);
[[nodiscard]] std::vector<std::string> jobs_in(const std::vector<std::shared_ptr<const slurm::Job>>& jobs,
                                               std::string_view partition);

/// Returns the pools that were found in the pool file, of the value kFoundValue among these: an object that maps their names to
/// the words of their partitions.
[[nodiscard]] std::map<std::string, Pool> found_pools(const std::map<std::string, core::Json>& values);
/// Returns the value. nullopt: there is none without such pools.
[[nodiscard]] std::optional<core::Json> found_value(const std::map<std::string, Pool>& found);

/// Return the state of the rollout as it is stored, and read it. Error: kInvalid with the member's name.
[[nodiscard]] core::Json to_json(const slurm::rollout::State& state);
[[nodiscard]] core::Result<slurm::rollout::State> rollout_from_json(const core::Json& json);

/// Returns the id of the step that makes slurmctld load the offered content. After each refusal it is another step.
[[nodiscard]] plan::StepId reconfigure_id(const slurm::rollout::State& state);

}  // namespace enlist
