#include "operator/controller/prologs.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "api/well_known.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/config_map.hpp"
#include "slurm/acts.hpp"
#include "slurm/conf/conf.hpp"

namespace op::controller {

using slurm::rollout::looks_fail_since;

namespace {

/// The time between the first two records of the jobs whose launch might be lost. This time doubles with each record.
constexpr core::Duration kFirstGap{1000};
/// The largest number of jobs that are recorded. An annotation has room for more.
constexpr std::size_t kMostNoted = 10000;

bool over_limit(const Observed& observed, const ConfigState& state) {
  return state.held_since && observed.context.now - *state.held_since >= kPrologLimit;
}

std::string list_of(const std::set<std::int64_t>& jobs) {
  std::vector<std::string> names;
  for (const std::int64_t job : jobs) names.push_back(std::to_string(job));
  return some_of(names);
}

bool is_slow(const slurm::conf::Entry& entry) {
  const std::string& key = entry.head().key;
  return key.starts_with("Prolog") || key == "RebootProgram" || key == "ResumeProgram";
}

bool starts_slowly(const std::map<std::string, std::string>& files) {
  return std::ranges::any_of(slurm::conf::parse(slurm::conf::Kind::kSlurm, slurm_conf(files)).conf.entries(), is_slow);
}

/// True if jobs might start slowly with a configuration that slurmctld runs with or is about to load.
bool starts_slowly(const ConfigState& state) {
  return starts_slowly(state.offered) || starts_slowly(state.accepted);
}

/// True if jobs might start slowly, and Slurm does not answer although there is a RestApi.
bool is_blind(const Observed& observed, const ConfigState& state) {
  const bool told = observed.snapshot && observed.snapshot->complete();
  return !told && !observed.restapis.empty() && starts_slowly(state);
}

}  // namespace

void note_prologs(const Observed& observed, bool due, bool loaded, ConfigState& next) {
  const bool told = observed.snapshot && observed.snapshot->complete();
  if (told) {
    std::erase_if(next.cut_short, [&](std::int64_t id) {
      const auto job = observed.snapshot->jobs.find(id);
      return job == observed.snapshot->jobs.end() || !job->second->holds_nodes();
    });
  }
  if (next.cut_short.empty()) next.cut_short_at.reset();
  // While Slurm does not answer, it is unknown what slurmctld has loaded. A wait then continues, but only up to its limit.
  if (!due && (told || over_limit(observed, next))) next.held_since.reset();
  // The load succeeded while no job was starting. If another load is due, a new wait begins for jobs that start later.
  if (loaded && !over_limit(observed, next)) next.held_since.reset();
  if (!due) return;
  const std::set<std::int64_t> starting = starting_jobs(observed.snapshot);
  const core::WallTime now = core::whole_seconds(observed.context.now);
  const bool waits = !starting.empty() || is_blind(observed, next) || looks_fail_since(observed.context);
  // If jobs start all the time, the passes might miss the moments without a starting job. So a pass that sees no starting job
  // does not end the wait. If the clock was set back, the wait must not become longer.
  if (!next.held_since && !waits) return;
  if (!next.held_since || *next.held_since > now) next.held_since = now;
  if (!over_limit(observed, next)) return;
  // Further jobs can start at any moment, and each record is a write that delays the reconfigure. So the time between two
  // records of one wait becomes longer and longer.
  if (starting.empty()) return;
  if (next.cut_short_at && *next.cut_short_at > *next.held_since && *next.cut_short_at <= now) {
    const core::Duration gap = std::max(kFirstGap, *next.cut_short_at - *next.held_since - kPrologLimit);
    if (now - *next.cut_short_at < gap || std::ranges::includes(next.cut_short, starting)) return;
  }
  for (const std::int64_t job : starting) {
    if (next.cut_short.size() < kMostNoted) next.cut_short.insert(job);
  }
  next.cut_short_at = now;
}

std::optional<core::Duration> wait_left(const Observed& observed, const ConfigState& state) {
  if (!state.held_since || over_limit(observed, state)) return {};
  return *state.held_since + kPrologLimit - observed.context.now;
}

bool held_back(const Observed& observed, const ConfigState& state) {
  if (!wait_left(observed, state)) return false;
  return !starting_jobs(observed.snapshot).empty() || is_blind(observed, state);
}

std::optional<plan::Step> look_for_prologs(const Observed& observed, const ConfigState& state) {
  const std::optional<core::MonoTime> since = looks_fail_since(observed.context);
  if (since && observed.context.mono - *since >= kPrologLimit) return {};
  if (over_limit(observed, state) || observed.restapis.empty() || !starts_slowly(state)) return {};
  return plan::Step{kLookForStarting, "a reconfigure or restart of slurmctld would cut them short",
                    slurm::confirm_none_starts(observed.cluster)};
}

std::optional<plan::Step> tell_cut_short(const Observed& observed, const ConfigState& now, const ConfigState& next) {
  if (next.cut_short_at == now.cut_short_at || next.cut_short.empty()) return {};
  return event_step(resources::kController, observed.object->meta, "Warning", "PrologCutShort", "Reconfigure",
                    "slurmctld is reconfigured or restarted although jobs have been starting or running their prologs for a "
                    "minute: " +
                        list_of(next.cut_short) + ". See the condition " + std::string(api::kConditionJobsInDoubt));
}

void set_jobs_in_doubt(Conditions& conditions, const ConfigState& state) {
  if (state.cut_short.empty() || !state.cut_short_at) return;
  conditions.set(api::kConditionJobsInDoubt, true, "PrologCutShort",
                 "slurmctld was reconfigured or restarted at " + core::format_rfc3339(*state.cut_short_at) +
                     " while these jobs were starting or running their prologs: " + list_of(state.cut_short) +
                     ". Before 26.11, Slurm may show such a job as RUNNING although its script was never started: look at its "
                     "output, and run `scontrol requeue` or `scancel` if there is none");
}

}  // namespace op::controller
