#include "cli/why.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/controller.hpp"
#include "cli/slurm_access.hpp"
#include "slinky/names.hpp"
#include "slinky/status.hpp"
#include "slurm/accounting/qos.hpp"

namespace cli {
namespace {

using core::Json;
using slurm::accounting::QueuedJob;
using JobPtr = std::shared_ptr<const QueuedJob>;

// Reading.

/// Reports whether the cluster uses, or might use, a slurmdbd.
bool may_have_accounting(const Json& controller) {
  return core::get_bool(controller, {"spec", "external"}) ||
         !core::get_string(controller, {"spec", "accountingRef", "name"}).empty();
}

/// Reads the lists that are needed to check limits. If lists are missing, notes the cause.
void read_limits(Api& api, SlurmAccess& slurm, const Json& controller, const std::string& cluster, ClusterFacts& facts) {
  namespace rows = slurm::accounting;
  if (!may_have_accounting(controller)) {
    facts.no_limits = "the cluster has no accounting (spec.accountingRef of its Controller)";
    return;
  }
  auto& accounting = slurm.client().accounting();
  auto qos = slurm.await<ClusterFacts::Rows<rows::Qos>>(api, [&](auto done) { accounting.qos(std::move(done)); });
  auto associations =
      slurm.await<ClusterFacts::Rows<rows::Association>>(api, [&](auto done) { accounting.own_associations(std::move(done)); });
  if (!qos || !associations) {
    facts.no_limits = (!qos ? qos.error() : associations.error()).message;
    return;
  }
  facts.qos = std::move(*qos);
  facts.associations = std::move(*associations);
  std::erase_if(facts.associations,
                [&](const auto& row) { return slurm::accounting::folded(row->cluster) != slurm::accounting::folded(cluster); });
  // If the shares cannot be read, only past usage is unknown.
  auto shares = slurm.await<ClusterFacts::Rows<rows::Share>>(api, [&](auto done) { slurm.client().shares(std::move(done)); });
  if (shares) facts.shares = std::move(*shares);
}

/// Returns Slurm's name of the cluster.
std::string cluster_of_job(const Json& controller, const QueuedJob& job) {
  if (!job.cluster.empty()) return job.cluster;
  const kube::Key key = kube::key_of(controller);
  const auto read = api::from_json<api::Controller>(controller);
  return read ? api::cluster_name(read->spec, key.ns, key.name) : "";
}

/// Returns slurmdbd's answer about the job's number. Returns no rows if the cluster has no accounting, or if slurmrestd does
/// not serve accounting.
core::Result<ClusterFacts::Rows<QueuedJob>> ask_slurmdbd(Api& api, SlurmAccess& slurm, const Json& controller,
                                                         const JobName& name) {
  if (!slurm.capabilities().slurmdb || !may_have_accounting(controller)) return {};
  return api.await<ClusterFacts::Rows<QueuedJob>>(
      [&](auto done) { slurm.client().accounting().job(name.id, std::move(done)); });
}

// The document.

Json count_json(const std::optional<std::int64_t>& number) {
  return number ? Json(*number) : Json();
}

Json moment_json(const std::optional<core::WallTime>& time) {
  return time ? Json(core::format_rfc3339(*time)) : Json();
}

Json minutes_json(const slurm::Number& number) {
  const auto* minutes = std::get_if<std::int64_t>(&number);
  return minutes == nullptr ? Json() : Json(*minutes);
}

Json explained_job_json(const QueuedJob& job) {
  Json out{{"id", job.full_id()},        {"user", job.user},   {"account", job.account}, {"qos", job.qos},
           {"partition", job.partition}, {"state", job.state}, {"nodes", job.nodes},     {"asks", job.asks}};
  out["timeLimitMinutes"] = minutes_json(job.time_limit);
  out["submitted"] = moment_json(job.submitted);
  out["started"] = job.pending() ? Json() : moment_json(job.start);
  out["ends"] = job.pending() || (job.running() && std::holds_alternative<slurm::Infinite>(job.time_limit))
                    ? Json()
                    : moment_json(job.end);
  out["exitCode"] = job.pending() || job.running() ? Json() : Json(job.exit_code);
  return out;
}

std::string limit_name(const JobLimit& limit) {
  return std::string(limit.kind->name) + (limit.tres.empty() ? "" : "/" + limit.tres);
}

Json limit_json(const JobLimit& limit, bool named) {
  Json jobs = Json::array();
  for (const QueuedJob* job : limit.counted) jobs.push_back(job->full_id());
  return {{"name", limit_name(limit)},
          {"holderKind", limit.holder_kind},
          {"holder", limit.holder},
          {"counts", limit.whose},
          {"limit", limit.limit},
          {"percent", limit.percent},
          {"inUse", count_json(limit.in_use)},
          {"asks", count_json(limit.asks)},
          {"overBy", count_json(limit.over)},
          {"holds", limit.holds()},
          {"named", named},
          {"jobs", std::move(jobs)}};
}

/// Returns the limit of the partition (MaxNodes, MinNodes) that the job's number of nodes violates. If it violates neither,
/// returns that nodes are down or drained, because Slurm gives the same reason in that case.
std::string node_limit_text(const QueuedJob& job, const slurm::accounting::PartitionRules& partition) {
  const auto nodes = job.asks.find("node");
  const std::int64_t asks = nodes == job.asks.end() ? 1 : nodes->second;
  const auto* most = std::get_if<std::int64_t>(&partition.max_nodes);
  const auto count = [](std::int64_t number) { return std::to_string(number) + (number == 1 ? " node" : " nodes"); };
  std::string out = "It asks for " + count(asks) + ", and partition " + partition.name;
  if (most != nullptr && asks > *most) return out + " allows at most " + std::to_string(*most) + " (MaxNodes).";
  if (asks < partition.min_nodes) return out + " needs at least " + std::to_string(partition.min_nodes) + " (MinNodes).";
  return out + " allows that: too many of its nodes are down or drained.";
}

/// Returns details of the job, or of what the job waits for, as far as the reason is about them.
std::vector<std::string> details_of_reason(const QueuedJob& job, const ClusterFacts& facts) {
  std::vector<std::string> out;
  const auto is = [&](std::initializer_list<std::string_view> reasons) {
    return std::ranges::find(reasons, job.reason) != reasons.end();
  };
  if (!job.description.empty() && job.description != job.reason) out.push_back("Slurm adds: " + job.description);
  if (is({"BeginTime"}) && job.eligible) out.push_back("The time is " + core::format_rfc3339(*job.eligible) + ".");
  if (is({"Dependency", "DependencyNeverSatisfied"}) && !job.dependency.empty())
    out.push_back("It depends on " + job.dependency + ".");
  if (is({"Reservation", "ReservationDeleted", "ReservationInvalid"}) && !job.reservation.empty())
    out.push_back("It asks for reservation " + job.reservation + ".");
  if (is({"Licenses"}) && !job.licenses.empty()) out.push_back("It asks for " + job.licenses + ".");
  if (is({"ReqNodeNotAvail", "NodeDown"}) && !job.required_nodes.empty())
    out.push_back("It asks for nodes " + job.required_nodes + ".");
  const auto* partition = facts.partition(job.partition);
  if (partition != nullptr && is({"PartitionDown", "PartitionInactive"}))
    out.push_back("Partition " + partition->name + " is " + partition->state + ".");
  if (partition != nullptr && is({"PartitionTimeLimit"})) {
    const auto* asks = std::get_if<std::int64_t>(&job.time_limit);
    const auto* most = std::get_if<std::int64_t>(&partition->max_minutes);
    out.push_back(fmt::format("Its time limit is {}, and partition {} allows {}.",
                              asks == nullptr ? "infinite" : slurm_minutes(*asks), partition->name,
                              most == nullptr ? "any" : slurm_minutes(*most)));
  }
  if (partition != nullptr && is({"PartitionNodeLimit"})) out.push_back(node_limit_text(job, *partition));
  if (const auto* priority = std::get_if<std::int64_t>(&job.priority); is({"Priority"}) && priority != nullptr) {
    const auto ahead = std::ranges::count_if(facts.jobs, [&](const auto& other) {
      const auto* its = std::get_if<std::int64_t>(&other->priority);
      return other->pending() && other->partition == job.partition && its != nullptr && *its > *priority;
    });
    out.push_back(
        fmt::format("Its priority is {}; {} pending jobs of partition {} have a higher one.", *priority, ahead, job.partition));
  }
  return out;
}

bool is_held(const QueuedJob& job) {
  return job.reason == "JobHeldUser" || job.reason == "JobHeldAdmin" || job.reason == "JobHoldMaxRequeue";
}

// Text.

std::string of_whom(const Json& job) {
  std::string out;
  for (const auto& [key, word] :
       {std::pair{"user", "user"}, {"account", "account"}, {"qos", "QOS"}, {"partition", "partition"}}) {
    const std::string name = core::get_string(job, {key});
    if (!name.empty()) out += (out.empty() ? "of " : ", ") + std::string(word) + " " + name;
  }
  return out;
}

/// Formats a number of a limit in its unit.
std::string amount(const std::string& name, const Json& value) {
  if (!value.is_number()) return "?";
  const auto number = value.get<std::int64_t>();
  const std::size_t slash = name.find('/');
  const LimitKind* kind = limit_kind(name.substr(0, slash));
  if (kind == nullptr || slash == std::string::npos) {
    const bool wall = kind != nullptr && (kind->measure == Measure::kJobWall || kind->measure == Measure::kUsedWall);
    return wall ? slurm_minutes(number) : std::to_string(number);
  }
  const std::string count = tres_count(name.substr(slash + 1), number);
  const bool minutes =
      kind->measure == Measure::kRunMinutes || kind->measure == Measure::kUsedMinutes || kind->measure == Measure::kJobMinutes;
  return count + (minutes ? " min" : "");
}

bool counts_jobs(const Json& limit) {
  return !core::get_string(limit, {"counts"}).empty();
}

/// Returns the note on a limit that Slurm does not name. `enforced`: the job's reason proves that slurm.conf enforces limits.
const char* note_of_other(bool enforced) {
  return enforced ? "holds it as well" : "holds it if slurm.conf enforces limits";
}

std::string limits_table(const Json& limits, bool enforced, const Style& style) {
  Table table({"LIMIT", "SET ON", "COUNTS", "LIMIT IS", "IN USE", "JOB ASKS", "OVER BY", "RUNNING JOBS", "NOTE"});
  constexpr std::size_t kMostJobs = 5;
  for (const Json& limit : limits) {
    const std::string name = core::get_string(limit, {"name"});
    std::string jobs;
    for (std::size_t i = 0; i < limit["jobs"].size() && i <= kMostJobs; ++i)
      jobs += (i == 0 ? "" : ",") + (i == kMostJobs ? "..." : limit["jobs"][i].get<std::string>());
    const bool percent = core::get_bool(limit, {"percent"});
    const bool named = core::get_bool(limit, {"named"});
    const bool holds = core::get_bool(limit, {"holds"});
    const bool over = limit["overBy"].is_number() && limit["overBy"].get<std::int64_t>() >= 0;
    table.add({name,
               core::get_string(limit, {"holderKind"}) + " " + core::get_string(limit, {"holder"}),
               core::get_string(limit, {"counts"}),
               percent ? std::to_string(core::get_int(limit, {"limit"})) + "%" : amount(name, limit["limit"]),
               counts_jobs(limit) ? amount(name, limit["inUse"]) : "-",
               amount(name, limit["asks"]),
               {limit["overBy"].is_null() ? "?"
                : over                    ? amount(name, limit["overBy"])
                                          : "-",
                holds ? Tone::kBad : Tone::kPlain},
               jobs,
               named ? "Slurm's reason" : note_of_other(enforced)});
  }
  return table.text(style);
}

std::string pending_text(const Json& document, const Style& style, core::WallTime now) {
  const Json& job = document["job"];
  const Json& reason = document["reason"];
  std::string out = style.paint(Tone::kStrong, "Job " + core::get_string(job, {"id"})) + " is pending, " +
                    printable(of_whom(job)) + ", submitted " + moment_text(core::get_string(job, {"submitted"}), now) + "\n" +
                    "Reason: " + style.paint(Tone::kWarn, printable(core::get_string(reason, {"name"}))) + "\n";
  for (const char* part : {"meaning", "advice"}) {
    if (const std::string text = core::get_string(reason, {part}); !text.empty()) out += "  " + text + "\n";
  }
  for (const Json& line : document["details"]) out += "  " + printable(line.get<std::string>()) + "\n";
  const bool enforced = limit_of_reason(core::get_string(reason, {"name"})).has_value();
  if (const Json& limits = document["limits"]; !limits.empty()) out += "\n" + limits_table(limits, enforced, style);
  if (const std::string why = core::get_string(document, {"limitsUnknown"}); !why.empty())
    out += "\nLimits are not shown: " + printable(why) + "\n";
  const std::string note = core::get_string(document, {"note"});
  out += note.empty() ? "" : "\n" + note + "\n";
  const std::string start = core::get_string(document, {"expectedStart"});
  const std::string free = core::get_string(document, {"limitFreeBy"});
  if (!start.empty()) {
    out += "\nSlurm expects it to start at " + moment_text(start, now) + ". That changes as jobs come and go.\n";
  } else {
    out += "\nSlurm gives no time at which it may start.\n";
  }
  if (!free.empty()) {
    out += "Enough of the running jobs that count reach their time limits by " + moment_text(free, now) +
           ". If no other job takes their place, the limit lets it start then at the latest.\n";
  }
  return out;
}

}  // namespace

core::Result<JobName> JobName::read(const std::string& text) {
  JobName out;
  const char* const end = text.data() + text.size();
  auto at = std::from_chars(text.data(), end, out.id);
  const bool number = at.ec == std::errc{} && out.id > 0;
  const std::string_view rest = number ? std::string_view(at.ptr, end) : std::string_view();
  bool good = number;
  if (good && at.ptr != end && *at.ptr == '_') {
    std::int64_t task = 0;
    at = std::from_chars(at.ptr + 1, end, task);
    good = at.ec == std::errc{} && task >= 0;
    out.task = task;
  }
  if (good && at.ptr == end) return out;
  std::string how = "name it by its number, 12, or 12_3 for a task of an array";
  const std::string id = std::to_string(out.id);
  if (rest.starts_with("_[")) how = "name one of its tasks, " + id + "_3 for example, or all tasks that wait, " + id;
  if (rest.starts_with('+')) how = "name a heterogeneous job by the number of its first component, " + id;
  if (rest.starts_with('.')) how = "name the job of the step, " + id;
  return core::fail(core::ErrorCode::kInvalid, "\"" + printable(text) + "\" is not a job: " + how);
}

std::string JobName::text() const {
  return std::to_string(id) + (task ? "_" + std::to_string(*task) : "");
}

JobPtr find_job(const JobName& name, const ClusterFacts::Rows<QueuedJob>& jobs) {
  const auto rank = [&](const QueuedJob& job) {
    if (name.task) return job.array == name.id && job.has_task(*name.task) ? (job.task ? 2 : 1) : 0;
    if (job.id != name.id && job.array != name.id) return 0;
    if (job.pending()) return job.task ? 3 : 4;
    return job.id == name.id ? 2 : 1;
  };
  JobPtr out;
  int best = 0;
  for (const auto& job : jobs) {
    if (const int its = rank(*job); its > best) {
      best = its;
      out = job;
    }
  }
  return out;
}

core::Result<JobPtr> recorded_job(const std::string& controller, const JobName& name,
                                  core::Result<ClusterFacts::Rows<QueuedJob>> rows) {
  // A 404 without the number of a Slurm error comes from a proxy. Only slurmdbd can report that the job does not exist.
  const bool none = !rows && rows.error().code == core::ErrorCode::kNotFound && !rows.error().reason.empty();
  if (!rows && !none) {
    if (rows.error().code == core::ErrorCode::kCancelled) return std::unexpected(rows.error());
    // Uses kInternal, because explain() describes most other codes as failures of the API server. The API server has answered
    // here.
    return core::fail(core::ErrorCode::kInternal,
                      fmt::format("job {} is not in the queue of cluster {}, and slurmdbd did not answer whether it ended: {}",
                                  name.text(), controller, slinky::one_line(rows.error().message)));
  }
  JobPtr out;
  if (rows) {
    // If Slurm has used the number for several jobs, slurmdbd returns several records, the newest last.
    std::ranges::reverse(*rows);
    out = find_job(name, *rows);
  }
  if (out != nullptr) return out;
  return core::fail(core::ErrorCode::kNotFound,
                    fmt::format("cluster {} knows no job {}: it never existed, or ended so long ago that Slurm forgot it",
                                controller, name.text()));
}

core::Result<WhyFacts> read_why(Api& api, const ReachedCluster& cluster, const JobName& name) {
  const kube::Key controller = kube::key_of(cluster.controller);
  SlurmAccess& slurm = *cluster.slurm;
  WhyFacts out{controller.ns, controller.name, nullptr, {}};
  auto jobs = slurm.await<ClusterFacts::Rows<QueuedJob>>(api, [&](auto done) { slurm.client().queue(std::move(done)); });
  if (!jobs) return std::unexpected(jobs.error());
  out.cluster.jobs = std::move(*jobs);
  out.cluster.now = api.clock().wall();
  out.job = find_job(name, out.cluster.jobs);
  if (out.job == nullptr) {
    auto recorded = recorded_job(out.controller, name, ask_slurmdbd(api, slurm, cluster.controller, name));
    if (!recorded) return std::unexpected(recorded.error());
    out.job = std::move(*recorded);
  }
  if (!out.job->pending()) return out;
  auto partitions = slurm.await<ClusterFacts::Rows<slurm::accounting::PartitionRules>>(
      api, [&](auto done) { slurm.client().partition_rules(std::move(done)); });
  if (!partitions) {
    // slurmrestd needs slurmdbd for the names in a partition's rules, and slurmdbd might not answer.
    out.cluster.no_limits = partitions.error().message;
    return out;
  }
  out.cluster.partitions = std::move(*partitions);
  read_limits(api, slurm, cluster.controller, cluster_of_job(cluster.controller, *out.job), out.cluster);
  return out;
}

Json why_document(const WhyFacts& facts) {
  const QueuedJob& job = *facts.job;
  Json out{{"apiVersion", "cli.slinky.slurm.net/v1"},
           {"kind", "JobExplanation"},
           {"namespace", facts.ns},
           {"cluster", facts.controller},
           {"job", explained_job_json(job)}};
  out["reason"] = {{"name", job.reason}, {"meaning", ""}, {"advice", ""}};
  out["details"] = Json::array();
  out["limits"] = Json::array();
  out["limitsUnknown"] = facts.cluster.no_limits;
  out["note"] = "";
  out["expectedStart"] = nullptr;
  out["limitFreeBy"] = nullptr;
  const auto named = limit_of_reason(job.reason);
  if (const auto text = explain_any_reason(job.reason)) {
    out["reason"]["meaning"] = text->meaning;
    out["reason"]["advice"] = text->advice;
  }
  if (!job.pending()) return out;
  out["details"] = details_of_reason(job, facts.cluster);
  const bool held = is_held(job);
  if (!held && job.start && *job.start > facts.cluster.now) out["expectedStart"] = core::format_rfc3339(*job.start);

  const std::vector<JobLimit> limits = limits_of(job, facts.cluster);
  const auto is_named = [&](const JobLimit& limit) {
    return named && limit.of_qos() == named->of_qos && limit.kind->name == named->name && named->covers(limit.tres);
  };
  // Slurm names the first limit that holds the job.
  const auto first = std::ranges::find_if(limits, [&](const JobLimit& limit) { return is_named(limit) && limit.holds(); });
  const bool counted = first != limits.end();
  for (auto limit = limits.begin(); limit != limits.end(); ++limit) {
    const bool its = counted ? limit == first : is_named(*limit);
    if (its || limit->holds()) out["limits"].push_back(limit_json(*limit, its));
  }
  if (!named || !facts.cluster.no_limits.empty()) return out;
  if (counted && first->never()) {
    out["note"] = "The job alone is beyond this limit: as it is, it never starts.";
  } else if (counted) {
    out["limitFreeBy"] = moment_json(free_by(*first));
  } else if (out["limits"].empty() || std::ranges::none_of(limits, is_named)) {
    out["note"] = "No such limit is set any more. Slurm will consider the job again soon.";
  } else if (std::ranges::all_of(limits, [&](const JobLimit& limit) { return !is_named(limit) || limit.over.has_value(); })) {
    out["note"] = "With the jobs that run now, the limit is not reached. Slurm will consider the job again soon.";
  } else {
    out["note"] = "slurmrestd does not report what counts against this limit. `scontrol show assoc_mgr` does.";
  }
  return out;
}

std::string why_text(const Json& document, const Style& style, core::WallTime now) {
  const Json& job = document["job"];
  const std::string state = core::get_string(job, {"state"});
  if (state == "PENDING") return pending_text(document, style, now);
  std::string out = style.paint(Tone::kStrong, "Job " + core::get_string(job, {"id"}));
  const std::string started = core::get_string(job, {"started"}), ends = core::get_string(job, {"ends"});
  const std::string nodes = core::get_string(job, {"nodes"});
  if (job["exitCode"].is_null()) {
    out += fmt::format(" is not pending: it is {}, {}, since {} on {}\n", state, printable(of_whom(job)),
                       moment_text(started, now), nodes);
    return out + (ends.empty() ? "It has no time limit.\n" : "Its time limit ends it at " + moment_text(ends, now) + ".\n");
  }
  out += fmt::format(" is not pending: it has ended, {}: {}", printable(of_whom(job)), state);
  if (!ends.empty()) out += " at " + moment_text(ends, now);
  out += "\n";
  const std::string reason = core::get_string(document, {"reason", "name"});
  const std::string meaning = core::get_string(document, {"reason", "meaning"});
  if (!reason.empty() && reason != "None")
    out += "Reason: " + printable(reason) + "\n" + (meaning.empty() ? "" : "  " + meaning + "\n");
  if (!started.empty()) out += "It began at " + moment_text(started, now) + (nodes.empty() ? "" : " on " + nodes) + ".\n";
  if (const auto code = core::get_int(job, {"exitCode"}); code != 0) out += fmt::format("Its exit code was {}.\n", code);
  return out;
}

}  // namespace cli
