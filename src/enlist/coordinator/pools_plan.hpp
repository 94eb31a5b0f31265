// The decisions about the pool file: what it contains, when it is written, and when slurmctld reads it. Pure.
//
// The rollout works as in slurm/rollout/rollout.hpp. The plan adds:
//
// - Before the file is written, the new content and the content that slurmctld last accepted are stored. If the process
//   crashes after that and before the file is written, the next process writes the file.
// - A changed file is written only while Slurm answers, and slurmctld is reconfigured right after. So a file that slurmctld
//   possibly refuses is on the disk only briefly: every Slurm command reads the file, and so does a slurmctld that starts.
// - If slurmctld refuses the file, the accepted content is written back at once. While slurmctld does not answer, the offered
//   file stays: slurmctld may have loaded it, and would otherwise end the jobs that run or wait in a partition that only the
//   offered file has. If somebody edits the file meanwhile, for example because slurmctld exits with the offered one, the
//   edited file stays until Slurm answers.
// - Changes of pools in quick succession become one change of the file. It waits until the pools have not changed for kQuiet,
//   but at most kQuietLimit.
// - A reconfigure waits while jobs are starting, at most slurm::rollout::kPrologLimit. If only the revision of the auth key has
//   changed, it waits without a limit.
// - A partition in which Slurm has jobs is not removed, because slurmctld would end the jobs. All changes wait until these
//   jobs have ended. This also protects a partition that is only in the file on the disk, or only in an unknown loaded file.
// - The partition of a pool that is being removed first accepts no new jobs. When slurmctld has loaded that, and no job runs or
//   waits in the partition, the nodes of the pool leave. After the record of the last node, the record of the pool is deleted,
//   and then its lines are removed from the file.
// - While the store has no state of the rollout, a file that slurm-enlist has not written is not replaced. If slurm-enlist has
//   written it, the store was lost, and the content of the file counts as accepted.
// - A pool is *found* if it is in our file on the disk and the store never had it, because the store was lost or an older copy
//   was restored. Its lines stay in the file until somebody takes the pool up (make_pool) or removes it (remove_pool).
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

/// When the pools first and last changed. Only changes that the offered file does not contain yet count.
struct Edits {
  core::MonoTime first, last;
};

struct PoolsObserved {
  plan::Context context;
  slurm::ClusterKey cluster;
  std::map<std::string, Pool> pools{};
  std::string key_mark{};                         ///< key_mark_of(): the revision of the auth key for the pool file.
  std::optional<core::Json> state{}, problems{};  ///< The values kRolloutValue and kProblemsValue of the store.
  std::optional<Edits> edits{};                   ///< nullopt: the offered file has all changes that this process has seen.
  /// The pool file as it was last read. nullopt: there is no file. Error: the file cannot be read.
  core::Result<std::optional<std::string>> file = std::optional<std::string>();
  slurm::SnapshotPtr slurm{};
  /// For a pool that is being removed: the number of its nodes, and of those that are not requested to leave yet.
  struct Left {
    int nodes = 0, staying = 0;
  };
  std::map<std::string, Left> left{};
  std::map<std::string, Pool> found{};  ///< found_pools() of the store.
  std::set<std::string> elsewhere{};    ///< The partitions of slurm.conf that are not in the pool file.
};

[[nodiscard]] plan::Plan plan_pools(const PoolsObserved& observed);

/// Return the jobs that run or wait in a partition, as "12 (RUNNING)". Include jobs whose partition cannot be read.
[[nodiscard]] std::vector<std::string> jobs_in(const slurm::Snapshot& slurm, std::string_view partition);
[[nodiscard]] std::vector<std::string> jobs_in(const std::vector<std::shared_ptr<const slurm::Job>>& jobs,
                                               std::string_view partition);

/// Returns the pools that were found in the pool file, from the value kFoundValue among `values`: an object that maps their
/// names to the parameters of their partitions.
[[nodiscard]] std::map<std::string, Pool> found_pools(const std::map<std::string, core::Json>& values);
/// Returns the value kFoundValue for these pools; nullopt (no value) if there are none.
[[nodiscard]] std::optional<core::Json> found_value(const std::map<std::string, Pool>& found);

/// Return the stored form of the rollout's state, and parse it. Error: kInvalid with the member's name.
[[nodiscard]] core::Json to_json(const slurm::rollout::State& state);
[[nodiscard]] core::Result<slurm::rollout::State> rollout_from_json(const core::Json& json);

/// Returns the id of the step that makes slurmctld load the offered content. The id changes after each refusal.
[[nodiscard]] plan::StepId reconfigure_id(const slurm::rollout::State& state);

}  // namespace enlist
