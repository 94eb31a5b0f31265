#include "enlist/rules/leave.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "enlist/rules/judge.hpp"
#include "slurm/holds.hpp"

namespace enlist {
namespace {

using testing::HasSubstr;

constexpr core::MonoTime kBegin{core::Duration{1'000'000}};
constexpr core::Duration kTick{1000};

std::string held(std::string_view why) {
  return slurm::Holds().hold(slurm::Owner::kEnlistment, why).reason();
}

/// A node that leaves. By default it is drained, and nothing runs there.
struct Leave {
  Node node{.name = "gpu-1", .pool = "gpu", .key = "k"};
  slurm::Node record;
  std::vector<slurm::Job> jobs;
  bool in_slurm = true, complete = true;
  core::MonoTime now = kBegin;
  std::optional<core::MonoTime> asked_at = kBegin, heard_at = kBegin, kept_since;
  core::MonoTime requested_at = kBegin;
  std::string two_hosts;
  std::string_view why{};

  Leave() {
    node.phase = Phase::kDraining;
    node.leaving = {.wanted = true};
    node.confirmed = "one";
    node.report = {.hostname = "h", .boot_id = "b", .instance_id = "one", .running = true, .steps_known = true};
    record.name = "gpu-1";
    record.instance_id = "one";
    record.reason = held(kLeaves);
    record.state = {"IDLE", {"DRAIN", "DYNAMIC_NORM"}};
  }
  slurm::Job& job(std::string state, std::set<std::string, std::less<>> flags = {}) {
    slurm::Job out;
    out.id = 12 + static_cast<std::int64_t>(jobs.size());
    out.state = std::move(state);
    out.flags = std::move(flags);
    out.nodes = {"gpu-1"};
    return jobs.emplace_back(std::move(out));
  }
  /// A pending job requires the node by its name.
  void awaited() {
    slurm::Job& waiting = job("PENDING");
    waiting.nodes.clear();
    waiting.only_named = 1;
    waiting.required_nodes = "gpu-[1-2]";
  }
  /// The node does not leave, but is restarted with other parameters.
  void configures() {
    node.leaving = {};
    node.configuring = {.wanted = true, .conf = "RealMemory=500"};
    record.reason = held(kConfigures);
  }
  void configures_stopped() {
    configures();
    stopped();
    node.leaving = {};
    node.configuring.stop = true;
    kept_since = kBegin;
  }
  void stopped() {
    node.leaving.stop = true;
    node.phase = Phase::kStopping;
    node.report.running = false;
    node.report.stopped = true;
  }
  /// The agent has not reported for kSilentAfter.
  void unheard() {
    now = kBegin + kSilentAfter;
    requested_at = now;
  }
  void dies() {
    unheard();
    record.state.flags.insert("NOT_RESPONDING");
    record.state.base = "DOWN";
  }
  [[nodiscard]] Leaves judged() const {
    auto slurm = std::make_shared<slurm::Snapshot>();
    slurm->health = complete ? slurm::Snapshot::Health::kComplete : slurm::Snapshot::Health::kStale;
    slurm->error = complete ? "" : "connection refused";
    slurm->requested_at = requested_at;
    if (in_slurm) slurm->nodes["gpu-1"] = std::make_shared<slurm::Node>(record);
    for (const slurm::Job& one : jobs) slurm->jobs[one.id] = std::make_shared<slurm::Job>(one);
    return judge_leave({.node = node,
                        .slurm = slurm,
                        .asked_at = asked_at,
                        .heard_at = heard_at,
                        .kept_since = kept_since,
                        .now = now,
                        .two_hosts = two_hosts,
                        .why = why});
  }
};

struct LeaveRow {
  const char* name;
  std::function<void(Leave&)> change;
  Phase phase;
  const char* message;  ///< A part of the message.
  const char* acts;     ///< The members among "drain", "stop", "erase", "forget", "cancel", "start" that are true.
};

const std::vector<LeaveRow>& leave_table() {
  static const std::vector<LeaveRow> kTable{
      // --- Unknown values count as running jobs ---
      {"Slurm is away", [](Leave& c) { c.complete = false; }, Phase::kDraining, "Slurm does not answer: connection refused",
       ""},
      {"Slurm is away, later on",
       [](Leave& c) {
         c.stopped();
         c.complete = false;
       },
       Phase::kStopping, "Slurm does not answer", "stop"},
      {"Slurm was asked before the wish", [](Leave& c) { c.requested_at = kBegin - kTick; }, Phase::kDraining,
       "Slurm has not reported the jobs on the node yet", ""},
      {"this process has not seen the wish", [](Leave& c) { c.asked_at.reset(); }, Phase::kDraining,
       "Slurm has not reported the jobs on the node yet", ""},
      {"the agent has not said what runs", [](Leave& c) { c.node.report.steps_known = false; }, Phase::kDraining,
       "has not reported yet whether job steps run", ""},

      // --- Two hosts use the key: the report may be that of the copy ---
      {"two hosts use its key", [](Leave& c) { c.two_hosts = "two hosts"; }, Phase::kStuck, "two hosts", ""},
      {"two hosts, and it is in service",
       [](Leave& c) {
         c.two_hosts = "two hosts";
         c.record.state.flags.erase("DRAIN");
       },
       Phase::kDraining, "Slurm has not drained it yet", "drain"},
      {"two hosts, and one has stopped slurmd",
       [](Leave& c) {
         c.stopped();
         c.two_hosts = "two hosts";
       },
       Phase::kStuck, "two hosts", "stop"},
      {"two hosts, and Slurm does not have it any more",
       [](Leave& c) {
         c.stopped();
         c.node.phase = Phase::kGone;
         c.node.report.left = true;
         c.in_slurm = false;
         c.two_hosts = "two hosts";
       },
       Phase::kStuck, "two hosts", "stop"},
      {"two hosts, and it gets other words",
       [](Leave& c) {
         c.configures_stopped();
         c.two_hosts = "two hosts";
       },
       Phase::kStuck, "two hosts", "stop"},
      {"two hosts, and its key is revoked",
       [](Leave& c) {
         c.node.revoked = true;
         c.two_hosts = "two hosts";
       },
       Phase::kDeleting, "Slurm has not deleted its record yet", "stop erase"},

      // --- Draining ---
      {"in service",
       [](Leave& c) {
         c.record.state.flags.erase("DRAIN");
         c.record.reason.clear();
       },
       Phase::kDraining, "Slurm has not drained it yet", "drain"},
      {"at the gate", [](Leave& c) { c.record.reason = held(kGate); }, Phase::kDraining, "not drained it yet", "drain"},
      {"another program of ours drains it", [](Leave& c) { c.record.reason = "slurm-bridge: pods"; }, Phase::kDraining,
       "not drained it yet", "drain"},
      {"somebody else drains it", [](Leave& c) { c.record.reason = "fan"; }, Phase::kStopping, "the agent stops slurmd",
       "stop"},
      {"it was to get other words before", [](Leave& c) { c.record.reason = held(kConfigures); }, Phase::kDraining,
       "not drained it yet", "drain"},
      {"the reason is given",
       [](Leave& c) {
         c.record.reason = held(kConfigures);
         c.why = kConfigures;
       },
       Phase::kStopping, "the agent stops slurmd", "stop"},
      {"another reason is given", [](Leave& c) { c.why = kConfigures; }, Phase::kDraining, "not drained it yet", "drain"},
      {"being undrained", [](Leave& c) { c.record.state.flags.insert("UNDRAIN"); }, Phase::kDraining, "not drained it yet",
       "drain"},

      // --- Waiting for the jobs and steps that Slurm or the host reports ---
      {"a job runs", [](Leave& c) { c.job("RUNNING"); }, Phase::kDraining, "jobs run there: 12", ""},
      {"a job starts", [](Leave& c) { c.job("RUNNING", {"CONFIGURING"}); }, Phase::kDraining, "jobs run there: 12", ""},
      {"a job is suspended, and Slurm shows the node as idle", [](Leave& c) { c.job("SUSPENDED"); }, Phase::kDraining,
       "jobs are suspended there: 12", ""},
      {"a job is completing", [](Leave& c) { c.job("COMPLETED", {"COMPLETING"}); }, Phase::kDraining, "completing there", ""},
      {"only the node says that a job completes", [](Leave& c) { c.record.state.flags.insert("COMPLETING"); }, Phase::kDraining,
       "completing", ""},
      {"only the node says that it works", [](Leave& c) { c.record.state.base = "MIXED"; }, Phase::kDraining,
       "Slurm shows it as MIXED", ""},
      {"Slurm does not know it yet", [](Leave& c) { c.record.state.base = "UNKNOWN"; }, Phase::kDraining,
       "Slurm shows it as UNKNOWN", ""},
      {"Slurm has refused its registration",
       [](Leave& c) {
         c.record.state.base = "UNKNOWN";
         c.record.state.flags.insert("INVALID_REG");
       },
       Phase::kStopping, "the agent stops slurmd", "stop"},
      {"a job whose nodes cannot be read",
       [](Leave& c) {
         slurm::Job& job = c.job("RUNNING");
         job.nodes.clear();
         job.nodes_unknown = true;
       },
       Phase::kDraining, "12 (its nodes cannot be read)", ""},
      {"a job waits for it by name", [](Leave& c) { c.awaited(); }, Phase::kDraining,
       "pending jobs request this node by name, and Slurm would end them: 12", ""},
      {"a job waits for it by name, and slurmd is stopped",
       [](Leave& c) {
         c.stopped();
         c.awaited();
       },
       Phase::kDraining, "by name", "stop"},
      {"other words: a job waits for it by name, and slurmd is stopped",
       [](Leave& c) {
         c.configures_stopped();
         c.awaited();
       },
       Phase::kDraining, "by name, and Slurm would end them: 12", ""},
      {"it leaves while slurmd is stopped for other words",
       [](Leave& c) {
         c.configures_stopped();
         c.node.leaving.wanted = true;
         c.record.reason = held(kLeaves);
       },
       Phase::kDeleting, "Slurm has not deleted its record yet", "stop erase"},
      {"a reservation", [](Leave& c) { c.record.reservation = "maint"; }, Phase::kDraining, "active reservation maint", ""},
      {"steps on the host",
       [](Leave& c) {
         c.node.report.steps = {"12.0", "12.batch"};
       },
       Phase::kDraining, "steps still run on the host: 12.0, 12.batch", ""},
      {"a job that began after somebody undrained it",
       [](Leave& c) {
         c.stopped();
         c.job("RUNNING");
       },
       Phase::kDraining, "jobs run there", ""},

      // --- Restart with other parameters: the node leaves Slurm in the same steps, and starts again ---
      {"other words: in service",
       [](Leave& c) {
         c.configures();
         c.record.state.flags.erase("DRAIN");
         c.record.reason.clear();
       },
       Phase::kDraining, "Slurm has not drained it yet", "drain"},
      {"other words: it is kept from leaving",
       [](Leave& c) {
         c.configures();
         c.record.reason = held(kLeaves);
       },
       Phase::kDraining, "Slurm has not drained it yet", "drain"},
      {"other words: a job runs",
       [](Leave& c) {
         c.configures();
         c.job("RUNNING");
       },
       Phase::kDraining, "jobs run there: 12", ""},
      {"other words: a job is suspended",
       [](Leave& c) {
         c.configures();
         c.job("SUSPENDED");
       },
       Phase::kDraining, "jobs are suspended there: 12", ""},
      {"other words: steps on the host",
       [](Leave& c) {
         c.configures();
         c.node.report.steps = {"12.0"};
       },
       Phase::kDraining, "steps still run on the host: 12.0", ""},
      {"other words: a host of which nothing is heard is waited for",
       [](Leave& c) {
         c.configures();
         c.dies();
         c.node.report.steps_known = false;
       },
       Phase::kDraining, "start it", ""},
      {"other words: nothing runs there", [](Leave& c) { c.configures(); }, Phase::kStopping, "the agent stops slurmd", "stop"},
      {"other words: slurmd is stopped", [](Leave& c) { c.configures_stopped(); }, Phase::kDeleting,
       "Slurm has not deleted its record yet", "stop erase"},
      {"other words: the record is gone, by an answer from before the stop",
       [](Leave& c) {
         c.configures_stopped();
         c.in_slurm = false;
       },
       Phase::kDeleting, "deleted", "stop"},
      {"other words: the record is gone",
       [](Leave& c) {
         c.configures_stopped();
         c.in_slurm = false;
         c.requested_at = kBegin + kTick;
       },
       Phase::kStarting, "the agent starts slurmd with the new parameters", "start"},

      // --- Nothing runs on the node: stop slurmd, delete the record, clean up, forget ---
      {"nothing runs there", [](Leave&) {}, Phase::kStopping, "the agent stops slurmd", "stop"},
      {"the agent cannot stop slurmd", [](Leave& c) { c.node.report.error = "systemctl: no"; }, Phase::kStopping,
       "the agent reports: systemctl: no", "stop"},
      {"slurmd is stopped", [](Leave& c) { c.stopped(); }, Phase::kDeleting, "Slurm has not deleted its record yet",
       "stop erase"},
      {"the record is gone, by an answer from before the stop",
       [](Leave& c) {
         c.stopped();
         c.in_slurm = false;
         c.kept_since = kBegin;
       },
       Phase::kDeleting, "deleted", "stop"},
      {"the record is gone",
       [](Leave& c) {
         c.stopped();
         c.in_slurm = false;
         c.kept_since = kBegin;
         c.requested_at = kBegin + kTick;
       },
       Phase::kGone, "Slurm does not have the node any more; the agent cleans up the host", "stop"},
      {"the host is clean",
       [](Leave& c) {
         c.stopped();
         c.in_slurm = false;
         c.node.phase = Phase::kGone;
         c.node.report.left = true;
       },
       Phase::kGone, "Slurm does not have the node", "stop forget"},
      {"the host cannot be cleaned up",
       [](Leave& c) {
         c.stopped();
         c.in_slurm = false;
         c.node.phase = Phase::kGone;
         c.unheard();
       },
       Phase::kGone, "Slurm does not have the node", "stop forget"},
      {"it never was in Slurm, and slurmd may run", [](Leave& c) { c.in_slurm = false; }, Phase::kStopping, "stops slurmd",
       "stop"},
      {"a record of somebody else",
       [](Leave& c) {
         c.stopped();
         c.record.instance_id = "foreign";
         c.record.state = {"MIXED", {}};
         c.job("RUNNING");
       },
       Phase::kGone, "another slurmd under this name, and that record stays", "stop"},
      {"the record is back",
       [](Leave& c) {
         c.stopped();
         c.node.phase = Phase::kGone;
       },
       Phase::kDeleting, "deleted", "stop erase"},

      // --- A step takes too long ---
      {"a job may run for long",
       [](Leave& c) {
         c.job("RUNNING");
         c.kept_since = kBegin - std::chrono::hours(24);
       },
       Phase::kDraining, "jobs run there", ""},
      {"suspended for too long",
       [](Leave& c) {
         c.job("SUSPENDED");
         c.kept_since = kBegin - kStuckAfter;
       },
       Phase::kStuck, "jobs are suspended there", ""},
      {"a reservation that stays",
       [](Leave& c) {
         c.record.reservation = "maint";
         c.kept_since = kBegin - kStuckAfter;
       },
       Phase::kStuck, "reservation maint", ""},
      {"an agent that does not stop slurmd",
       [](Leave& c) {
         c.node.leaving.stop = true;
         c.kept_since = kBegin - kStuckAfter;
       },
       Phase::kStuck, "the agent stops slurmd", "stop"},
      {"a record that Slurm does not delete",
       [](Leave& c) {
         c.stopped();
         c.kept_since = kBegin - kStuckAfter;
       },
       Phase::kStuck, "deleted", "stop erase"},

      // --- Hosts whose agent does not report ---
      {"the agent is silent, and slurmd runs",
       [](Leave& c) {
         c.unheard();
         c.node.report.steps_known = false;
       },
       Phase::kDraining, "has not reported for two minutes: start it, or remove the node with --force", ""},
      {"dead", [](Leave& c) { c.dies(); }, Phase::kDeleting, "deleted", "stop erase"},
      {"dead, with jobs",
       [](Leave& c) {
         c.dies();
         c.job("RUNNING");
       },
       Phase::kDraining, "Slurm ends its jobs itself after SlurmdTimeout", ""},
      {"dead, and Slurm never had it",
       [](Leave& c) {
         c.unheard();
         c.in_slurm = false;
       },
       Phase::kGone, "does not have the node", "stop"},
      {"revoked",
       [](Leave& c) {
         c.node.revoked = true;
         c.node.report.steps_known = false;
       },
       Phase::kDeleting, "deleted", "stop erase"},
      {"by force, at once",
       [](Leave& c) {
         c.node.leaving.force = true;
         c.node.report.steps_known = false;
       },
       Phase::kDraining, "has not reported", ""},
      {"by force, an agent that cannot say it",
       [](Leave& c) {
         c.node.leaving.force = true;
         c.node.report.steps_known = false;
         c.now = kBegin + kForcedAfter;
         c.heard_at = c.now;
       },
       Phase::kDeleting, "deleted", "stop erase"},
      {"by force, an agent that reports an error, at first",
       [](Leave& c) {
         c.node.leaving.force = true;
         c.node.report.error = "the check fails";
         c.now = kBegin + kForcedAfter;
         c.heard_at = c.kept_since = c.now;
       },
       Phase::kStopping, "the agent stops slurmd", "stop"},
      {"by force, an agent that reports an error and does not stop slurmd",
       [](Leave& c) {
         c.node.leaving.force = true;
         c.node.report.error = "systemctl: no";
         c.now = kBegin + kForcedAfter;
         c.heard_at = c.now;
         c.kept_since = kBegin;
       },
       Phase::kDeleting, "deleted", "stop erase"},
      {"by force, with steps that Slurm does not know",
       [](Leave& c) {
         c.node.leaving.force = true;
         c.now = kBegin + kForcedAfter;
         c.heard_at = c.now;
         c.node.report.steps = {"12.0"};
         c.node.report.error = "step 12.0 runs on the host";
       },
       Phase::kDraining, "steps still run on the host: 12.0", ""},
      {"by force, with steps, and the agent waits for an answer",
       [](Leave& c) {
         c.node.leaving.force = true;
         c.now = kBegin + kSilentAfter - kTick;
         c.node.report.steps = {"12.0"};
       },
       Phase::kDraining, "steps still run on the host: 12.0", ""},
      {"by force, with steps that an agent reported that is silent",
       [](Leave& c) {
         c.node.leaving.force = true;
         c.unheard();
         c.node.report.steps = {"12.0"};
       },
       Phase::kDeleting, "deleted", "stop erase"},
      {"with steps that an agent reported that is silent",
       [](Leave& c) {
         c.unheard();
         c.node.report.steps = {"12.0"};
       },
       Phase::kDraining, "steps still run on the host: 12.0", ""},
      {"by force, with a job",
       [](Leave& c) {
         c.node.leaving.force = true;
         c.now = kBegin + kForcedAfter;
         c.job("RUNNING");
       },
       Phase::kDraining, "jobs run there", ""},
      {"a dead host that returns",
       [](Leave& c) {
         c.node.leaving.dead = true;
         c.node.leaving.stop = false;
       },
       Phase::kDraining, "its host has returned", "cancel"},
  };
  return kTable;
}

// Requirement 20
// Requirement 21
TEST(LeaveRules, Table) {
  for (const LeaveRow& row : leave_table()) {
    Leave leave;
    row.change(leave);
    const Leaves judged = leave.judged();
    std::string acts;
    for (const auto& [is, name] :
         {std::pair{judged.drain, "drain"}, std::pair{judged.stop, "stop"}, std::pair{judged.erase, "erase"},
          std::pair{judged.forget, "forget"}, std::pair{judged.cancel, "cancel"}, std::pair{judged.start, "start"}}) {
      if (is) acts += (acts.empty() ? "" : " ") + std::string(name);
    }
    EXPECT_EQ(to_string(judged.phase), to_string(row.phase)) << row.name;
    EXPECT_THAT(judged.message, HasSubstr(row.message)) << row.name;
    EXPECT_EQ(acts, row.acts) << row.name;
    EXPECT_THAT(judged.message, Not(HasSubstr("\n"))) << row.name;
  }
}

TEST(LeaveRules, TheAgentIsToldOneThingAfterTheOther) {
  Node node{.name = "gpu-1", .pool = "gpu", .key = "k"};
  EXPECT_EQ(leave_of(node), "");
  node.leaving.wanted = true;
  EXPECT_EQ(leave_of(node), kLeaveSteps);
  node.leaving.stop = true;
  node.phase = Phase::kStuck;
  EXPECT_EQ(leave_of(node), kLeaveStop);
  node.phase = Phase::kGone;
  EXPECT_EQ(leave_of(node), kLeaveClean);

  node.leaving = {};
  node.phase = Phase::kDraining;
  node.configuring = {.wanted = true, .live = true};
  EXPECT_EQ(leave_of(node), "") << "slurmd is not touched";
  node.configuring.live = false;
  EXPECT_EQ(leave_of(node), kLeaveSteps);
  node.configuring.stop = true;
  EXPECT_EQ(leave_of(node), kLeaveStop);
  node.leaving.wanted = true;
  EXPECT_EQ(leave_of(node), kLeaveStop) << "it leaves from there";
}

}  // namespace
}  // namespace enlist
