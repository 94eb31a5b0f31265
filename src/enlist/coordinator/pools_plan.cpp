#include "enlist/coordinator/pools_plan.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "slurm/acts.hpp"
#include "slurm/conf/conf.hpp"
#include "slurm/conf/loaded.hpp"

namespace enlist {
namespace {

namespace rollout = slurm::rollout;
using slurm::Owner;

using Problems = std::map<std::string, std::string>;
using Pools = std::map<std::string, Pool>;

const plan::StepId kWrite{"write", "", std::string(kPoolFile)};

/// The first and the longest wait between two reconfigures if slurmctld has not loaded the file. The wait doubles each time.
constexpr core::Duration kFirstWait{1000};
constexpr core::Duration kLongestWait{30 * 60 * 1000};
/// After this many reconfigures in a row that have failed or have not loaded the file, the pools get a problem.
constexpr int kReconfiguresUntilTold = 2;
/// The period of checks whether the jobs of a removed partition have ended.
constexpr core::Duration kJobsPoll{5000};
/// The largest number of jobs that a problem names.
constexpr std::size_t kNamedJobs = 10;

const std::string& text_of(const rollout::State& state) {
  static const std::string kNone;
  const auto found = state.offered.find(std::string(kPoolFile));
  return found == state.offered.end() ? kNone : found->second;
}

std::string accepted_text(const rollout::State& state) {
  const rollout::Files files = state.accepted_files();
  return files.empty() ? "" : files.begin()->second;
}

rollout::Wanted content(std::string text) {
  std::string hash = hash_of(text);
  return {{{std::string(kPoolFile), std::move(text)}}, std::move(hash)};
}

rollout::State accepted(rollout::Wanted wanted) {
  rollout::State out;
  out.offered = std::move(wanted.files);
  out.offered_hash = out.accepted_hash = std::move(wanted.hash);
  return out;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// Returns the name of the partition that a line of a pool file defines; "": the line defines no partition, or the marker.
std::string_view partition_of(std::string_view line) {
  constexpr std::string_view kKey = "PartitionName=";
  if (!line.starts_with(kKey)) return {};
  const std::string_view name = line.substr(kKey.size(), line.find(' ') - kKey.size());
  return slurm::conf::is_marker(Owner::kEnlistment, name) ? std::string_view{} : name;
}

/// Returns the names of the partitions in a file, which somebody else may have written. Leaves out the marker.
std::set<std::string> partitions_of(std::string_view text) {
  std::set<std::string> out;
  const slurm::conf::Parsed parsed = slurm::conf::parse(slurm::conf::Kind::kSlurm, text);
  for (const slurm::conf::Entry& entry : parsed.conf.entries()) {
    const slurm::conf::Setting& head = entry.head();
    if (head.key == "PartitionName" && !entry.defaults() && !slurm::conf::is_marker(Owner::kEnlistment, head.value))
      out.insert(head.value);
  }
  return out;
}

/// Returns the partitions of `before` that `after` lacks.
std::set<std::string> lost_partitions(std::set<std::string> before, const std::string& after) {
  for (const std::string& name : partitions_of(after)) before.erase(name);
  return before;
}

/// Returns the state with which the rollout begins. Error: the file on the disk is not ours.
core::Result<rollout::State> initial_state(const std::optional<std::string>& file) {
  if (!file || file->find_first_not_of(" \t\r\n") == std::string::npos) return accepted(content(pool_file({})));
  if (!hash_of(*file).empty()) return accepted(content(*file));
  return core::fail(
      core::ErrorCode::kAlreadyExists,
      std::string(kPoolFile) + " beside slurm.conf was not written by slurm-enlist: remove it, or give it another name");
}

/// Returns the pools of the file on the disk that are neither in the store nor in the offered or the accepted content.
Pools newly_found(const PoolsObserved& observed, const rollout::State& now) {
  Pools out = pools_of(observed.file->value_or(""));
  std::erase_if(
      out, [&](const auto& entry) { return observed.pools.contains(entry.first) || observed.found.contains(entry.first); });
  if (!observed.state) return out;
  // The file has the lines of a removed pool until it is written again. Such a pool is not found.
  std::set<std::string> known = partitions_of(text_of(now));
  known.merge(partitions_of(accepted_text(now)));
  std::erase_if(out, [&](const auto& entry) { return known.contains(entry.first); });
  return out;
}

/// Returns slurmctld's error if it has refused the offered file. nullopt if it has not, or does not answer: then it may have
/// loaded the file.
std::optional<std::string> refusal_of(const PoolsObserved& observed, const rollout::State& state) {
  const plan::Outcome* tried = rollout::outcome_of(observed.context, reconfigure_id(state));
  return rollout::refused(tried) ? std::optional(tried->error->message) : std::nullopt;
}

/// True if slurmctld does not answer, and may have exited because of the offered file.
bool may_have_ended_slurmctld(const PoolsObserved& observed, const rollout::State& state) {
  return observed.slurm && observed.slurm->silent() && state.offered_hash != state.accepted_hash;
}

/// Returns `problem` for each pool that has a line which `file` lacks, or for all pools if there is no such pool.
Problems of_changed(const Pools& pools, const std::string& file, const std::string& problem) {
  const std::vector<std::string_view> there = lines_of(file);
  Problems all, out;
  for (const auto& [name, pool] : pools) {
    all.emplace(name, problem);
    const std::string own = pool_file({{name, pool}});
    const bool same = std::ranges::all_of(lines_of(own), [&](std::string_view line) {
      const bool defines = line.starts_with("NodeSet=") || !partition_of(line).empty();
      return !defines || std::ranges::find(there, line) != there.end();
    });
    if (!same) out.emplace(name, problem);
  }
  return out.empty() ? all : out;
}

/// Returns the partitions of slurmctld that look like those of pools: a node has a feature with the partition's name, or the
/// partition has no nodes. Leaves out the partitions in `elsewhere`.
std::set<std::string> like_pools(const slurm::Snapshot& slurm, const std::set<std::string>& elsewhere) {
  std::set<std::string> features, out;
  for (const auto& [name, node] : slurm.nodes) features.insert(node->features.begin(), node->features.end());
  for (const auto& [name, partition] : slurm.partitions) {
    if (!slurm::conf::is_marker(Owner::kEnlistment, name) && !elsewhere.contains(name) &&
        (partition.nodes.empty() || features.contains(name)))
      out.insert(name);
  }
  return out;
}

/// Returns a partition with jobs that slurmctld may have from a pool file, and that `text` lacks; "": there is none. Looks also
/// at the file on the disk and the loaded one. They may have partitions that the store does not have, because an older copy of
/// the store was restored, or somebody else has written the file. Requires that Slurm answers.
std::string lost_with_jobs(const PoolsObserved& observed, const rollout::State& now, const std::string& loaded,
                           const std::string& text) {
  const std::string on_disk = observed.file->value_or("");
  std::set<std::string> there = partitions_of(text_of(now));
  there.merge(partitions_of(accepted_text(now)));
  there.merge(partitions_of(on_disk));
  const std::set<std::string> known{"", now.offered_hash, now.accepted_hash, hash_of(on_disk), hash_of(text)};
  if (!known.contains(loaded)) there.merge(like_pools(*observed.slurm, observed.elsewhere));
  for (const std::string& name : lost_partitions(std::move(there), text)) {
    if (!jobs_in(*observed.slurm, name).empty()) return name;
  }
  return "";
}

/// True if the pools have not changed for long enough (kQuiet, kQuietLimit). Otherwise, makes the plan wake the key at that
/// time.
bool quiet(const PoolsObserved& observed, plan::Plan& plan) {
  if (!observed.edits) return true;
  const core::MonoTime due = std::min(observed.edits->last + kQuiet, observed.edits->first + kQuietLimit);
  return rollout::waited(observed.context, due, core::Duration{0}, plan, "the pools may change again");
}

/// True if slurmctld runs with the offered file. Also checks the partitions: somebody may have made slurmctld load a file that
/// has the same marker and lacks partitions.
bool runs_with(const rollout::State& state, const std::string& loaded, const slurm::Snapshot& slurm) {
  return loaded == state.offered_hash && std::ranges::all_of(partitions_of(text_of(state)), [&](const std::string& name) {
           return slurm.partitions.contains(name);
         });
}

/// Adds the steps that make slurmctld load the state's offered file. `loaded`: the hash of the file with which slurmctld runs.
void add_load_steps(const PoolsObserved& observed, const rollout::State& state, const std::string& loaded, plan::Lane& lane,
                    plan::Plan& plan) {
  const bool runs = runs_with(state, loaded, *observed.slurm);
  const plan::StepId id = reconfigure_id(state);
  const plan::Outcome* tried = rollout::outcome_of(observed.context, id);
  if (runs) {
    // After a refusal, slurmctld has to read the accepted file again: see kTriesOfFormer.
    if (state.refused_hash.empty()) return;
    if (tried != nullptr && (tried->state == plan::Outcome::State::kDone || tried->count >= rollout::kTriesOfFormer)) return;
  }
  plan.waits_on(observed.cluster);
  if (rollout::answered(tried) &&
      !rollout::waited(observed.context, tried->last, rollout::wait_of_try(tried->count, kFirstWait, kLongestWait), plan,
                       "slurmctld has not loaded the pool file yet"))
    return;
  const std::optional<core::MonoTime> since = rollout::looks_fail_since(observed.context);
  if (since) plan.wake_after(rollout::kPrologPoll, "jobs are starting");
  // If only the revision of the auth key differs, the load waits without a limit, so that it never ends a starting job.
  const bool only_key = loaded == state.accepted_hash && same_pools(accepted_text(state), text_of(state));
  if (!since || only_key || observed.context.mono - *since < rollout::kPrologLimit) {
    lane.add({rollout::kLookForStarting, "a reconfigure of slurmctld would cut them short",
              slurm::confirm_none_starts(observed.cluster)});
    lane.then();
  } else {
    plan.remember(rollout::kLookForStarting);
  }
  lane.add({id, "slurmctld runs with another pool file than the offered one", slurm::reconfigure(observed.cluster)});
}

/// Returns the problems of pools because the write of the offered file or the reconfigure has failed for another cause than a
/// refusal by slurmctld.
Problems failed_steps(const PoolsObserved& observed, const Pools& pools, const rollout::State& next,
                      const std::optional<std::string>& loaded) {
  const plan::Outcome* write = rollout::outcome_of(observed.context, kWrite);
  if (*observed.file != text_of(next) && write != nullptr && write->error)
    return of_changed(pools, observed.file->value_or(""),
                      std::string(kPoolFile) + " cannot be written: " + write->error->message);
  const plan::Outcome* load = rollout::outcome_of(observed.context, reconfigure_id(next));
  if (loaded && !runs_with(next, *loaded, *observed.slurm) && load != nullptr && load->error &&
      load->count >= kReconfiguresUntilTold)
    return of_changed(pools, accepted_text(next), "slurmctld cannot be reconfigured: " + load->error->message);
  return {};
}

struct Decision {
  rollout::State next;
  Problems problems{};
  bool held = false;  ///< The offered file must not be written or loaded now, because jobs use a partition that it lacks.
};

/// Decides what is offered next. `pools`: all pools that the file must contain.
Decision decide(const PoolsObserved& observed, const Pools& pools, rollout::State now, const std::optional<std::string>& loaded,
                plan::Plan& plan) {
  // A pool that slurmctld refuses must not end a rotation of the auth key. So after a refusal, a new key revision is offered
  // together with the pools that slurmctld already runs with. Changed pools are offered after that.
  const std::string before = accepted_text(now), with_key = with_key_revision(before, observed.key_mark);
  const bool key_first = !before.empty() && key_revision_of(before) != observed.key_mark && loaded == now.accepted_hash &&
                         (!now.refused_hash.empty() || now.offered_hash == hash_of(with_key));
  const rollout::Wanted wanted = content(key_first ? with_key : pool_file(pools, observed.key_mark));
  // slurmctld runs with the wanted file although another one is offered. For example, the reply to the reconfigure was lost,
  // and the former file was written back.
  if (loaded == wanted.hash && now.offered_hash != wanted.hash) now = accepted(wanted);
  const rollout::Slurmctld slurmctld{.loaded = loaded,
                                     .refusal = refusal_of(observed, now),
                                     .made_of = observed.slurm ? observed.slurm->capabilities.release : "",
                                     .ready = loaded.has_value(),
                                     .now = core::whole_seconds(observed.context.now)};
  Problems problems;
  const auto keep = [&](const std::string& partition) {
    problems = of_changed(pools, observed.file->value_or(""),
                          "the coordinator changes no pool while jobs use the removed partition " + partition);
    plan.wake_after(kJobsPoll, "jobs use a removed partition");
  };
  std::optional<rollout::Wanted> may_offer;
  if (loaded && quiet(observed, plan)) {
    const std::string kept = lost_with_jobs(observed, now, *loaded, wanted.files.begin()->second);
    kept.empty() ? void(may_offer = wanted) : keep(kept);
  }
  rollout::State next = rollout::next_state(now, may_offer, slurmctld);
  const auto at = rollout::next_try(next);
  if (at && *at > observed.context.now) plan.wake_after(*at - observed.context.now, "the refused pool file is tried again");
  if (!next.refused_hash.empty()) {
    problems = of_changed(pools, accepted_text(next),
                          "slurmctld refused the pool file: " + next.refused_reason +
                              (at ? ". The coordinator tries it again at " + core::format_rfc3339(*at) : ""));
  } else if (may_have_ended_slurmctld(observed, next)) {
    problems = of_changed(pools, accepted_text(next),
                          "slurmctld does not answer any more since the pool file was changed. The coordinator does not change "
                          "it back, because jobs may use its partitions");
  } else if (const plan::Outcome* tried = rollout::outcome_of(observed.context, reconfigure_id(next));
             loaded && *loaded != next.offered_hash && tried != nullptr && tried->state == plan::Outcome::State::kDone &&
             tried->count >= kReconfiguresUntilTold) {
    problems = of_changed(pools, "",
                          "slurmctld has reconfigured without loading the pool file: slurm.conf needs the line \"Include " +
                              std::string(kPoolFile) + "\"");
  }
  if (problems.empty()) problems = failed_steps(observed, pools, next, loaded);
  const std::string kept = loaded ? lost_with_jobs(observed, now, *loaded, text_of(next)) : "";
  if (!kept.empty()) keep(kept);
  return {std::move(next), std::move(problems), !kept.empty()};
}

std::string problem_of_found(const std::string& name) {
  return std::string(kPoolFile) +
         " has this pool, but the coordinator's records do not, so the coordinator keeps it: slurm-enlist pool create " + name +
         " adds it to the records, and slurm-enlist pool remove " + name + " removes it";
}

/// Adds the steps that remove pools, and adds to `problems` what each removal waits for. `in_force`: slurmctld runs with the
/// pool file that belongs to these pools.
void remove_pools(const PoolsObserved& observed, bool in_force, Problems& problems, plan::Plan& plan) {
  for (const auto& [name, pool] : observed.pools) {
    if (!pool.removing) continue;
    const auto told = [&, &pool_name = name](const std::string& what) {
      problems.emplace(pool_name, "it is being removed: " + what);
    };
    const auto left = observed.left.find(name);
    // slurmctld may refuse the parameters of a pool, and then it never loads State=DRAIN. If slurmctld does not have the
    // partition at all, the partition accepts no jobs either.
    const bool absent = observed.slurm && observed.slurm->complete() && !observed.slurm->partitions.contains(name);
    const bool drains = in_force || absent;
    const std::vector<std::string> jobs = drains ? jobs_in(*observed.slurm, name) : std::vector<std::string>();
    plan.wake_after(kJobsPoll, "a pool is being removed");
    if (!drains) {
      told("slurmctld has not closed its partition for new jobs yet");
    } else if (!jobs.empty()) {
      const bool many = jobs.size() > kNamedJobs;
      std::string list;
      for (std::size_t i = 0; i < std::min(jobs.size(), kNamedJobs); ++i) list += (i == 0 ? "" : ", ") + jobs[i];
      told("jobs use its partition: " + list + (many ? " and others" : ""));
    } else if (left != observed.left.end() && left->second.staying > 0) {
      plan.lane("removal").add(
          {{"leave", "pool", name}, "no job uses it", std::make_shared<LeavePool>(name, observed.context.now)});
      told("its nodes leave");
    } else if (left != observed.left.end() && left->second.nodes > 0) {
      told(left->second.nodes == 1 ? "1 node leaves" : std::to_string(left->second.nodes) + " nodes leave");
    } else {
      plan.lane("removal").add({{"forget", "pool", name}, "it has no nodes and no jobs", std::make_shared<ForgetPool>(name)});
      told("the coordinator removes its partition");
    }
  }
}

/// Adds the step that stores the state (unless it is nullopt), the problems and the newly found pools. Adds no step if none of
/// them is new.
void add_record(const PoolsObserved& observed, std::optional<core::Json> state, const Problems& problems, Pools found,
                plan::Lane& lane) {
  const core::Json told = problems.empty() ? core::Json() : core::Json(problems);
  if (!state && found.empty() && told == observed.problems.value_or(core::Json())) return;
  lane.add({{"record", "", std::string(kPoolFile)},
            state ? "another content is offered or accepted" : "the problems have changed",
            std::make_shared<RecordRollout>(std::move(state), problems, std::move(found))});
  lane.then();
}

}  // namespace

core::Json to_json(const rollout::State& state) {
  core::Json out{{"offered", text_of(state)}, {"offeredHash", state.offered_hash}, {"acceptedHash", state.accepted_hash}};
  if (!state.accepted.empty()) out["accepted"] = accepted_text(state);
  if (state.refused_hash.empty()) return out;
  out["refusedHash"] = state.refused_hash;
  out["refusedReason"] = state.refused_reason;
  out["refusedBy"] = state.refused_by;
  out["refusals"] = state.refusals;
  if (state.refused_at) out["refusedAt"] = core::format_rfc3339(*state.refused_at);
  return out;
}

core::Result<rollout::State> rollout_from_json(const core::Json& json) {
  rollout::State out;
  for (const char* member : {"offered", "offeredHash", "acceptedHash"}) {
    if (core::get_string(json, {member}).empty())
      return core::fail(core::ErrorCode::kInvalid, std::string("the stored state of the pool file lacks ") + member);
  }
  out.offered[std::string(kPoolFile)] = core::get_string(json, {"offered"});
  out.offered_hash = core::get_string(json, {"offeredHash"});
  out.accepted_hash = core::get_string(json, {"acceptedHash"});
  if (std::string text = core::get_string(json, {"accepted"}); !text.empty())
    out.accepted[std::string(kPoolFile)] = std::move(text);
  if (out.accepted.empty() && out.offered_hash != out.accepted_hash)
    return core::fail(core::ErrorCode::kInvalid, "the stored state of the pool file lacks accepted");
  out.refused_hash = core::get_string(json, {"refusedHash"});
  out.refused_reason = core::get_string(json, {"refusedReason"});
  out.refused_by = core::get_string(json, {"refusedBy"});
  out.refusals = static_cast<int>(core::get_int(json, {"refusals"}));
  if (const auto at = core::parse_rfc3339(core::get_string(json, {"refusedAt"}))) out.refused_at = *at;
  return out;
}

plan::StepId reconfigure_id(const rollout::State& state) {
  return rollout::kReconfigure.of(state.offered_hash + "." + std::to_string(state.refusals));
}

std::vector<std::string> jobs_in(const slurm::Snapshot& slurm, std::string_view partition) {
  std::vector<std::shared_ptr<const slurm::Job>> jobs;
  for (const auto& [id, job] : slurm.jobs) jobs.push_back(job);
  return jobs_in(jobs, partition);
}

std::vector<std::string> jobs_in(const std::vector<std::shared_ptr<const slurm::Job>>& jobs, std::string_view partition) {
  std::vector<std::string> out;
  for (const auto& job : jobs) {
    if (!job->in_queue()) continue;
    bool uses = job->partition.empty();  // A job that could not be read may use any partition.
    for (std::string_view names = job->partition; !names.empty();) {
      const std::size_t end = std::min(names.find(','), names.size());
      uses = uses || names.substr(0, end) == partition;
      names.remove_prefix(std::min(end + 1, names.size()));
    }
    if (uses) out.push_back(job->full_id() + " (" + job->state + ")");
  }
  return out;
}

std::map<std::string, Pool> found_pools(const std::map<std::string, core::Json>& values) {
  std::map<std::string, Pool> out;
  const auto found = values.find(kFoundValue);
  if (found == values.end() || !found->second.is_object()) return out;
  const auto numbers = values.find(kNumbersValue);
  for (const auto& [name, words] : found->second.items()) {
    Pool pool{.name = name, .partition_conf = words.is_string() ? words.get<std::string>() : ""};
    if (numbers != values.end()) pool.next_number = core::get_int(numbers->second, {name}, 1);
    out.emplace(name, std::move(pool));
  }
  return out;
}

std::optional<core::Json> found_value(const std::map<std::string, Pool>& found) {
  if (found.empty()) return std::nullopt;
  core::Json out = core::Json::object();
  for (const auto& [name, pool] : found) out[name] = pool.partition_conf;
  return out;
}

plan::Plan plan_pools(const PoolsObserved& observed) {
  plan::Plan out;
  plan::Lane& lane = out.lane("pool file");
  Pools pools = observed.pools;
  pools.insert(observed.found.begin(), observed.found.end());
  const auto stop = [&](const core::Error& error) {
    add_record(observed, {}, of_changed(pools, "", error.message), {}, lane);
    return std::move(out);
  };
  if (!observed.file) return stop(observed.file.error());
  const core::Result<rollout::State> stored =
      observed.state ? rollout_from_json(*observed.state) : initial_state(*observed.file);
  if (!stored) return stop(stored.error());

  Pools found = newly_found(observed, *stored);
  pools.insert(found.begin(), found.end());
  // The content that is written back after a refusal must also have the found pools.
  const rollout::State now = found.empty() ? *stored : accepted(content(**observed.file));
  const std::optional<std::string> loaded = rollout::loaded(Owner::kEnlistment, observed.slurm);
  auto [next, problems, held] = decide(observed, pools, now, loaded, out);
  remove_pools(observed, loaded && *loaded == hash_of(pool_file(pools, observed.key_mark)), problems, out);
  for (const auto& [name, pool] : pools) {
    if (!observed.pools.contains(name)) problems.emplace(name, problem_of_found(name));
  }
  // The outcome of the reconfigure is needed until a refusal is stored.
  out.remember(reconfigure_id(*stored));
  out.remember(kWrite);
  add_record(observed, !observed.state || next != *stored ? std::optional(to_json(next)) : std::nullopt, problems,
             std::move(found), lane);
  if (held) return out;
  // While slurmctld does not answer, the file on the disk stays in two cases: somebody may have edited it because slurmctld
  // exits with the offered file, or jobs may use partitions that only the file on the disk has.
  const bool stays =
      !loaded && *observed.file &&
      (next.offered_hash != next.accepted_hash || !lost_partitions(partitions_of(**observed.file), text_of(next)).empty());
  if (*observed.file != text_of(next) && !stays) {
    lane.add({kWrite, "it differs from what is offered", std::make_shared<WritePoolFile>(text_of(next))});
    lane.then();
  }
  if (loaded) add_load_steps(observed, next, *loaded, lane, out);
  return out;
}

}  // namespace enlist
