#include "enlist/agent/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "enlist/rules/node_conf.hpp"

namespace enlist {
namespace {

using core::ErrorCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kDetected = "CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=8000";

/// Returns a host in its desired state: slurmd runs, and the memory is saved. Nothing is reported yet.
Observed settled() {
  Observed out;
  out.memory = {.host = "ctl", .port = 6830, .coordinator = "sha256:1", .node = "gpu-1", .pool = "gpu", .cluster = "lab"};
  out.memory.desired = Desired{.node = "gpu-1", .pool = "gpu", .cluster = "lab"};
  out.memory.desired->controllers = {"a:6817", "b:6817"};
  out.memory.desired->node_conf = "Weight=5";
  out.memory.desired->key_revision = "k1";
  out.memory.key = {"slurm.key", "k1", "digest"};
  out.memory.loaded_key = "k1";
  out.memory.stale_image = "";
  out.saved = out.memory;
  out.seen.emplace();
  out.seen->facts = Facts{"h", "boot", "26.05.1", kDetected};
  out.seen->key_digest = "digest";
  const std::string conf = gated_conf(*merged_conf(kDetected, "Weight=5"), "gpu");
  auto arguments = slurmd_arguments("gpu-1", conf, {"a:6817", "b:6817"}, "i1");
  arguments.insert(arguments.begin(), "--systemd");
  out.seen->slurmd = SlurmdSeen{.running = true, .arguments = arguments};
  out.told = {"Ready", "", ""};
  return out;
}
/// Sets the report and the status file to their current values, as if they had just been written.
Observed reported(Observed observed) {
  observed.reported = report_of(observed);
  observed.status = status_of(observed);
  return observed;
}
std::vector<std::string> steps(const Observed& observed) {
  const plan::Plan made = plan(observed);
  std::vector<std::string> out;
  for (const auto& [name, lane] : made.lanes()) {
    for (const auto& group : lane.groups()) {
      for (const plan::Step& step : group) out.push_back(step.id.text() + ": " + step.reason);
    }
  }
  return out;
}

TEST(AgentPlan, AtRestNothingIsDone) {
  EXPECT_THAT(steps(reported(settled())), IsEmpty());
  EXPECT_THAT(steps(Observed{}), IsEmpty()) << "nothing was read yet";
}

TEST(AgentPlan, ANewReportAndStatusAreSaid) {
  EXPECT_THAT(steps(settled()), ElementsAre("report: the host has changed", "write status: what is known has changed"));
}

TEST(AgentPlan, TheKeyIsLoadedOnlyByAnotherProgramThanTheOneBefore) {
  Observed observed = settled();
  observed.seen->slurmd->image = "7.1.9";
  observed.memory.stale_image.reset();
  EXPECT_EQ(report_of(observed).key_revision, "k1");
  EXPECT_EQ(report_of(observed).key_loaded, "") << "an earlier agent did not note what ran before";
  Observed upgraded = observed;
  upgraded.saved = upgraded.memory;
  EXPECT_THAT(steps(reported(upgraded)),
              ElementsAre("reload slurmd: an earlier agent has not noted which slurmd has read the key"));
  observed.memory.stale_image = "7.1.9";
  EXPECT_EQ(report_of(observed).key_loaded, "") << "slurmd was asked to reload, and has not done so";
  observed.memory.stale_image = "7.1.8";
  EXPECT_EQ(report_of(observed).key_loaded, "k1");
  Observed later = reported(observed);
  later.seen->slurmd->image = "";
  EXPECT_EQ(report_of(later).key_loaded, "k1") << "it was seen before";
  later.memory.key.revision = "k2";
  EXPECT_EQ(report_of(later).key_loaded, "") << "but not with the next file";
  observed.seen->slurmd->keeps_plain_key = true;
  EXPECT_EQ(report_of(observed).key_loaded, "k1") << "this is a slurm.key";
  observed.memory.key.file = "slurm.jwks";
  EXPECT_EQ(report_of(observed).key_loaded, "") << "and this is not";
  observed.memory.key.file = "slurm.key";
  observed.seen->slurmd->keeps_plain_key = false;
  observed.seen->slurmd->image = "";
  EXPECT_EQ(report_of(observed).key_loaded, "") << "unknown is not another";

  observed.seen->slurmd->image = "7.1.9";
  observed.memory.loaded_key = "k0";
  EXPECT_EQ(report_of(observed).key_loaded, "") << "it was not asked to reload yet";
  observed.memory.loaded_key = "k1";
  observed.seen->slurmd->changing = true;
  EXPECT_EQ(report_of(observed).key_loaded, "");
  observed.seen->slurmd->changing = false;
  observed.seen->slurmd->arguments.reset();
  EXPECT_EQ(report_of(observed).key_loaded, "") << "a slurmd of somebody else";
  observed.seen->slurmd = SlurmdSeen{};
  EXPECT_EQ(report_of(observed).key_loaded, "k1") << "none runs, and the next one reads the file";
  observed.seen->key_digest = "other";
  EXPECT_EQ(report_of(observed).key_loaded, "");
}

TEST(AgentPlan, AKeyIsLoadedAlsoWhileTheWordsAreNotKnown) {
  Observed observed = settled();
  observed.seen->facts = core::fail(ErrorCode::kUnavailable, "slurmd -C: the driver hangs");
  EXPECT_THAT(steps(reported(observed)), IsEmpty());
  observed.memory.loaded_key = "k0";
  observed.saved = observed.memory;
  EXPECT_THAT(steps(reported(observed)), ElementsAre("reload slurmd: the key has changed"));
  observed.seen->slurmd->keeps_plain_key = true;
  observed.memory.key.file = "slurm.jwks";
  observed.saved = observed.memory;
  EXPECT_THAT(steps(reported(observed)), IsEmpty()) << "it needs a restart, with parameters";
}

TEST(AgentPlan, AKeyFileThatCannotBeReadIsSaid) {
  Observed observed = settled();
  observed.seen->key_digest = core::fail(ErrorCode::kUnavailable, "/etc/slurm/slurm.key: Input/output error");
  EXPECT_EQ(report_of(observed).error, "/etc/slurm/slurm.key: Input/output error");
}

// A host that joins again after the coordinator has lost its records gets another node name.
TEST(AgentPlan, ASlurmdBecomesAnotherNodeOnlyWhenNothingRunsThere) {
  Observed observed = settled();
  observed.memory.node = observed.memory.desired->node = "gpu-8";
  observed.saved = observed.memory;
  const std::string begin = "slurmd runs as node gpu-1 here, and becomes gpu-8 when no job runs there: ";
  EXPECT_THAT(steps(reported(observed)), IsEmpty());
  EXPECT_EQ(report_of(observed).error, begin + "not read yet");
  observed.seen->steps = std::vector<std::string>{"12.batch"};
  EXPECT_THAT(steps(reported(observed)), IsEmpty());
  EXPECT_EQ(report_of(observed).error, begin + "step 12.batch runs");
  Observed newer = observed;
  newer.memory.loaded_key = "k0";
  newer.saved = newer.memory;
  EXPECT_THAT(steps(reported(newer)), ElementsAre("reload slurmd: the key has changed"));
  observed.seen->steps = std::vector<std::string>();
  EXPECT_THAT(steps(reported(observed)), ElementsAre("start slurmd: it runs with other arguments"));
  EXPECT_EQ(report_of(observed).error, "");
}

TEST(AgentPlan, StartsASlurmdThatDoesNotRun) {
  Observed observed = settled();
  observed.seen->slurmd = SlurmdSeen{};
  EXPECT_THAT(steps(reported(observed)), ElementsAre("start slurmd: it does not run"));
  observed.seen->slurmd->changing = true;
  EXPECT_THAT(steps(reported(observed)), IsEmpty()) << "systemd starts it again";
  observed.seen->slurmd = core::fail(ErrorCode::kUnavailable, "systemctl fails");
  EXPECT_THAT(steps(reported(observed)), IsEmpty()) << "unknown is not stopped";
}

TEST(AgentPlan, StartsWithWhatIsDetectedAndDesired) {
  Observed observed = settled();
  observed.seen->slurmd = SlurmdSeen{};
  const auto want = wanted(observed);
  ASSERT_TRUE(want && *want);
  EXPECT_EQ((*want)->node, "gpu-1");
  EXPECT_THAT((*want)->controllers, ElementsAre("a:6817", "b:6817"));
  EXPECT_THAT((*want)->conf, HasSubstr("CPUs=4"));
  EXPECT_THAT((*want)->conf, HasSubstr("Weight=5"));
  EXPECT_THAT((*want)->conf, HasSubstr("gpu"));
  EXPECT_THAT((*want)->conf, HasSubstr("State=DRAIN"));
}

TEST(AgentPlan, RestartsOnlyIfArgumentsThatMatterChanged) {
  Observed observed = settled();
  observed.seen->slurmd->arguments->back() = "i2";
  EXPECT_THAT(steps(reported(observed)), IsEmpty()) << "another instance";
  observed.memory.desired->cluster = "LAB";
  observed.saved = observed.memory;
  EXPECT_THAT(steps(reported(observed)), IsEmpty()) << "no argument";

  Observed other = settled();
  other.memory.desired->controllers = {"b:6817", "a:6817"};
  other.saved = other.memory;
  EXPECT_THAT(steps(reported(other)), ElementsAre("start slurmd: it runs with other arguments"));
  other = settled();
  other.memory.desired->node_conf = "MemSpecLimit=6";
  other.saved = other.memory;
  EXPECT_THAT(steps(reported(other)), ElementsAre("start slurmd: it runs with other arguments"));
  other = settled();
  other.memory.desired->node_conf = "Weight=6";
  other.saved = other.memory;
  EXPECT_THAT(steps(reported(other)), ElementsAre("prepare slurmd: its next start has other arguments"));
  other.memory.prepared = (*wanted(other))->conf;
  other.saved = other.memory;
  EXPECT_THAT(steps(reported(other)), IsEmpty()) << "it is written";
  other.memory.desired->node_conf = settled().memory.desired->node_conf;
  other.saved = other.memory;
  EXPECT_THAT(steps(reported(other)), ElementsAre("prepare slurmd: its next start has other arguments"))
      << "the file has those that were taken back";
  other = settled();
  other.memory.desired->node = "gpu-2";
  other.saved = other.memory;
  other.seen->steps = std::vector<std::string>();
  EXPECT_THAT(steps(reported(other)), ElementsAre("start slurmd: it runs with other arguments"));
}

TEST(AgentPlan, WritesMissingFilesOfTheServiceWithoutARestart) {
  Observed observed = settled();
  observed.seen->slurmd->file_missing = true;
  EXPECT_THAT(steps(reported(observed)), ElementsAre("prepare slurmd: a file of its service is missing"));
  observed.seen->slurmd->running = false;
  EXPECT_THAT(steps(reported(observed)), ElementsAre("start slurmd: it does not run"));
}

TEST(AgentPlan, NothingIsStartedOrStoppedWithoutControllersOrADesire) {
  Observed observed = settled();
  observed.memory.desired->controllers.clear();
  observed.saved = observed.memory;
  EXPECT_THAT(steps(reported(observed)), IsEmpty()) << "slurmd runs on";
  observed.seen->slurmd = SlurmdSeen{};
  EXPECT_THAT(steps(reported(observed)), IsEmpty());
  observed.memory.desired.reset();
  observed.saved = observed.memory;
  EXPECT_THAT(steps(reported(observed)), IsEmpty());
}

TEST(AgentPlan, ALostRecordIsAReload) {
  Observed observed = settled();
  observed.memory.desired->registrations = 1;
  observed.saved = observed.memory;
  EXPECT_THAT(steps(reported(observed)), ElementsAre("reload slurmd: Slurm does not have the node"));
  observed.memory.registrations = 1;
  observed.saved = observed.memory;
  EXPECT_THAT(steps(reported(observed)), IsEmpty());
}

TEST(AgentPlan, TheKeyComesFirst) {
  Observed observed = settled();
  observed.memory.key = {};
  observed.memory.loaded_key = "";
  observed.seen->key_digest = "";
  observed.seen->slurmd = SlurmdSeen{};
  EXPECT_THAT(steps(reported(observed)), ElementsAre("write auth key: the coordinator has another key"))
      << "it saves the memory, too";
  observed.memory.desired->key_revision = "";
  EXPECT_THAT(steps(reported(observed)), ElementsAre("save memory: it has changed")) << "slurmd needs a key";
}

TEST(AgentPlan, AKeyFileThatWasChangedIsWrittenAgain) {
  Observed observed = settled();
  observed.seen->key_digest = "";
  EXPECT_THAT(steps(reported(observed)), ElementsAre("write auth key: the file is not as it was written"));
  observed.seen->key_digest = core::fail(ErrorCode::kUnavailable, "EIO");
  EXPECT_THAT(steps(reported(observed)), IsEmpty()) << "unknown is not empty";
}

TEST(AgentPlan, ANewKeyIsLoaded) {
  Observed observed = settled();
  observed.memory.desired->key_revision = "k2";
  observed.memory.key = {"slurm.key", "k2", "digest2"};
  observed.seen->key_digest = "digest2";
  observed.saved = observed.memory;
  EXPECT_THAT(steps(reported(observed)), ElementsAre("reload slurmd: the key has changed"));
}

TEST(AgentPlan, ASlurmdThatWasStartedWithTheOtherKeyFileIsRestarted) {
  Observed observed = settled();
  observed.seen->slurmd->image = "7.1.9";
  observed.memory.started_with = "slurm.jwks";
  observed.saved = observed.memory;
  EXPECT_EQ(report_of(observed).key_loaded, "");
  EXPECT_THAT(steps(reported(observed)), ElementsAre("start slurmd: it keeps to the key file from when it was started"));
  observed.memory.started_with = "slurm.key";
  observed.saved = observed.memory;
  EXPECT_EQ(report_of(observed).key_loaded, "k1");
  EXPECT_THAT(steps(reported(observed)), IsEmpty());
}

TEST(AgentPlan, NothingIsStartedThatWouldSignWithAKeyOfOthers) {
  Observed observed = settled();
  observed.seen->slurmd->image = "7.1.9";
  observed.seen->jwks = "/etc/slurm/slurm.jwks";
  observed.seen->jwks_digest = "of another cluster";
  EXPECT_THAT(report_of(observed).error,
              HasSubstr("/etc/slurm/slurm.jwks has another key, which slurm-enlist has not written"));
  EXPECT_EQ(report_of(observed).key_loaded, "");
  observed.seen->slurmd = SlurmdSeen{};
  EXPECT_THAT(steps(reported(observed)), IsEmpty());
  observed.memory.former = {{"slurm.jwks", "k0", "of another cluster"}};
  observed.saved = observed.memory;
  EXPECT_EQ(report_of(observed).error, "") << "it is ours, and a start removes it";
  EXPECT_THAT(steps(reported(observed)), ElementsAre("start slurmd: it does not run"));
  observed.seen->jwks_digest = core::fail(ErrorCode::kUnavailable, "EIO");
  EXPECT_THAT(steps(reported(observed)), IsEmpty()) << "unknown is not empty";
  EXPECT_EQ(report_of(observed).error, "EIO");

  observed = settled();
  observed.memory.key.file = "slurm.jwks";
  observed.saved = observed.memory;
  observed.seen->jwks_digest = "digest";
  EXPECT_EQ(report_of(observed).error, "");
}

TEST(AgentPlan, AFormerSlurmKeyIsRemovedOnceSlurmdDoesNotNeedIt) {
  Observed observed = settled();
  observed.memory.key.file = observed.memory.started_with = "slurm.jwks";
  observed.memory.former = {{"slurm.key", "k0", "digest0"}};
  observed.memory.stale_image = observed.seen->slurmd->image = "7.1.8";
  observed.saved = observed.memory;
  EXPECT_THAT(steps(reported(observed)), IsEmpty()) << "the former slurmd may still run";
  observed.seen->slurmd->image = "7.1.9";
  EXPECT_THAT(steps(reported(observed)), ElementsAre("remove former auth key: slurmd has the key from the new file"));
  observed.memory.former = {{"slurm.jwks", "k0", "digest0"}};
  observed.saved = observed.memory;
  EXPECT_THAT(steps(reported(observed)), IsEmpty()) << "the file has another content by now";
}

TEST(AgentPlan, ADesireIsSaved) {
  Observed observed = settled();
  observed.saved.desired.reset();
  EXPECT_THAT(steps(reported(observed)), ElementsAre("save memory: it has changed"));
}

TEST(AgentPlan, WhatCannotWorkIsSaidAndNotStarted) {
  Observed observed = settled();
  observed.seen->slurmd = SlurmdSeen{.error = "slurmd ended"};
  observed.seen->facts = core::fail(ErrorCode::kNotFound, "there is no program /usr/sbin/slurmd");
  EXPECT_THAT(steps(reported(observed)), IsEmpty());
  EXPECT_EQ(report_of(observed).error, "there is no program /usr/sbin/slurmd; slurmd ended");

  observed = settled();
  observed.seen->slurmd = SlurmdSeen{};
  observed.memory.desired->node_conf = "State=IDLE";
  observed.saved = observed.memory;
  EXPECT_THAT(steps(reported(observed)), IsEmpty());
  EXPECT_THAT(report_of(observed).error, HasSubstr("State"));
}

TEST(AgentPlan, ASlurmdOfOthersIsLeftAlone) {
  Observed observed = settled();
  observed.seen->slurmd->arguments.reset();
  EXPECT_THAT(steps(reported(observed)), IsEmpty());
  const Report report = report_of(observed);
  EXPECT_FALSE(report.running);
  EXPECT_THAT(report.error, HasSubstr("slurm-enlist has not started it"));
  EXPECT_THAT(report.error, HasSubstr("; the agent starts its own then")) << "nobody has to join again";
}

TEST(AgentPlan, WhatKeepsASlurmdThatRunsFromItsWorkIsSaid) {
  Observed observed = settled();
  observed.seen->slurmd->error = "slurmd is still starting: no route";
  EXPECT_TRUE(report_of(observed).running);
  EXPECT_EQ(report_of(observed).error, "slurmd is still starting: no route");
  observed.memory.desired->leave = kLeaveStop;
  EXPECT_EQ(report_of(observed).error, "") << "it is stopped";
}

TEST(AgentPlan, AConfigurationOfAnotherClusterIsNamed) {
  Observed observed = settled();
  observed.seen->local_conf = "/etc/slurm/slurm.conf";
  observed.seen->local_cluster = "Lab";
  EXPECT_EQ(report_of(observed).note, "");
  observed.seen->local_cluster = "other";
  const std::string note = "note: /etc/slurm/slurm.conf is of the cluster other; slurmd ignores it and takes that of lab";
  EXPECT_EQ(report_of(observed).note, note);
  EXPECT_EQ(core::Json::parse(status_of(observed))["note"], note);
  observed.seen->slurmd = SlurmdSeen{};
  EXPECT_EQ(report_of(observed).note, note);
  EXPECT_EQ(report_of(observed).error, "") << "it keeps no slurmd from running";
  EXPECT_THAT(steps(reported(observed)), ElementsAre("start slurmd: it does not run"));
}

TEST(AgentPlan, TheReportSaysHowSlurmdRuns) {
  Observed observed = settled();
  observed.memory.registrations = 3;
  observed.seen->slurmd->started = core::WallTime{core::Duration{5000}};
  const Report report = report_of(observed);
  EXPECT_EQ(report.hostname, "h");
  EXPECT_EQ(report.boot_id, "boot");
  EXPECT_EQ(report.slurm_version, "26.05.1");
  EXPECT_THAT(report.conf, HasSubstr("State=DRAIN"));
  EXPECT_EQ(report.instance_id, "i1");
  EXPECT_TRUE(report.running);
  EXPECT_EQ(report.started, observed.seen->slurmd->started);
  EXPECT_EQ(report.key_revision, "k1");
  EXPECT_EQ(report.registrations, 3U);
  EXPECT_TRUE(report.check_passed);
  EXPECT_EQ(report.error, "");
  observed.seen->key_digest = "other";
  EXPECT_EQ(report_of(observed).key_revision, "");
}

TEST(AgentPlan, ACheckHoldsForOneStartOfSlurmd) {
  Observed observed = settled();
  observed.check = {.wanted = true, .instance = "", .error = "no scratch"};
  EXPECT_FALSE(report_of(observed).check_passed);
  EXPECT_EQ(report_of(observed).error, "no scratch");
  observed.check = {.wanted = true, .instance = "i1", .error = ""};
  EXPECT_TRUE(report_of(observed).check_passed);
  observed.seen->slurmd->arguments->back() = "i2";
  EXPECT_FALSE(report_of(observed).check_passed);
}

TEST(AgentPlan, AFailedStepIsReported) {
  Observed observed = settled();
  observed.seen->slurmd = SlurmdSeen{};
  plan::Outcome failed{.state = plan::Outcome::State::kFailed, .count = 1, .since = {}, .last = {}, .error = {}};
  failed.error = core::Error{ErrorCode::kUnavailable, "the disk\nis full", 0, {}, {}};
  observed.outcomes[{"start", "slurmd"}] = failed;
  EXPECT_EQ(report_of(observed).error, "the disk is full");
}

TEST(AgentPlan, TheStatusSaysWhatTheCoordinatorSays) {
  Observed observed = settled();
  EXPECT_EQ(status_of(observed), R"({"message":"","node":"gpu-1","phase":"Ready","pool":"gpu"})"
                                 "\n");
  observed.told = {"Confirming", "waits", "no answer"};
  EXPECT_EQ(status_of(observed), R"({"error":"no answer","message":"waits","node":"gpu-1","phase":"Confirming","pool":"gpu"})"
                                 "\n");
}

TEST(AgentPlan, AtTheEndOfALeaveACoordinatorThatDoesNotKnowTheHostIsNoError) {
  Observed observed = settled();
  observed.told = {"Gone", "Slurm does not have the node any more", "the coordinator refuses this host"};
  observed.memory.left = true;
  EXPECT_THAT(status_of(observed), HasSubstr("refuses")) << "it does not know yet that the host is clean";
  observed.told.heard = true;
  EXPECT_THAT(status_of(observed), ::testing::Not(HasSubstr("refuses")));
}

TEST(AgentPlan, ReadsArgumentsAndConfigurations) {
  EXPECT_EQ(launch_of({"-D", "-Z", "-N", "a", "--conf", "CPUs=1", "--conf-server", "x:1,y:1", "--instance-id", "i", "-v"}),
            (Launch{"a", "CPUs=1", {"x:1", "y:1"}, "i"}));
  EXPECT_EQ(launch_of({"-N"}), Launch{});
  EXPECT_EQ(cluster_name_of("# ClusterName=no\n  clustername = lab # x\nA=1\n"), "lab");
  EXPECT_EQ(cluster_name_of("ClusterNames=a\nSlurmctldHost=b"), "");
}

}  // namespace
}  // namespace enlist
