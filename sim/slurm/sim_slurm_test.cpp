#include "sim/slurm/sim_slurm.hpp"

#include <gtest/gtest.h>

#include "core/log.hpp"
#include "sim/base/loop.hpp"
#include "sim/base/random.hpp"
#include "sim/slurm/rest.hpp"
#include "slurm/rest/client.hpp"

namespace sim {
namespace {

using namespace std::chrono_literals;

constexpr const char* kConf =
    "ClusterName=c\nSlurmctldHost=ctld(127.0.0.1)\nMaxNodeCount=4\nSlurmUser=slurm\n"
    "NodeSet=cpu Feature=cpu\nPartitionName=cpu Nodes=cpu\nPartitionName=all Nodes=ALL Default=YES\n"
    "PartitionName=slurm-operator-abc Hidden=YES RootOnly=YES State=INACTIVE\n";

class SimSlurmTest : public testing::TestWithParam<std::string> {
 protected:
  SimSlurmTest() { EXPECT_TRUE(slurm.start()); }

  std::vector<std::string> words(const std::string& node) const {
    const SimNode* found = slurm.node(node);
    return found == nullptr ? std::vector<std::string>{} : slurm.state_words(*found);
  }
  void nodes(int count) {
    for (int i = 0; i < count; ++i) EXPECT_TRUE(slurm.start_slurmd("cpu-" + std::to_string(i), "'Features=cpu'"));
    loop.run_for(2s);
  }
  template <class T>
  core::Result<T> ask(const std::function<void(std::function<void(core::Result<T>)>)>& call) {
    std::optional<core::Result<T>> out;
    call([&](core::Result<T> result) { out = std::move(result); });
    EXPECT_TRUE(loop.run_until([&] { return out.has_value(); }, 60s));
    return out.value_or(core::fail(core::ErrorCode::kCancelled, "never answered"));
  }
  core::Result<slurm::Table<slurm::Node>> get_nodes(std::optional<std::int64_t> since = {}) {
    return ask<slurm::Table<slurm::Node>>([&](auto done) { client.nodes(since, done); });
  }
  core::Result<void> update(const std::string& name, slurm::NodeUpdate change) {
    return ask<void>([&](auto done) { client.update_node(name, change, done); });
  }

  SimLoop loop{1};
  std::string text = kConf;
  SimSlurm slurm{loop, loop.random(), [this] { return text; }, {.release = GetParam()}};
  SlurmRest rest{loop, slurm, [] { return std::string("key"); }};
  SlurmFault fault;
  std::unique_ptr<net::HttpTransport> transport = slurm_transport(
      loop, loop, loop.random(), [this] { return &rest; }, [this](const net::HttpRequest&) { return fault; });
  core::NullLogger log;
  slurm::Hs256Tokens tokens{loop.clock(), "key", "slurm"};
  slurm::Client client{loop, *transport, tokens, log};
};
INSTANTIATE_TEST_SUITE_P(Releases, SimSlurmTest, testing::Values("24.11.5", "26.05.5"));

using Words = std::vector<std::string>;

TEST_P(SimSlurmTest, ARequestUnderWayIsCarriedOutWhateverBecomesOfItsClient) {
  nodes(2);
  SimHost host(loop);
  auto theirs = slurm_transport(loop, host, loop.random(), [this] { return &rest; });
  int answers = 0;
  const auto remove = [&](const std::string& node) {
    const auto credentials = tokens.current();
    theirs->send({"DELETE",
                  "/slurm/v0.0.42/node/" + node,
                  {{"x-slurm-user-name", credentials.user}, {"x-slurm-user-token", credentials.token}},
                  "",
                  60s},
                 [&](const auto& reply) { answers += reply && reply->status == 200 ? 1 : 0; });
  };
  remove("cpu-0");
  host.pause();
  loop.run_for(1s);
  EXPECT_EQ(slurm.node("cpu-0"), nullptr);
  EXPECT_EQ(answers, 0);
  host.resume();
  loop.run_for(1s);
  EXPECT_EQ(answers, 1);
  remove("cpu-1");
  theirs.reset();
  loop.run_for(1s);
  EXPECT_EQ(slurm.node("cpu-1"), nullptr);
  EXPECT_EQ(answers, 1);
}

TEST_P(SimSlurmTest, AKnownNameIgnoresConf) {
  nodes(1);
  slurm.stop_slurmd("cpu-0");
  slurm.start_slurmd("cpu-0", "Features=gpu State=DRAIN");
  loop.run_for(2s);
  EXPECT_EQ(slurm.node("cpu-0")->features, Words{"cpu"});
  EXPECT_EQ(words("cpu-0"), (Words{"IDLE", "DYNAMIC_NORM"}));
}

TEST_P(SimSlurmTest, RegistrationIsRefusedInSilence) {
  EXPECT_TRUE(slurm.start_slurmd("cpu", "Features=cpu"));  // the name of a NodeSet
  nodes(5);                                                // one more than the table holds
  EXPECT_EQ(slurm.nodes().size(), 4U);
  EXPECT_TRUE(slurm.slurmd_runs("cpu"));
  EXPECT_FALSE(slurm.start_slurmd("other", "NodeName=other"));
}

TEST_P(SimSlurmTest, StateInConfCountsAtTheFirstRegistration) {
  slurm.start_slurmd("a", "State=DRAIN Reason=\"new\"");
  slurm.start_slurmd("b", "State=DOWN");
  loop.run_for(2s);
  EXPECT_EQ(words("a"), (Words{"IDLE", "DRAIN", "DYNAMIC_NORM"}));
  EXPECT_EQ(slurm.node("a")->reason, "new");
  EXPECT_EQ(words("b"), (Words{"DOWN", "DYNAMIC_NORM"}));
}

TEST_P(SimSlurmTest, DrainAndUndrainLookAsTheyDo) {
  nodes(1);
  EXPECT_TRUE(update("cpu-0", {.state = "DRAIN", .reason = "ours", .comment = {}, .features = {}}));
  EXPECT_EQ(words("cpu-0"), (Words{"IDLE", "DRAIN", "DYNAMIC_NORM"}));
  EXPECT_TRUE(update("cpu-0", {.state = "UNDRAIN", .reason = {}, .comment = {}, .features = {}}));
  EXPECT_EQ(words("cpu-0"), (Words{"IDLE", "NOT_RESPONDING", "DYNAMIC_NORM"}));
  loop.run_for(2s);
  EXPECT_EQ(words("cpu-0"), (Words{"IDLE", "DYNAMIC_NORM"}));
  EXPECT_EQ(slurm.node("cpu-0")->reason, GetParam() == "24.11.5" ? "ours" : "");
  const auto again = update("cpu-0", {.state = "RESUME", .reason = {}, .comment = {}, .features = {}});
  EXPECT_EQ(again.error().code, core::ErrorCode::kInvalid);
}

TEST_P(SimSlurmTest, DownKeepsDownWithoutReturnToService) {
  nodes(1);
  EXPECT_EQ(
      slurm.update_node(
          "cpu-0",
          {.state = "DOWN", .reason = "x", .comment = {}, .extra = {}, .features = {}, .active_features = {}, .weight = {}}),
      SlurmErrno::kSuccess);
  slurm.stop_slurmd("cpu-0");
  slurm.start_slurmd("cpu-0", "Features=cpu");
  loop.run_for(5s);
  EXPECT_EQ(words("cpu-0"), (Words{"DOWN", "DYNAMIC_NORM"}));
  text += "ReturnToService=2\n";
  EXPECT_TRUE(ask<void>([&](auto done) { client.reconfigure(done); }));
  slurm.stop_slurmd("cpu-0");
  slurm.start_slurmd("cpu-0", "Features=cpu");
  loop.run_for(5s);
  EXPECT_EQ(words("cpu-0"), (Words{"IDLE", "DYNAMIC_NORM"}));
}

TEST_P(SimSlurmTest, AMachineThatStartedAnewIsDownUnlessEverythingReturns) {
  nodes(1);
  const auto comes_back = [&] {
    slurm.stop_slurmd("cpu-0");
    loop.run_for(5s);
    slurm.start_slurmd("cpu-0", "Features=cpu", "10.0.0.1", "", "", slurm.now_seconds());
    loop.run_for(2s);
  };
  comes_back();
  EXPECT_EQ(words("cpu-0"), (Words{"DOWN", "DYNAMIC_NORM"}));
  EXPECT_EQ(slurm.node("cpu-0")->reason, "Node unexpectedly rebooted");
  text += "ReturnToService=2\n";
  EXPECT_TRUE(ask<void>([&](auto done) { client.reconfigure(done); }));
  comes_back();
  EXPECT_EQ(words("cpu-0"), (Words{"IDLE", "DYNAMIC_NORM"}));
}

TEST_P(SimSlurmTest, DeletingAsksWhoHoldsTheNode) {
  nodes(2);
  const auto remove = [&](const std::string& name) { return ask<void>([&](auto done) { client.delete_node(name, done); }); };
  EXPECT_EQ(remove("nope").error().code, core::ErrorCode::kNotFound);
  const std::int64_t job =
      slurm.submit({.user = "u", .partition = "cpu", .nodes = 1, .duration = 5s, .required_nodes = {"cpu-0"}});
  loop.run_for(1s);
  EXPECT_EQ(words("cpu-0"), (Words{"MIXED", "DYNAMIC_NORM"}));
  EXPECT_EQ(remove("cpu-0").error().code, core::ErrorCode::kBusy);
  ASSERT_TRUE(loop.run_until([&] { return slurm.jobs().at(job).completing; }, 60s));
  EXPECT_EQ(words("cpu-0"), (Words{"IDLE", "COMPLETING", "DYNAMIC_NORM"}));
  EXPECT_EQ(remove("cpu-0").error().code, core::ErrorCode::kBusy);
  loop.run_for(2s);
  EXPECT_TRUE(remove("cpu-0"));
  EXPECT_EQ(slurm.node("cpu-0"), nullptr);
  loop.run_for(60s);
  EXPECT_EQ(slurm.node("cpu-0"), nullptr) << "a living slurmd does not come back by itself";
}

TEST_P(SimSlurmTest, ASuspendedJobDoesNotKeepItsNode) {
  nodes(1);
  const std::int64_t job = slurm.submit({.user = "u", .partition = "cpu"});
  loop.run_for(1s);
  ASSERT_TRUE(slurm.suspend(job));
  EXPECT_EQ(words("cpu-0"), (Words{"IDLE", "DYNAMIC_NORM"}));
  EXPECT_EQ(slurm.delete_node("cpu-0"), SlurmErrno::kSuccess);
}

TEST_P(SimSlurmTest, DownRequeuesItsJobs) {
  nodes(1);
  const std::int64_t job = slurm.submit({.user = "u", .partition = "cpu"});
  loop.run_for(1s);
  EXPECT_EQ(
      slurm.update_node(
          "cpu-0",
          {.state = "DOWN", .reason = "x", .comment = {}, .extra = {}, .features = {}, .active_features = {}, .weight = {}}),
      SlurmErrno::kSuccess);
  EXPECT_EQ(slurm.jobs().at(job).state, SimJob::State::kPending);
}

TEST_P(SimSlurmTest, ASilentSlurmdIsNoticedLate) {
  nodes(1);
  slurm.stop_slurmd("cpu-0");
  loop.run_for(30s);
  EXPECT_EQ(words("cpu-0"), (Words{"IDLE", "DYNAMIC_NORM"}));
  loop.run_for(120s);
  EXPECT_EQ(words("cpu-0"), (Words{"IDLE", "NOT_RESPONDING", "DYNAMIC_NORM"}));
  loop.run_for(300s);
  EXPECT_EQ(words("cpu-0"), (Words{"DOWN", "NOT_RESPONDING", "DYNAMIC_NORM"}));
  EXPECT_EQ(slurm.node("cpu-0")->reason, "Not responding");
}

TEST_P(SimSlurmTest, AReconfigureLosesALaunchThatWaitsForAProlog) {
  nodes(1);
  std::vector<std::int64_t> lost;
  slurm.on_job_loss = [&](const SimJob& job, const JobLoss&) { lost.push_back(job.id); };
  const auto state = [&](std::int64_t id) { return slurm.jobs().at(id).state; };
  JobRequest request;
  request.partition = "cpu";
  request.duration = 1s;
  request.prolog = 10s;
  const std::int64_t kept = slurm.submit(request);
  loop.run_for(12s);
  EXPECT_EQ(slurm.reconfigure(), SlurmErrno::kSuccess);
  loop.run_for(3s);
  EXPECT_EQ(state(kept), SimJob::State::kCompleted);
  const std::int64_t cut = slurm.submit(request);
  loop.run_for(5s);
  EXPECT_EQ(slurm.reconfigure(), SlurmErrno::kSuccess);
  loop.run_for(60s);
  EXPECT_EQ(state(cut), SimJob::State::kRunning);
  EXPECT_EQ(lost, std::vector<std::int64_t>{cut});
}

TEST_P(SimSlurmTest, FeaturesMoveANodeOnlyWithTheNextReconfigure) {
  nodes(1);
  EXPECT_TRUE(update("cpu-0", {.state = {}, .reason = {}, .comment = {}, .features = Words{"other"}}));
  EXPECT_TRUE(slurm.node("cpu-0")->partitions.contains("cpu"));
  EXPECT_EQ(slurm.reconfigure(), SlurmErrno::kSuccess);
  EXPECT_FALSE(slurm.node("cpu-0")->partitions.contains("cpu"));
}

TEST_P(SimSlurmTest, ABadConfigurationLeavesTheOldInForce) {
  nodes(1);
  text += "PartitionName=bad Nodes=nosuch\n";
  const auto result = ask<void>([&](auto done) { client.reconfigure(done); });
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().http_status, 500);
  EXPECT_TRUE(slurm.partitions().contains("cpu"));
  slurm.stop();
  EXPECT_FALSE(slurm.start()) << "but a start with it fails";
}

TEST_P(SimSlurmTest, ARemovedPartitionTakesItsJobsAlong) {
  nodes(1);
  const std::int64_t job = slurm.submit({.user = "u", .partition = "cpu"});
  loop.run_for(1s);
  const std::size_t at = text.find("PartitionName=cpu");
  text.erase(at, text.find('\n', at) - at);
  EXPECT_EQ(slurm.reconfigure(), SlurmErrno::kSuccess);
  EXPECT_EQ(slurm.jobs().at(job).state, SimJob::State::kNodeFail);
}

TEST_P(SimSlurmTest, ADrainedPartitionStartsWhatItHasAndTakesNoMore) {
  nodes(1);
  const std::int64_t running = slurm.submit({.user = "u", .partition = "cpu", .duration = 5s, .exclusive = true});
  const std::int64_t waiting = slurm.submit({.user = "u", .partition = "cpu", .duration = 5s, .exclusive = true});
  loop.run_for(1s);
  text.insert(text.find("PartitionName=cpu Nodes=cpu") + 27, " State=DRAIN");
  EXPECT_EQ(slurm.reconfigure(), SlurmErrno::kSuccess);
  EXPECT_EQ(slurm.submit({.user = "u", .partition = "cpu"}), 0);
  loop.run_for(60s);
  EXPECT_EQ(slurm.jobs().at(running).state, SimJob::State::kCompleted);
  EXPECT_EQ(slurm.jobs().at(waiting).state, SimJob::State::kCompleted);
}

TEST_P(SimSlurmTest, StateOutlivesARestartButNotItsVolume) {
  nodes(1);
  EXPECT_TRUE(update("cpu-0", {.state = "DRAIN", .reason = "admin", .comment = {}, .features = {}}));
  slurm.stop();
  ASSERT_TRUE(slurm.start());
  EXPECT_EQ(words("cpu-0"), (Words{"IDLE", "DRAIN", "DYNAMIC_NORM"}));
  slurm.stop();
  slurm.lose_state();
  ASSERT_TRUE(slurm.start());
  loop.run_for(120s);
  EXPECT_TRUE(slurm.nodes().empty());
}

TEST_P(SimSlurmTest, RestKeepsTimesAndOddities) {
  nodes(1);
  loop.run_for(5s);
  auto table = get_nodes();
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->rows.size(), 1U);
  loop.run_for(3s);
  EXPECT_TRUE(get_nodes(table->last_update)->unchanged);
  EXPECT_TRUE(update("cpu-0", {.state = {}, .reason = {}, .comment = "c", .features = {}}));
  loop.run_for(3s);
  auto changed = get_nodes(table->last_update);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_FALSE(changed->unchanged);
  EXPECT_EQ(changed->rows.front()->comment, "c");
  const auto jobs = ask<slurm::Table<slurm::Job>>([&](auto done) { client.jobs(table->last_update, done); });
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_TRUE(jobs->unchanged);
  const auto partitions = ask<slurm::Table<slurm::Partition>>([&](auto done) { client.partitions({}, done); });
  ASSERT_TRUE(partitions) << partitions.error().message;
  EXPECT_EQ(partitions->rows.size(), 3U);
  EXPECT_EQ(client.capabilities()->release, GetParam());
}

TEST_P(SimSlurmTest, AwayIsSaidLateButPingsAtOnce) {
  ASSERT_TRUE(get_nodes());
  slurm.stop();
  const core::MonoTime before = loop.clock().mono();
  const auto pings = ask<std::vector<slurm::Ping>>([&](auto done) { client.ping(done); });
  ASSERT_TRUE(pings);
  EXPECT_FALSE(pings->front().responding);
  EXPECT_LT(loop.clock().mono() - before, core::Duration{1000});
  EXPECT_EQ(get_nodes().error().code, core::ErrorCode::kUnavailable);
  EXPECT_GT(loop.clock().mono() - before, core::Duration{8000});
}

TEST_P(SimSlurmTest, AWrongKeyIsRefused) {
  slurm::Hs256Tokens wrong{loop.clock(), "other", "slurm"};
  slurm::Client stranger{loop, *transport, wrong, log};
  const auto table = ask<slurm::Table<slurm::Node>>([&](auto done) { stranger.nodes({}, done); });
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, core::ErrorCode::kUnauthorized);
}

TEST_P(SimSlurmTest, FaultsAreFaults) {
  nodes(1);
  ASSERT_TRUE(get_nodes());
  using Kind = SlurmFault::Kind;
  for (const Kind kind :
       {Kind::kRefused, Kind::kLost, Kind::kLostEarly, Kind::kEmpty, Kind::kBare, Kind::kPartial, Kind::kError}) {
    fault = {kind, {}, {}};
    EXPECT_FALSE(get_nodes()) << static_cast<int>(kind);
  }
  fault = {Kind::kSlow, 20s, {}};
  EXPECT_FALSE(get_nodes());
  fault = {};
  ASSERT_TRUE(get_nodes());
  fault = {Kind::kLost, {}, {}};
  const auto lost = update("cpu-0", {.state = {}, .reason = {}, .comment = "done", .features = {}});
  EXPECT_EQ(lost.error().code, core::ErrorCode::kUnknownOutcome);
  EXPECT_EQ(slurm.node("cpu-0")->comment, "done");
}

/// Records the losses in their order, such as "requeued: its node was set DOWN".
class LossTest : public SimSlurmTest {
 protected:
  LossTest() {
    slurm.on_job_loss = [this](const SimJob&, const JobLoss& loss) {
      told.push_back(std::string(to_string(loss.what)) + ": " + std::string(to_string(loss.cause)) +
                     (loss.told      ? ", told"
                      : loss.pending ? ", pending"
                                     : ""));
    };
  }
  std::int64_t run(JobRequest request = {}) {
    request.duration = 10min;
    const std::int64_t id = slurm.submit(std::move(request));
    loop.run_for(1s);
    return id;
  }

  std::vector<std::string> told;
};
INSTANTIATE_TEST_SUITE_P(Releases, LossTest, testing::Values("24.11.5", "26.05.5"));

TEST_P(LossTest, AJobThatEndsByItselfOrByItsUserIsNotLost) {
  nodes(1);
  slurm.submit({.duration = 2s});
  loop.run_for(10s);
  slurm.cancel(run());
  loop.run_for(10s);
  EXPECT_EQ(told, Words());
}

TEST_P(LossTest, DownLosesOrRequeues) {
  nodes(1);
  run();
  run({.requeue = false});
  EXPECT_EQ(slurm.update_node("cpu-0", {.state = "DOWN"}), SlurmErrno::kSuccess);
  EXPECT_EQ(told, (Words{"requeued: its node was set DOWN", "lost: its node was set DOWN"}));
}

TEST_P(LossTest, TheEndOfASlurmdStrandsItsJobsUntilSlurmHearsOfIt) {
  nodes(1);
  const std::int64_t job = run();
  slurm.stop_slurmd("cpu-0");
  EXPECT_EQ(told, Words{"stranded: the slurmd of its node ended"});
  EXPECT_EQ(slurm.jobs().at(job).state, SimJob::State::kRunning);
  loop.run_for(10min);
  EXPECT_EQ(told.back(), "requeued: its node was silent for SlurmdTimeout, told");
  EXPECT_EQ(told.size(), 2U);
}

TEST_P(LossTest, WhatDiedDoesNotCompleteBecauseAnotherSlurmdBegins) {
  nodes(1);
  const std::int64_t job = slurm.submit({.duration = 3s, .requeue = false});
  loop.run_for(1s);
  slurm.stop_slurmd("cpu-0");
  slurm.stop();
  slurm.start_slurmd("cpu-0", "'Features=cpu'");
  loop.run_for(5s);
  EXPECT_TRUE(slurm.start());
  loop.run_for(30s);
  EXPECT_EQ(slurm.jobs().at(job).state, SimJob::State::kNodeFail);
  EXPECT_EQ(told.back(), "lost: another slurmd took the name of its node, told");
}

TEST_P(LossTest, AJobStartedWhereNoSlurmdIs) {
  nodes(1);
  slurm.stop_slurmd("cpu-0");
  run();
  EXPECT_EQ(told, Words{"stranded: it was started where no slurmd is"});
}

TEST_P(LossTest, APartitionThatGoes) {
  nodes(1);
  run({.partition = "cpu"});
  slurm.submit({.partition = "cpu", .nodes = 3});
  text = "ClusterName=c\nSlurmctldHost=ctld(127.0.0.1)\nMaxNodeCount=4\nSlurmUser=slurm\nPartitionName=all Nodes=ALL\n";
  EXPECT_EQ(slurm.reconfigure(), SlurmErrno::kSuccess);
  EXPECT_EQ(told, (Words{"lost: its partition is gone", "lost: its partition is gone, pending"}));
}

TEST_P(LossTest, TheStateAndARecordUnderASuspendedJob) {
  nodes(1);
  const std::int64_t job = run();
  slurm.suspend(job);
  EXPECT_EQ(slurm.delete_node("cpu-0"), SlurmErrno::kSuccess);
  slurm.stop();
  slurm.lose_state();
  EXPECT_EQ(told, (Words{"stranded: the record of its node was deleted", "lost: slurmctld lost its state"}));
}

TEST_P(LossTest, APrologThatFailsRequeuesAndDrains) {
  nodes(1);
  run({.prolog_fails = true});
  EXPECT_EQ(told, Words{"requeued: its prolog failed"});
  EXPECT_TRUE(slurm.node("cpu-0")->drain);
  EXPECT_TRUE(slurm.node("cpu-0")->own_drain);
  EXPECT_EQ(slurm.node("cpu-0")->reason, "Prolog error");
}

TEST_P(LossTest, AnEpilogThatFailsDrainsUnderAnOldReason) {
  nodes(1);
  slurm.submit({.duration = 2s, .epilog_fails = true});
  loop.run_for(1s);
  // 24.11 keeps the reason after the drain has ended.
  slurm.update_node("cpu-0", {.state = "DRAIN", .reason = "old"});
  slurm.update_node("cpu-0", {.state = "UNDRAIN"});
  loop.run_for(5s);
  EXPECT_TRUE(slurm.node("cpu-0")->own_drain);
  EXPECT_EQ(slurm.node("cpu-0")->reason, GetParam() == "24.11.5" ? "old" : "Epilog error");
  slurm.update_node("cpu-0", {.state = "RESUME"});
  EXPECT_FALSE(slurm.node("cpu-0")->own_drain);
  EXPECT_EQ(told, Words());
}

TEST_P(LossTest, ASlurmdWithAnotherKeyIsSilent) {
  nodes(1);
  std::string key = "a";
  slurm.key_file = [&](const std::string& name) { return SlurmKeys{{name.empty() ? key : "slurm.key"}, ""}; };
  run();
  EXPECT_EQ(slurm.reconfigure(), SlurmErrno::kSuccess);
  loop.run_for(10min);
  EXPECT_EQ(told.size(), 1U);
  EXPECT_EQ(told.front(), "requeued: the slurmd of its node has another key");
}

TEST_P(LossTest, OnAHostJobsOutliveTheirSlurmd) {
  nodes(1);
  run();
  slurm.end_slurmd("cpu-0");
  loop.run_for(5s);
  slurm.start_slurmd("cpu-0", "Features=cpu");
  loop.run_for(15min);
  EXPECT_EQ(slurm.jobs().at(1).state, SimJob::State::kCompleted);
  EXPECT_EQ(told, Words());
  run();
  slurm.end_slurmd("cpu-0");
  slurm.stop_slurmd("cpu-0");
  EXPECT_EQ(told.size(), 1U) << "the host has ended";
}

TEST_P(LossTest, ASlurmdThatIsCutOffFallsSilentAndReturns) {
  text += "SlurmdTimeout=60\nReturnToService=2\n";
  EXPECT_EQ(slurm.reconfigure(), SlurmErrno::kSuccess);
  nodes(1);
  slurm.cut_slurmd("cpu-0", true);
  loop.run_for(2min);
  EXPECT_TRUE(slurm.node("cpu-0")->down);
  slurm.cut_slurmd("cpu-0", false);
  loop.run_for(2s);
  EXPECT_TRUE(slurm.usable(*slurm.node("cpu-0")));
}

TEST_P(SimSlurmTest, ALostRegistrationIsNotRepeatedBeforeAReload) {
  slurm.start_slurmd("cpu-0", "Features=cpu");
  slurm.lose_registrations();
  loop.run_for(10min);
  EXPECT_EQ(slurm.node("cpu-0"), nullptr);
  EXPECT_TRUE(slurm.slurmd_ready("cpu-0"));
  slurm.reload_slurmd("cpu-0");
  loop.run_for(2s);
  EXPECT_NE(slurm.node("cpu-0"), nullptr);
}

}  // namespace
}  // namespace sim
