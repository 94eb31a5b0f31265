#include "enlist/rules/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "enlist/rules/node_conf.hpp"
#include "slurm/holds.hpp"

namespace enlist {
namespace {

using testing::HasSubstr;

constexpr core::MonoTime kStart{core::Duration{1'000'000}};
constexpr core::Duration kSecond{1000};
const std::string kGateReason = slurm::Holds().hold(slurm::Owner::kEnlistment, kGate).reason();

/// One node, as the coordinator and Slurm have it. By default slurmd runs, and Slurm shows the node behind the gate.
struct Case {
  Node node{.name = "gpu-1", .pool = "gpu", .key = "k"};
  slurm::Node record;
  bool in_slurm = true;
  slurm::Snapshot slurm;
  std::optional<core::MonoTime> running_since, registered_at, started_at, heard_at = kStart;
  int registered = 0;
  core::MonoTime now = kStart;
  std::optional<std::size_t> max_node_count = 1024;
  std::string two_hosts;

  Case() {
    node.phase = Phase::kConfirming;
    node.report = {.hostname = "h",
                   .boot_id = "b",
                   .slurm_version = "26.05.1",
                   .conf = gated_conf("CPUs=8 RealMemory=64000", "gpu"),
                   .instance_id = "one",
                   .running = true,
                   .check_passed = true};
    record.name = "gpu-1";
    record.address = "10.0.0.1";
    record.hostname = "h";
    record.instance_id = "one";
    record.reason = kGateReason;
    record.state = {"IDLE", {"DRAIN", "DYNAMIC_NORM"}};
    record.features = record.active_features = {"gpu"};
    record.partitions = {"gpu"};
    record.cpus = 8;
    record.real_memory_mib = 64000;
    slurm.health = slurm::Snapshot::Health::kComplete;
    slurm.requested_at = kStart;
    slurm.capabilities.release = "26.05.5";
    slurm.partitions["gpu"] = {.name = "gpu", .nodes = "gpu", .state = "UP"};
  }
  /// slurmd has run for this long without being confirmed.
  void for_long(core::Duration time) { running_since = now - time; }
  /// slurmd was started again, `later` after the start that Slurm still shows.
  void was_restarted(core::Duration later = 11 * kSecond) {
    was_ready();
    node.phase = Phase::kStarting;
    record.slurmd_start_time = core::WallTime{1'000'000 * kSecond};
    node.report.started = *record.slurmd_start_time + later;
    started_at = now - kSecond;
  }
  /// The node was ready before its host booted, and its check has not passed since.
  void was_booted() {
    was_ready();
    node.gate_boot = "a";
    node.report.check_passed = false;
  }
  /// The gate of the node was opened, and nothing drains the node.
  void was_ready() {
    node.phase = Phase::kReady;
    node.confirmed = "one";
    record.state.flags = {"DYNAMIC_NORM"};
    record.reason.clear();
  }
  [[nodiscard]] Judged judged() const {
    slurm::Snapshot snapshot = slurm;
    if (in_slurm) snapshot.nodes["gpu-1"] = std::make_shared<slurm::Node>(record);
    return judge({.node = node,
                  .slurm = std::make_shared<slurm::Snapshot>(snapshot),
                  .running_since = running_since,
                  .registered_at = registered_at,
                  .registered = registered,
                  .started_at = started_at,
                  .heard_at = heard_at,
                  .now = now,
                  .max_node_count = max_node_count,
                  .two_hosts = two_hosts});
  }
};

struct Row {
  const char* name;
  std::function<void(Case&)> change;
  Phase phase;
  const char* message;  ///< A part of the message; "=": the message is empty.
  enum Act { kNone, kOpen, kRegister, kClose } act = kNone;
};

const std::vector<Row>& table() {
  static const std::vector<Row> kTable{
      // --- slurmd does not run yet ---
      {"no report yet",
       [](Case& c) {
         c.node.report = {.hostname = "h", .boot_id = "", .slurm_version = "26.05.0"};  // The host has just joined.
         c.node.phase = Phase::kPending;
         c.in_slurm = false;
       },
       Phase::kPending, "its agent has not reported yet"},
      {"two hosts use its key", [](Case& c) { c.two_hosts = "two hosts"; }, Phase::kImpostor, "two hosts"},
      {"two hosts use its key, and it was ready",
       [](Case& c) {
         c.was_booted();
         c.two_hosts = "two hosts";
       },
       Phase::kImpostor, "two hosts"},
      {"no report yet, and Slurm has the name",
       [](Case& c) {
         c.node.report = {.hostname = "h", .boot_id = "", .slurm_version = "26.05.0"};  // The host has just joined.
         c.node.phase = Phase::kPending;
       },
       Phase::kImpostor, "which was never on this host (host h, address 10.0.0.1)"},
      {"the agent prepares",
       [](Case& c) {
         c.node.report = {.hostname = "h", .boot_id = "b"};
         c.in_slurm = false;
       },
       Phase::kStarting, "prepares slurmd"},
      {"slurmd is started again",
       [](Case& c) {
         c.was_ready();
         c.node.report.running = false;
       },
       Phase::kStarting, "the agent starts it"},
      {"slurmd failed",
       [](Case& c) {
         c.node.report.running = false;
         c.node.report.error = "fatal: no key";
         c.in_slurm = false;
       },
       Phase::kRefused, "slurmd does not run: fatal: no key"},
      {"slurmd failed, and Slurm still shows it",
       [](Case& c) {
         c.was_ready();
         c.node.report.running = false;
         c.node.report.error = "disk full";
       },
       Phase::kRefused, "slurmd does not run: disk full"},

      {"a note is no error",
       [](Case& c) {
         c.node.report.running = false;
         c.node.report.note = "note: another slurm.conf";
         c.in_slurm = false;
       },
       Phase::kStarting, "slurmd does not run; the agent starts it; note: another slurm.conf"},

      // --- slurmd runs, and Slurm does not show it ---
      {"just started", [](Case& c) { c.in_slurm = false; }, Phase::kConfirming, "Slurm does not show it yet"},
      {"four seconds",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(4 * kSecond);
       },
       Phase::kConfirming, "Slurm does not show it yet"},
      {"five seconds: the registration may be lost",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(5 * kSecond);
       },
       Phase::kConfirming, "Slurm does not show it yet", Row::kRegister},
      {"nine seconds, and it has registered again",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(9 * kSecond);
         c.registered_at = c.now - 4 * kSecond;
         c.registered = 1;
         c.node.registrations = c.node.report.registrations = 1;
       },
       Phase::kConfirming, "Slurm does not show it yet"},
      {"nine seconds, and the agent has not registered it again yet",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(9 * kSecond);
         c.node.registrations = 1;
       },
       Phase::kConfirming, "Slurm does not show it yet"},
      {"refused for a reason that only slurmctld knows",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(10 * kSecond);
       },
       Phase::kRefused, "not accepted the node within 10 s, and gives no reason", Row::kRegister},
      {"the network is the first cause that is named",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(10 * kSecond);
       },
       Phase::kRefused,
       "Usual causes: the host does not resolve the name in SlurmctldHost, or does not reach its port (6817); ",
       Row::kRegister},
      {"a slurmd that starts has not been refused",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(10 * kSecond);
         c.node.report.error = "slurmd is still starting: slurmd: error: getaddrinfo() failed";
       },
       Phase::kRefused,
       "slurmd has not registered within 10 s; the agent reports: slurmd is still starting: slurmd: error: getaddrinfo() "
       "failed",
       Row::kRegister},
      {"a slurmd of somebody else",
       [](Case& c) {
         c.in_slurm = false;
         c.node.report.running = false;
         c.node.report.error = "slurmd runs already, and slurm-enlist has not started it: stop and disable it (...)";
       },
       Phase::kRefused, "slurmd runs already, and slurm-enlist has not started it: stop and disable it (...)"},
      {"refused, and the agent knows more",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(10 * kSecond);
         c.node.report.error = "slurmd: authentication failed";
       },
       Phase::kRefused, "; the agent reports: slurmd: authentication failed", Row::kRegister},
      {"Slurm was not asked since slurmd runs",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(10 * kSecond);
         c.slurm.requested_at = kStart - 11 * kSecond;
       },
       Phase::kConfirming, "Slurm does not show it yet"},
      {"the table is full",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(kSecond);
         c.slurm.nodes["other"] = std::make_shared<slurm::Node>();
         c.max_node_count = 1;
       },
       Phase::kRefused, "node table is full: it has 1 nodes, and MaxNodeCount=1"},
      {"the table has room for one",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(kSecond);
         c.slurm.nodes["other"] = std::make_shared<slurm::Node>();
         c.max_node_count = 2;
       },
       Phase::kConfirming, "Slurm does not show it yet"},
      {"the size of the table is not known",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(10 * kSecond);
         c.max_node_count.reset();
       },
       Phase::kRefused, "(MaxNodeCount); a NodeSet called gpu-1", Row::kRegister},
      {"the table was full before slurmd ran",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(kSecond);
         c.slurm.requested_at = kStart - 2 * kSecond;
         c.max_node_count = 0;
       },
       Phase::kConfirming, "Slurm does not show it yet"},
      {"the name of a partition",
       [](Case& c) {
         c.in_slurm = false;
         c.for_long(10 * kSecond);
         c.slurm.partitions["gpu-1"] = {};
       },
       Phase::kRefused, "a partition is called gpu-1 too", Row::kRegister},
      {"slurmd is newer than slurmctld",
       [](Case& c) {
         c.in_slurm = false;
         c.node.report.slurm_version = "26.11.0";
       },
       Phase::kRefused, "slurmd is 26.11.0 and slurmctld is 26.05.5: slurmd must not be newer"},

      // --- Slurm shows another process ---
      {"Slurm shows the process from before a restart",
       [](Case& c) {
         c.was_ready();
         c.node.report.instance_id = "two";
         c.for_long(kSecond);
       },
       Phase::kConfirming, "an earlier slurmd"},
      {"Slurm shows the process from before a restart for long",
       [](Case& c) {
         c.was_ready();
         c.node.report.instance_id = "two";
         c.for_long(10 * kSecond);
       },
       Phase::kRefused, "Slurm still shows the slurmd from before the restart"},
      {"another slurmd has the name",
       [](Case& c) {
         c.record.instance_id = "other";
         c.record.hostname = "elsewhere";
         c.for_long(10 * kSecond);
       },
       Phase::kImpostor, "another slurmd under this name (host elsewhere, address 10.0.0.1)"},
      {"another slurmd has the name of a node that was ready",
       [](Case& c) {
         c.was_ready();
         c.record.instance_id = "other";
         c.for_long(10 * kSecond);
       },
       Phase::kImpostor, "another slurmd under this name"},
      {"a slurmd without an instance id",
       [](Case& c) {
         c.record.instance_id = c.node.report.instance_id = "";
         c.for_long(10 * kSecond);
       },
       Phase::kImpostor, "another slurmd under this name"},
      {"another slurmd was seen before ours ran",
       [](Case& c) {
         c.record.instance_id = "other";
         c.for_long(10 * kSecond);
         c.slurm.requested_at = kStart - 11 * kSecond;
       },
       Phase::kConfirming, "an earlier slurmd"},

      // --- Slurm shows this process, but not with the requested values ---
      {"INVALID_REG with Slurm's reason",
       [](Case& c) {
         c.record.state.flags.insert("INVALID_REG");
         c.record.reason = "Low RealMemory (reported:24105 < 100.00% of configured:90000)";
       },
       Phase::kInvalid, "(INVALID_REG): Low RealMemory (reported:24105 < 100.00% of configured:90000)"},
      {"INVALID_REG behind the gate", [](Case& c) { c.record.state.flags.insert("INVALID_REG"); }, Phase::kInvalid,
       "(INVALID_REG): slurmctld's log has the cause"},
      {"INVALID_REG of a node that was ready",
       [](Case& c) {
         c.was_ready();
         c.record.state.flags = {"DRAIN", "INVALID_REG"};
         c.record.reason = "gres/gpu count reported lower than configured (0 < 1)";
       },
       Phase::kInvalid, "gres/gpu count reported lower"},
      {"without the feature", [](Case& c) { c.record.features = {"cpu"}; }, Phase::kInvalid, "lacks the feature gpu"},
      {"the partition is not there yet",
       [](Case& c) {
         c.record.partitions.clear();
         c.slurm.partitions.clear();
       },
       Phase::kConfirming, "Slurm has no partition gpu"},
      {"the partition does not come",
       [](Case& c) {
         c.record.partitions.clear();
         c.slurm.partitions.clear();
         c.for_long(10 * kSecond);
       },
       Phase::kInvalid, "Slurm has no partition gpu"},
      {"the partition of a node that was ready is gone",
       [](Case& c) {
         c.was_ready();
         c.record.partitions.clear();
         c.slurm.partitions.clear();
       },
       Phase::kInvalid, "Slurm has no partition gpu"},
      {"outside of the partition",
       [](Case& c) {
         c.record.partitions = {"cpu"};
         c.for_long(10 * kSecond);
       },
       Phase::kInvalid, "outside of the partition gpu"},
      {"fewer CPUs", [](Case& c) { c.record.cpus = 4; }, Phase::kInvalid, "has 4 CPUs of 8"},
      {"fewer CPUs than the topology has",
       [](Case& c) {
         c.node.report.conf = gated_conf("Boards=1 SocketsPerBoard=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=1", "gpu");
       },
       Phase::kInvalid, "has 8 CPUs of 16"},
      {"less memory", [](Case& c) { c.record.real_memory_mib = 63999; }, Phase::kInvalid, "has 63999 MiB of memory of 64000"},
      {"more of both",
       [](Case& c) {
         c.record.cpus = 9;
         c.record.real_memory_mib = 64001;
       },
       Phase::kEnlisted, "the gate opens", Row::kOpen},
      {"more CPUs than the parameters of a ready node",
       [](Case& c) {
         c.was_ready();
         c.record.cpus = 9;
       },
       Phase::kReady, "Slurm's record has 9 CPUs in place of 8: it is from before the node got these parameters"},
      {"neither was asked for",
       [](Case& c) {
         c.node.report.conf = gated_conf("", "gpu");
         c.record.cpus = 1;
       },
       Phase::kEnlisted, "the gate opens", Row::kOpen},

      // --- the gate ---
      {"confirmed", [](Case&) {}, Phase::kEnlisted, "the gate opens", Row::kOpen},
      {"slurmctld has added its words", [](Case& c) { c.record.reason = kGateReason + " : Not responding"; }, Phase::kEnlisted,
       "the gate opens", Row::kOpen},
      {"the check has not passed", [](Case& c) { c.node.report.check_passed = false; }, Phase::kEnlisted,
       "its check has not passed yet"},
      {"the check has failed",
       [](Case& c) {
         c.node.report.check_passed = false;
         c.node.report.error = "check: no /scratch";
       },
       Phase::kEnlisted, "not passed yet; the agent reports: check: no /scratch"},
      {"an administrator has drained it behind the gate", [](Case& c) { c.record.reason = "bad disk"; }, Phase::kReady,
       "somebody else has drained it: bad disk"},
      {"an administrator has added to the reason", [](Case& c) { c.record.reason = kGateReason + ", bad disk"; }, Phase::kReady,
       "somebody else has drained it: slurm-enlist: joining, bad disk"},
      {"an administrator has drained it without a reason", [](Case& c) { c.record.reason.clear(); }, Phase::kReady,
       "somebody else has drained it: no reason given"},
      {"another program holds it too",
       [](Case& c) {
         c.record.reason = kGateReason;
         c.record.reason = "slurm-bridge: pods run there; " + kGateReason;
       },
       Phase::kEnlisted, "other programs have drained it too: slurm-bridge: pods run there"},
      {"it was to leave, and stays", [](Case& c) { c.record.reason = "slurm-enlist: leaving"; }, Phase::kEnlisted, "",
       Row::kOpen},
      {"nothing was heard of it",
       [](Case& c) {
         c.was_ready();
         c.record.state = {"DOWN", {"DRAIN"}};
         c.record.reason = "slurm-enlist: silent";
       },
       Phase::kEnlisted, "", Row::kOpen},
      {"nothing was heard of it, and slurmd does not respond yet",
       [](Case& c) {
         c.was_ready();
         c.record.state = {"DOWN", {"DRAIN", "NOT_RESPONDING"}};
         c.record.reason = "slurm-enlist: silent";
       },
       Phase::kEnlisted, "slurmd does not respond"},
      {"another hold of slurm-enlist", [](Case& c) { c.record.reason = "slurm-enlist: it leaves"; }, Phase::kReady,
       "somebody else has drained it: slurm-enlist: it leaves"},
      {"down behind the gate", [](Case& c) { c.record.state.base = "DOWN"; }, Phase::kEnlisted, "Slurm shows it as DOWN"},
      {"it has never answered behind the gate", [](Case& c) { c.record.state.flags.insert("NOT_RESPONDING"); },
       Phase::kEnlisted, "slurmd does not respond"},
      {"of the future behind the gate", [](Case& c) { c.record.state.base = "FUTURE"; }, Phase::kEnlisted,
       "Slurm shows it as FUTURE"},
      {"failed behind the gate", [](Case& c) { c.record.state.flags.insert("FAIL"); }, Phase::kEnlisted,
       "Slurm shows it as FAIL"},
      {"the gate is being opened", [](Case& c) { c.record.state.flags.insert("UNDRAIN"); }, Phase::kReady, "="},

      // --- ready ---
      {"ready", [](Case& c) { c.was_ready(); }, Phase::kReady, "="},
      {"ready with jobs",
       [](Case& c) {
         c.was_ready();
         c.record.state.base = "MIXED";
       },
       Phase::kReady, "="},
      {"drained by an administrator",
       [](Case& c) {
         c.was_ready();
         c.record.state.flags.insert("DRAIN");
         c.record.reason = "bad disk";
       },
       Phase::kReady, "somebody else has drained it: bad disk"},
      {"drained by Slurm",
       [](Case& c) {
         c.was_ready();
         c.record.state.flags.insert("DRAIN");
         c.record.reason = "Kill task failed";
       },
       Phase::kReady, "somebody else has drained it: Kill task failed"},
      {"set down by an administrator",
       [](Case& c) {
         c.was_ready();
         c.record.state.base = "DOWN";
         c.record.reason = "bad disk";
       },
       Phase::kReady, "Slurm shows it as DOWN; bad disk"},
      {"ready after a restart of slurmd, for which Slurm ignores --conf",
       [](Case& c) {
         c.was_ready();
         c.node.report.instance_id = c.record.instance_id = "two";
       },
       Phase::kReady, "="},
      {"a reason that is left over does not drain",
       [](Case& c) {
         c.was_ready();
         c.record.reason = kGateReason;
       },
       Phase::kReady, "="},

      // --- after a start of slurmd ---
      {"Slurm shows the start from before", [](Case& c) { c.was_restarted(); }, Phase::kConfirming,
       "Slurm still shows its start from before"},
      {"Slurm shows the start from before, behind the gate",
       [](Case& c) {
         c.was_restarted();
         c.record.state.flags.insert("DRAIN");
         c.record.reason = kGateReason;
       },
       Phase::kConfirming, "Slurm still shows its start from before"},
      {"Slurm shows the start from before for long, behind the gate",
       [](Case& c) {
         c.was_restarted();
         c.record.state.flags.insert("DRAIN");
         c.record.reason = kGateReason;
         c.started_at = c.now - 10 * kSecond;
       },
       Phase::kEnlisted, "the gate opens", Row::kOpen},
      {"Slurm shows the start from before, and was not asked since",
       [](Case& c) {
         c.was_restarted();
         c.slurm.requested_at = c.now - 20 * kSecond;
         c.started_at = c.now - 20 * kSecond;
       },
       Phase::kConfirming, "Slurm still shows its start from before"},
      {"the clocks differ a little", [](Case& c) { c.was_restarted(10 * kSecond); }, Phase::kReady, "="},
      {"slurmd has reconfigured, so that Slurm shows a later start", [](Case& c) { c.was_restarted(-100 * kSecond); },
       Phase::kReady, "="},
      {"Slurm does not know the start",
       [](Case& c) {
         c.was_restarted();
         c.record.slurmd_start_time.reset();
       },
       Phase::kReady, "="},
      {"the agent does not know the start",
       [](Case& c) {
         c.was_restarted();
         c.node.report.started = {};
       },
       Phase::kReady, "="},
      {"Slurm shows the start from before for long",
       [](Case& c) {
         c.was_restarted();
         c.started_at = c.now - 10 * kSecond;
       },
       Phase::kReady, "was started at 1970-01-12T13:46:40Z, and the one that runs was started at 1970-01-12T13:46:51Z"},
      {"a node that works stays ready though its clock was set",
       [](Case& c) {
         c.was_restarted(3600 * kSecond);
         c.node.phase = Phase::kReady;
         c.started_at = c.now - 10 * kSecond;
       },
       Phase::kReady, "or the clock of the host was set"},
      {"a node that works stays ready while slurmd registers",
       [](Case& c) {
         c.was_restarted();
         c.node.phase = Phase::kReady;
       },
       Phase::kReady, "="},

      // --- after a boot of the host ---
      {"the check has not passed since the boot", [](Case& c) { c.was_booted(); }, Phase::kEnlisted, "the gate closes",
       Row::kClose},
      {"the check has not passed since the boot, and jobs run",
       [](Case& c) {
         c.was_booted();
         c.record.state.base = "MIXED";
       },
       Phase::kEnlisted, "the gate closes", Row::kClose},
      {"the check has not passed since the boot, and slurmd has not registered since",
       [](Case& c) {
         c.was_restarted();
         c.node.gate_boot = "a";
         c.node.report.check_passed = false;
       },
       Phase::kEnlisted, "the gate closes", Row::kClose},
      {"the check has passed since the boot",
       [](Case& c) {
         c.was_booted();
         c.node.report.check_passed = true;
       },
       Phase::kReady, "="},
      {"the check has not passed, and the host has not booted",
       [](Case& c) {
         c.was_booted();
         c.node.gate_boot = "b";
       },
       Phase::kReady, "="},
      {"the check has not passed, and nothing is known of a boot",
       [](Case& c) {
         c.was_booted();
         c.node.gate_boot.clear();
       },
       Phase::kReady, "="},
      {"the gate was closed after the boot",
       [](Case& c) {
         c.was_booted();
         c.record.state.flags.insert("DRAIN");
         c.record.reason = kGateReason;
       },
       Phase::kEnlisted, "its check has not passed yet"},
      {"an administrator drains it after the boot",
       [](Case& c) {
         c.was_booted();
         c.record.state.flags.insert("DRAIN");
         c.record.reason = "bad disk";
       },
       Phase::kReady, "somebody else has drained it: bad disk"},
      {"it is being resumed after the boot",
       [](Case& c) {
         c.was_booted();
         c.record.state.flags = {"DRAIN", "UNDRAIN"};
       },
       Phase::kReady, "="},
      {"Slurm has set it down after the boot",
       [](Case& c) {
         c.was_booted();
         c.record.state.base = "DOWN";
         c.record.reason = "Node unexpectedly rebooted";
       },
       Phase::kReady, "Node unexpectedly rebooted"},

      // --- silence ---
      {"slurmd does not respond",
       [](Case& c) {
         c.was_ready();
         c.record.state = {"DOWN", {"NOT_RESPONDING", "DYNAMIC_NORM"}};
         c.record.reason = "Not responding";
       },
       Phase::kReady, "Slurm shows it as DOWN, and slurmd does not respond; Not responding"},
      {"slurmd does not respond, and the agent has been silent for less than the limit",
       [](Case& c) {
         c.was_ready();
         c.record.state = {"DOWN", {"NOT_RESPONDING"}};
         c.heard_at = kStart - 119 * kSecond;
       },
       Phase::kReady, "slurmd does not respond"},
      {"slurmd and the agent are silent",
       [](Case& c) {
         c.was_ready();
         c.record.state = {"DOWN", {"NOT_RESPONDING"}};
         c.heard_at = kStart - 120 * kSecond;
       },
       Phase::kSilent, "slurmd does not respond to Slurm either"},
      {"only the agent is silent",
       [](Case& c) {
         c.was_ready();
         c.heard_at = kStart - 120 * kSecond;
       },
       Phase::kReady, "its agent has not reported for two minutes"},
      {"the agent has not reported to this process",
       [](Case& c) {
         c.was_ready();
         c.record.state = {"DOWN", {"NOT_RESPONDING"}};
         c.heard_at.reset();
       },
       Phase::kReady, "slurmd does not respond"},
      {"the agent is silent before slurmd ran",
       [](Case& c) {
         c.node.report = {};
         c.in_slurm = false;
         c.heard_at = kStart - 120 * kSecond;
       },
       Phase::kSilent, "Slurm has no record of the node"},
      {"a silent node is lost as well",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.heard_at = kStart - 120 * kSecond;
       },
       Phase::kSilent, "Slurm has no record of the node"},
      {"a silent node is back",
       [](Case& c) {
         c.was_ready();
         c.node.phase = Phase::kSilent;
       },
       Phase::kReady, "="},

      // --- Slurm has lost the record ---
      {"the record has vanished",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
       },
       Phase::kLost, "slurmd must register again", Row::kRegister},
      {"the agent has not registered it again yet",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.phase = Phase::kLost;
         c.node.registrations = 1;
       },
       Phase::kLost, "the agent must register slurmd again"},
      {"not even if the phase was stored differently",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.registrations = 1;
       },
       Phase::kLost, "the agent must register slurmd again"},
      {"the agent has registered it again",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.phase = Phase::kLost;
         c.node.registrations = c.node.report.registrations = 1;
         c.for_long(kSecond);
       },
       Phase::kLost, "Slurm does not show it yet"},
      {"it was registered again in vain",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.phase = Phase::kLost;
         c.node.registrations = c.node.report.registrations = 1;
         c.for_long(10 * kSecond);
       },
       Phase::kRefused, "Slurm has lost the record of the node. Slurm has not accepted the node within 10 s", Row::kRegister},
      {"it stays refused",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.phase = Phase::kRefused;
         c.node.registrations = c.node.report.registrations = 2;
         c.for_long(20 * kSecond);
         c.registered_at = c.now - 10 * kSecond;
         c.registered = 2;
       },
       Phase::kRefused, "Slurm has lost the record of the node. "},
      {"it stays refused while the agent is asked",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.phase = Phase::kRefused;
         c.node.registrations = 1;
         c.for_long(20 * kSecond);
       },
       Phase::kRefused, "Slurm has lost the record of the node. "},
      {"it is refused for a sure cause",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.phase = Phase::kRefused;
         c.max_node_count = 0;
         c.for_long(20 * kSecond);
       },
       Phase::kRefused, "Slurm has lost the record of the node. Slurm's node table is full"},
      {"slurmd was started again meanwhile",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.phase = Phase::kRefused;
         c.for_long(kSecond);
       },
       Phase::kConfirming, "Slurm does not show it yet"},
      {"it has been refused for long",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.phase = Phase::kRefused;
         c.node.registrations = c.node.report.registrations = 2;
         c.for_long(40 * kSecond);
         c.registered_at = c.now - 20 * kSecond;
         c.registered = 2;
       },
       Phase::kRefused, "Slurm has lost the record of the node. ", Row::kRegister},
      {"lost for the second time",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.registrations = c.node.report.registrations = 1;
       },
       Phase::kLost, "slurmd must register again", Row::kRegister},
      {"a lost node is back behind the gate",
       [](Case& c) {
         c.node.phase = Phase::kLost;
         c.node.confirmed = "one";
         c.node.registrations = c.node.report.registrations = 1;
       },
       Phase::kEnlisted, "the gate opens", Row::kOpen},
      {"a new process registers by itself",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.report.instance_id = "two";
         c.for_long(kSecond);
       },
       Phase::kConfirming, "Slurm does not show it yet"},
      {"a new process has not registered by itself",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.phase = Phase::kConfirming;
         c.node.report.instance_id = "two";
         c.for_long(10 * kSecond);
       },
       Phase::kLost, "slurmd must register again", Row::kRegister},
      {"the record has vanished while slurmd does not run",
       [](Case& c) {
         c.was_ready();
         c.in_slurm = false;
         c.node.report.running = false;
       },
       Phase::kStarting, "the agent starts it"},
      {"never confirmed is never lost", [](Case& c) { c.in_slurm = false; }, Phase::kConfirming, "Slurm does not show it yet"},
  };
  return kTable;
}

TEST(Judge, DecidesEachCase) {
  for (const Row& row : table()) {
    SCOPED_TRACE(row.name);
    Case c;
    row.change(c);
    const Judged judged = c.judged();
    EXPECT_EQ(to_string(judged.phase), to_string(row.phase));
    if (std::string_view(row.message) == "=") {
      EXPECT_EQ(judged.message, "");
    } else {
      EXPECT_THAT(judged.message, HasSubstr(row.message));
    }
    EXPECT_EQ(judged.message.find('\n'), std::string::npos);
    EXPECT_EQ(judged.open_gate, row.act == Row::kOpen);
    EXPECT_EQ(judged.close_gate, row.act == Row::kClose);
    EXPECT_EQ(judged.register_again, row.act == Row::kRegister);
  }
}

TEST(Judge, WithoutSlurmThePhaseStaysAndNothingIsDone) {
  for (const Row& row : table()) {
    for (const auto health : {slurm::Snapshot::Health::kNone, slurm::Snapshot::Health::kStale}) {
      SCOPED_TRACE(row.name);
      Case c;
      row.change(c);
      c.slurm.health = health;
      c.slurm.error = "connection refused";
      const Judged judged = c.judged();
      EXPECT_EQ(judged.phase, c.node.phase);
      EXPECT_THAT(judged.message, HasSubstr("Slurm does not answer: connection refused"));
      EXPECT_FALSE(judged.open_gate || judged.register_again);
    }
  }
  Case c;
  c.node.report.running = false;
  c.node.report.error = "no slurmd";
  const Judged judged =
      judge({.node = c.node, .slurm = nullptr, .running_since = {}, .heard_at = {}, .now = kStart, .max_node_count = {}});
  EXPECT_EQ(judged.phase, Phase::kConfirming);
  EXPECT_EQ(judged.message, "Slurm does not answer; slurmd does not run: no slurmd");
}

TEST(Judge, ARevokedNodeIsLeftAsItIs) {
  for (const Row& row : table()) {
    SCOPED_TRACE(row.name);
    Case c;
    row.change(c);
    c.node.revoked = true;
    const Judged judged = c.judged();
    EXPECT_EQ(judged.phase, c.node.phase);
    EXPECT_EQ(judged.message, "its key is revoked");
    EXPECT_FALSE(judged.open_gate || judged.register_again);
  }
}

TEST(Judge, TheGateOfABootIsDecidedByTheCheckOrByTheClosedGate) {
  Case c;
  EXPECT_TRUE(c.judged().gate_decided);
  c.node.report.check_passed = false;
  EXPECT_TRUE(c.judged().gate_decided) << "whoever resumes it now wants it open";
  c.was_booted();
  EXPECT_FALSE(c.judged().gate_decided);
  c.record.state.flags.insert("DRAIN");
  c.record.reason = "bad disk";
  EXPECT_FALSE(c.judged().gate_decided) << "it closes when that drain ends";
  c.node.report.check_passed = true;
  EXPECT_TRUE(c.judged().gate_decided);
}

TEST(Judge, OnlyOurGateAloneIsOpened) {
  for (const Row& row : table()) {
    Case c;
    row.change(c);
    if (!c.judged().open_gate) continue;
    SCOPED_TRACE(row.name);
    for (const char* other : {"bad disk", "", "slurm-enlist: it leaves", "slurm-operator: a; slurm-enlist: joining", "joining",
                              "slurm-enlist: joining; slurm-enlist: joining", "Slurm-Enlist: joining", "Not responding"}) {
      Case changed = c;
      changed.record.reason = other;
      EXPECT_FALSE(changed.judged().open_gate) << other;
    }
    for (const char* base : {"DOWN", "UNKNOWN", "ERROR", "FUTURE", ""}) {
      Case changed = c;
      changed.record.state.base = base;
      changed.record.reason = kGateReason;
      EXPECT_FALSE(changed.judged().open_gate) << base;
    }
  }
}

/// A node whose agent carries out each requested registration at once. There is a new snapshot every second.
struct Tries {
  Case c;
  std::vector<core::Duration> asked;  ///< When slurmd was asked to register again.

  Tries() { c.running_since = c.now; }
  void pass() {
    c.now = c.now + kSecond;
    c.slurm.requested_at = c.heard_at.emplace(c.now);
    const Judged judged = c.judged();
    c.node.phase = judged.phase;
    if (!judged.register_again) return;
    asked.push_back(c.now - kStart);
    c.node.report.registrations = ++c.node.registrations;
    if (judged.phase == Phase::kLost) c.running_since = c.now;
    if (judged.phase != Phase::kLost) c.registered_at = c.now;
    ++c.registered;
  }
  void passes(int seconds) {
    for (int i = 0; i < seconds; ++i) pass();
  }
};

TEST(Judge, ARegistrationIsRepeatedWithAGrowingPause) {
  Tries tries;
  tries.c.in_slurm = false;
  tries.passes(3600);
  using std::chrono::seconds;
  const std::vector<core::Duration> begin(tries.asked.begin(), tries.asked.begin() + 8);
  EXPECT_THAT(begin, testing::ElementsAre(seconds(5), seconds(15), seconds(35), seconds(75), seconds(155), seconds(315),
                                          seconds(615), seconds(915)));
  EXPECT_EQ(tries.asked.size(), 6U + 10U) << "every five minutes";
  EXPECT_EQ(tries.c.node.phase, Phase::kRefused);
  tries.c.in_slurm = true;
  tries.pass();
  EXPECT_EQ(tries.c.node.phase, Phase::kEnlisted);
}

TEST(Judge, ARecordThatIsLostTwiceIsRegisteredUntilItIsBack) {
  Tries tries;
  tries.c.was_ready();
  tries.c.running_since.reset();
  tries.c.in_slurm = false;
  tries.passes(120);
  EXPECT_GT(tries.asked.size(), 3U);
  EXPECT_LT(tries.asked.size(), 10U);
  EXPECT_EQ(tries.c.node.phase, Phase::kRefused);
  tries.c.in_slurm = true;
  tries.pass();
  EXPECT_EQ(tries.c.node.phase, Phase::kReady);
  const std::size_t asked = tries.asked.size();
  tries.c.in_slurm = false;
  tries.pass();
  EXPECT_EQ(tries.asked.size(), asked + 1) << "a new loss is repaired at once";
}

TEST(Judge, AFullTableIsTriedAgainWhenItHasRoom) {
  Tries tries;
  tries.c.in_slurm = false;
  tries.c.max_node_count = 0;
  tries.passes(60);
  EXPECT_THAT(tries.asked, testing::IsEmpty());
  EXPECT_EQ(tries.c.node.phase, Phase::kRefused);
  tries.c.max_node_count = 1;
  tries.pass();
  EXPECT_EQ(tries.asked.size(), 1U);
}

TEST(Judge, WhatIsAskedIsNotAskedAgain) {
  for (const bool lost : {false, true}) {
    Tries tries;
    if (lost) tries.c.was_ready();
    tries.c.in_slurm = false;
    tries.c.node.registrations = 1;
    tries.passes(3600);
    EXPECT_THAT(tries.asked, testing::IsEmpty()) << "the agent has not carried it out";
  }
}

TEST(Judge, TheMessageIsTheSameAsLongAsNothingChanges) {
  for (const Row& row : table()) {
    SCOPED_TRACE(row.name);
    Case c;
    row.change(c);
    const Judged first = c.judged();
    if (first.register_again) continue;
    c.node.phase = first.phase;
    c.now = c.now + core::Duration{500};
    const Judged second = c.judged();
    EXPECT_EQ(second.message, first.message);
    EXPECT_EQ(second.phase, first.phase);
  }
}

TEST(Versions, SlurmdMayBeOlderButNotNewer) {
  for (const char* slurmd : {"26.05.9", "26.05.0", "25.11.8-0pre1", "25.05.1", "24.11.0"})
    EXPECT_EQ(version_problem(slurmd, "26.05.1"), "") << slurmd;
  EXPECT_THAT(version_problem("26.11.0", "26.05.1"), HasSubstr("must not be newer"));
  EXPECT_THAT(version_problem("24.05.8", "26.05.1"), HasSubstr("at most three major releases older"));
  for (const char* unknown : {"", "slurm", "26", "26.", "x.05"}) {
    EXPECT_EQ(version_problem(unknown, "26.05.1"), "") << unknown;
    EXPECT_EQ(version_problem("26.05.1", unknown), "") << unknown;
  }
}

}  // namespace
}  // namespace enlist
