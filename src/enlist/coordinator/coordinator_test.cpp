// Tests the coordinator on virtual time, with a store in memory and fixed answers in place of slurmrestd.
#include "enlist/coordinator/coordinator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/hash.hpp"
#include "core/testing/fake_random.hpp"
#include "core/testing/manual_loop.hpp"
#include "enlist/coordinator/departed.hpp"
#include "enlist/coordinator/leaving.hpp"
#include "enlist/coordinator/node_words.hpp"
#include "enlist/coordinator/testing/fakes.hpp"
#include "enlist/rules/pool_file.hpp"
#include "slurm/conf/loaded.hpp"
#include "slurm/testing/fake_transport.hpp"
#include "slurm/testing/replies.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kBase = "/slurm/v0.0.45";
const std::string kHost(64, '1');

/// A process of slurmrestd that always runs.
struct Running final : Supervised {
  void stop() override {}
  [[nodiscard]] bool running() const override { return true; }
  [[nodiscard]] std::string last_error() const override { return {}; }
};

struct CoordinatorTest : ::testing::Test {
  CoordinatorTest() {
    slurm::testing::serve_quiet_cluster(http);
    http.on("POST", kBase + "/node/gpu-1", [this](const net::HttpRequest& request) -> slurm::FakeTransport::Answer {
      posted.push_back(*core::parse_json(request.body));
      const core::Json state = posted.back().value("state", core::Json());
      const bool stays = state.is_null() || state == core::Json::array({"DRAIN"});
      if (!state.is_null() && stays && shown.find("DRAIN") == std::string::npos) shown += R"(,"DRAIN")";
      show("i1", stays ? shown : R"("IDLE")", stays ? core::get_string(posted.back(), {"reason"}) : "");
      return slurm::testing::done();
    });
    http.on("DELETE", kBase + "/node/gpu-1", [this](const net::HttpRequest&) -> slurm::FakeTransport::Answer {
      ++deleted;
      show("", "", "");
      return slurm::testing::done();
    });
    http.on("GET", kBase + "/reconfigure/", [this](const net::HttpRequest&) -> slurm::FakeTransport::Answer {
      loaded = slurm::conf::marker_name(slurm::Owner::kEnlistment, hash_of(host.files["/etc/slurm/slurm-enlist.conf"]));
      show_partitions();
      return slurm::testing::done();
    });
    host.files["/etc/slurm/slurm.conf"] = "ClusterName=site\nSlurmctldHost=ctl\nAuthAltParameters=jwt_key=/etc/slurm/jwt.key\n";
    host.files["/etc/slurm/slurm.key"] = host.files["/etc/slurm/jwt.key"] = "secret";
    store.set().pools["gpu"] = {.name = "gpu"};
    store.set().nodes["gpu-1"] = {.name = "gpu-1", .pool = "gpu", .key = kHost};
    coordinator.start();
    loop.advance(3s);
  }
  ~CoordinatorTest() override { EXPECT_THAT(log.text, Not(HasSubstr("secret"))); }

  /// Makes Slurm show the node with these values. `instance` "": Slurm does not have the node.
  void show(const std::string& instance, const std::string& states, const std::string& reason) {
    shown = states;
    const core::Json node = instance.empty() ? core::Json()
                                             : core::Json{{"name", "gpu-1"},
                                                          {"state", *core::parse_json("[" + states + "]")},
                                                          {"reason", reason},
                                                          {"instance_id", instance},
                                                          {"slurmd_start_time", slurmd_start},
                                                          {"features", core::Json::array({"gpu"})},
                                                          {"active_features", core::Json::array({"gpu"})},
                                                          {"partitions", core::Json::array({"gpu"})},
                                                          {"cpus", 4},
                                                          {"real_memory", 1000}};
    const std::string row = slurm::testing::node("other", R"("IDLE")") + (node.is_null() ? "" : "," + core::canonical(node));
    http.on("GET", kBase + "/nodes/", slurm::testing::nodes(row, ++update));
    http.on("GET", kBase + "/nodes/?update_time=", slurm::testing::nodes(row, update));
    http.on("GET", kBase + "/node/gpu-1", slurm::testing::nodes(node.is_null() ? "" : core::canonical(node), update));
  }
  void show_job(const std::string& states) {
    const std::string row =
        states.empty() ? "" : R"({"job_id":7,"job_state":[)" + states + R"(],"partition":"gpu","nodes":"gpu-1",
        "job_resources":{"nodes":{"list":"gpu-1"}}})";
    http.on("GET", kBase + "/jobs/", slurm::testing::jobs(row, ++update));
    http.on("GET", kBase + "/jobs/?update_time=", slurm::testing::jobs(row, update));
  }
  /// Makes Slurm show the partitions of the pool file that it has loaded.
  void show_partitions() {
    const auto partitions = slurm::testing::partitions(
        R"({"name":"gpu","partition":{"state":["UP"]}},{"name":")" + loaded + R"(","partition":{"state":["INACTIVE"]}})",
        ++update);
    http.on("GET", kBase + "/partitions/", partitions);
    http.on("GET", kBase + "/partitions/?update_time=", partitions);
  }
  /// Sends a request with the host's key. Returns the status of the answer, and stores its body in `told`.
  int ask(const std::string& target, const core::Json& body) {
    net::HttpRequest request{.method = "POST", .target = target, .body = core::canonical(body)};
    request.peer_key = kHost;
    int status = 0;
    coordinator.server().serve(request, [&](const net::HttpResponse& response) {
      status = response.status;
      if (const auto json = core::parse_json(response.body)) told = *json;
    });
    for (int i = 0; i < 10 && status == 0; ++i) loop.advance(10ms);
    return status;
  }
  void report(const Report& of) { EXPECT_EQ(ask("/v1/sync", to_json(Sync{of})), 200) << told; }
  /// Lets time pass. The agent reports every second.
  void pass(core::Duration time, const Report& of) {
    for (; time > 0s; time -= 1s) {
      report(of);
      loop.advance(1s);
    }
  }
  [[nodiscard]] const Node& node() const { return store.contents().nodes.at("gpu-1"); }

  core::ManualLoop loop;
  core::FakeRandom random;
  testing::KeptLog log;
  testing::FakeHost host;
  testing::MemoryStore store{loop};
  slurm::FakeTransport http{loop};
  std::vector<core::Json> posted;
  long update = 100;
  int deleted = 0;
  std::string shown;            ///< The states of the node.
  core::Json told;              ///< The body of the last answer to the host.
  core::Json slurmd_start = 0;  ///< The slurmd_start_time that Slurm shows; 0: unknown.
  std::string loaded;           ///< The marker of the pool file that Slurm has loaded.
  slurm::Clusters clusters{loop, random, log, [this](const slurm::Endpoint&) { return std::make_unique<slurm::Link>(http); }};
  std::vector<Command> started;
  Coordinator coordinator{loop,
                          random,
                          log,
                          store,
                          host,
                          [this](Command command, const std::function<void()>&) {
                            started.push_back(std::move(command));
                            return std::make_unique<Running>();
                          },
                          clusters,
                          {}};
};

const Report kRuns{.hostname = "h",
                   .boot_id = "b",
                   .slurm_version = "26.05.1",
                   .conf = "CPUs=4 RealMemory=1000",
                   .instance_id = "i1",
                   .running = true,
                   .check_passed = true};

TEST_F(CoordinatorTest, ANodeBecomesReadyWhenSlurmShowsItsProcess) {
  EXPECT_EQ(node().phase, Phase::kPending);
  report(kRuns);
  loop.advance(2s);
  EXPECT_EQ(node().phase, Phase::kConfirming);
  show("i0", R"("IDLE","DRAIN")", "slurm-enlist: joining");
  loop.advance(2s);
  EXPECT_EQ(node().phase, Phase::kConfirming) << "another process has registered";
  EXPECT_TRUE(posted.empty());
  show("i1", R"("IDLE","DRAIN")", "slurm-enlist: joining");
  loop.advance(3s);
  ASSERT_EQ(posted.size(), 1U);
  EXPECT_EQ(posted.front().at("state"), core::Json::array({"UNDRAIN"}));
  EXPECT_EQ(node().phase, Phase::kReady);
  EXPECT_EQ(node().confirmed, "i1");
}

TEST_F(CoordinatorTest, SlurmrestdIsStartedOnceAndAgainForOtherControllers) {
  EXPECT_EQ(started.size(), 1U);
  host.files["/etc/slurm/slurm.conf"] += "MaxNodeCount=5\n";
  loop.advance(10s);
  EXPECT_EQ(started.size(), 1U);
  host.files["/etc/slurm/slurm.conf"] += "SlurmctldHost=backup\n";
  loop.advance(10s);
  EXPECT_EQ(started.size(), 2U);
}

TEST_F(CoordinatorTest, APoolIsLoadedBySlurm) {
  loop.advance(10s);
  EXPECT_THAT(host.files["/etc/slurm/slurm-enlist.conf"], HasSubstr("PartitionName=gpu"));
  EXPECT_EQ(http.asked("GET", kBase + "/reconfigure/"), 1);
}

TEST_F(CoordinatorTest, NothingIsWrittenAtRest) {
  report(kRuns);
  show("i1", R"("IDLE")", "");
  loop.advance(30s);
  ASSERT_EQ(node().phase, Phase::kReady);
  const int commits = store.commits;
  for (int i = 0; i < 20; ++i) {
    report(kRuns);
    loop.advance(30s);
  }
  EXPECT_EQ(store.commits, commits);
  EXPECT_TRUE(posted.empty());
}

TEST_F(CoordinatorTest, ARefusalIsToldWithinTenSeconds) {
  report(kRuns);
  loop.advance(7s);
  EXPECT_EQ(node().phase, Phase::kConfirming);
  EXPECT_EQ(node().registrations, 1U) << "its registration may be lost";
  Report again = kRuns;
  again.registrations = 1;
  report(again);
  loop.advance(5s);
  EXPECT_EQ(node().phase, Phase::kRefused);
  EXPECT_FALSE(node().message.empty());
}

TEST_F(CoordinatorTest, ARegistrationThatWasLostIsRepeated) {
  report(kRuns);
  Report again = kRuns;
  for (int i = 0; i < 200; ++i) {
    loop.advance(1s);
    again.registrations = node().registrations;
    report(again);
  }
  EXPECT_GE(node().registrations, 4U);
  EXPECT_LE(node().registrations, 5U) << "the pause grows";
  EXPECT_EQ(node().phase, Phase::kRefused);
  show("i1", R"("IDLE")", "");
  loop.advance(10s);
  EXPECT_EQ(node().phase, Phase::kReady);
  const std::uint64_t before = node().registrations;
  loop.advance(1min);
  EXPECT_EQ(node().registrations, before);
}

TEST_F(CoordinatorTest, ARecordThatSlurmLostIsRegisteredAgain) {
  report(kRuns);
  show("i1", R"("IDLE")", "");
  loop.advance(5s);
  show("", "", "");
  loop.advance(5s);
  EXPECT_EQ(node().phase, Phase::kLost);
  EXPECT_EQ(node().registrations, 1U);
  Report again = kRuns;
  again.registrations = 1;
  report(again);
  loop.advance(8s);
  EXPECT_EQ(node().registrations, 1U);
  EXPECT_EQ(node().phase, Phase::kLost);
  loop.advance(22s);
  EXPECT_EQ(node().registrations, 2U);
  EXPECT_EQ(node().phase, Phase::kRefused) << "it has registered again, and Slurm does not take it";
  again.registrations = 2;
  report(again);
  loop.advance(15s);
  EXPECT_EQ(node().phase, Phase::kRefused);
  show("i1", R"("IDLE")", "");
  loop.advance(10s);
  EXPECT_EQ(node().phase, Phase::kReady);
}

TEST_F(CoordinatorTest, ASlurmdThatWasStartedAgainIsConfirmedAgain) {
  Report runs = kRuns;
  runs.started = core::WallTime{1000s};
  slurmd_start = 1001;
  report(runs);
  show("i1", R"("IDLE")", "");
  loop.advance(5s);
  ASSERT_EQ(node().phase, Phase::kReady);
  const auto starts_again = [&](core::Duration at) {
    Report stopped = runs;
    stopped.running = false;
    report(stopped);
    loop.advance(1s);
    runs.started = core::WallTime{at};
    report(runs);
    loop.advance(5s);
    EXPECT_EQ(node().phase, Phase::kConfirming);
  };
  starts_again(2000s);
  slurmd_start = 2001;
  show("i1", R"("IDLE")", "");
  loop.advance(5s);
  EXPECT_EQ(node().phase, Phase::kReady);
  EXPECT_EQ(node().message, "");

  starts_again(3000s);
  loop.advance(30s);
  EXPECT_EQ(node().phase, Phase::kReady) << "the clock of the host may have been set";
  EXPECT_THAT(node().message, HasSubstr("the clock of the host was set"));
  const int commits = store.commits;
  for (int i = 0; i < 5; ++i) {
    report(runs);
    loop.advance(30s);
  }
  EXPECT_EQ(store.commits, commits);
  EXPECT_EQ(node().registrations, 0U);
}

TEST_F(CoordinatorTest, ARegistrationOfAnotherProcessIsNoNewBeginning) {
  // With systemd, a reload replaces the process of slurmd.
  Report runs = kRuns;
  for (int i = 0; i < 60; ++i) {
    runs.registrations = node().registrations;
    runs.started = core::WallTime{1000s + 1s * node().registrations};
    report(runs);
    loop.advance(1s);
    if (i > 15) {
      EXPECT_EQ(node().phase, Phase::kRefused);
    }
  }
  EXPECT_LE(node().registrations, 4U) << "the pause grows";
}

TEST_F(CoordinatorTest, ASilentNodeIsNamed) {
  report(kRuns);
  show("i1", R"("IDLE")", "");
  loop.advance(5s);
  show("i1", R"("DOWN","NOT_RESPONDING")", "Not responding");
  loop.advance(4min);
  EXPECT_EQ(node().phase, Phase::kSilent);
  show("i1", R"("IDLE")", "");
  report(kRuns);
  loop.advance(3s);
  EXPECT_EQ(node().phase, Phase::kReady);
}

TEST_F(CoordinatorTest, AHostThatJoinsLateIsNotSilent) {
  loop.advance(10min);
  store.commit(
      [](const Contents&) {
        return Changes{.nodes = {{"gpu-2", Node{.name = "gpu-2", .pool = "gpu", .key = "k"}}}};
      },
      [](const core::Result<void>& result) { EXPECT_TRUE(result); });
  loop.advance(110s);
  EXPECT_EQ(store.contents().nodes.at("gpu-2").phase, Phase::kPending);
  EXPECT_EQ(node().phase, Phase::kSilent) << "this one has had its time";
  loop.advance(20s);
  EXPECT_EQ(store.contents().nodes.at("gpu-2").phase, Phase::kSilent);
}

/// Returns the reason of the drain that was last posted.
std::string last_drain(const std::vector<core::Json>& posted) {
  if (posted.empty() || posted.back().at("state") != core::Json::array({"DRAIN"})) return {};
  return core::get_string(posted.back(), {"reason"});
}

// Requirement 19
// Requirement 20
// Requirement 21
TEST_F(CoordinatorTest, ANodeLeavesWhenItsJobHasEnded) {
  report(kRuns);
  show("i1", R"("MIXED")", "");
  show_job(R"("RUNNING")");
  loop.advance(5s);
  EXPECT_EQ(node().phase, Phase::kReady);
  EXPECT_EQ(ask("/v1/leave", core::Json::object()), 200);
  Report runs = kRuns;
  runs.steps_known = true;
  runs.steps = {"7.batch"};
  pass(10s, runs);
  EXPECT_EQ(last_drain(posted), "slurm-enlist: leaving");
  EXPECT_EQ(node().phase, Phase::kDraining);
  EXPECT_THAT(node().message, HasSubstr("jobs run there: 7"));
  EXPECT_EQ(core::get_string(told, {"desired", "leave"}), "steps");
  EXPECT_EQ(posted.size(), 1U);

  // Slurm shows the end of the job before the host does. After the epilog, the node is idle again.
  show_job("");
  show("i1", R"("IDLE","DRAIN","COMPLETING")", "slurm-enlist: leaving");
  pass(5s, runs);
  EXPECT_THAT(node().message, HasSubstr("completing"));
  show("i1", R"("IDLE","DRAIN")", "slurm-enlist: leaving");
  pass(5s, runs);
  EXPECT_THAT(node().message, HasSubstr("steps still run on the host: 7.batch"));
  runs.steps.clear();
  pass(5s, runs);
  EXPECT_EQ(node().phase, Phase::kStopping);
  EXPECT_EQ(core::get_string(told, {"desired", "leave"}), "stop");
  EXPECT_EQ(deleted, 0);

  runs.running = false;
  runs.stopped = true;
  pass(5s, runs);
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(node().phase, Phase::kGone);
  EXPECT_EQ(core::get_string(told, {"desired", "leave"}), "clean");
  runs.left = true;
  report(runs);
  loop.advance(3s);
  EXPECT_TRUE(store.contents().nodes.empty());
  EXPECT_EQ(ask("/v1/sync", to_json(Sync{runs})), 403);
  EXPECT_THAT(core::get_string(told, {"error"}), HasSubstr("it must join again, with a new token"));
  EXPECT_EQ(deleted, 1);
}

/// A node that has left, and whose record was deleted. It is a departed node.
struct DepartedTest : CoordinatorTest {
  DepartedTest() {
    report(kRuns);
    show("i1", R"("IDLE")", "");
    loop.advance(5s);
    EXPECT_EQ(ask("/v1/leave", core::Json::object()), 200);
    Report gone = kRuns;
    gone.running = false;
    gone.steps_known = gone.stopped = true;
    pass(10s, gone);
    gone.left = true;
    report(gone);
    loop.advance(1s);
    EXPECT_TRUE(store.contents().nodes.empty());
    EXPECT_EQ(deleted, 1);
  }
  [[nodiscard]] bool remembered() const { return !departed_nodes(store.contents().values).empty(); }
};

// Requirement 21
TEST_F(DepartedTest, ARecordThatSlurmctldHasAgainIsDrainedAndDeletedAgain) {
  posted.clear();
  loop.advance(2s);
  // slurmctld was killed before it had saved the deletion and the drain, and has started a job on the node.
  show("i1", R"("ALLOCATED")", "");
  show_job(R"("RUNNING")");
  loop.advance(10s);
  EXPECT_EQ(last_drain(posted), "slurm-enlist: leaving");
  EXPECT_EQ(node().phase, Phase::kDraining);
  EXPECT_THAT(node().message, HasSubstr("jobs run there: 7"));
  EXPECT_EQ(ask("/v1/sync", to_json(Sync{kRuns})), 403) << "no host speaks for it";
  EXPECT_EQ(deleted, 1);
  const auto kept = keep(store.contents(), {"gpu-1"});
  ASSERT_FALSE(kept);
  EXPECT_THAT(kept.error().message, HasSubstr("node gpu-1 has left; its record in Slurm is deleted again"));
  show_job("");
  show("i1", R"("IDLE","DRAIN","NOT_RESPONDING")", "slurm-enlist: leaving");
  loop.advance(10s);
  EXPECT_EQ(deleted, 2);
  EXPECT_TRUE(store.contents().nodes.empty());
  EXPECT_TRUE(remembered());
  loop.advance(60s);
  EXPECT_FALSE(remembered());
}

TEST_F(DepartedTest, AnotherSlurmdUnderItsNameIsLeftAlone) {
  show("i2", R"("IDLE")", "");
  posted.clear();
  loop.advance(60s);
  EXPECT_TRUE(posted.empty());
  EXPECT_EQ(deleted, 1);
  EXPECT_TRUE(store.contents().nodes.empty());
  EXPECT_FALSE(remembered());
}

TEST_F(DepartedTest, ItIsRememberedWhileSlurmDoesNotAnswer) {
  for (const char* path : {"/nodes/", "/nodes/?update_time=", "/jobs/", "/jobs/?update_time="})
    http.on("GET", kBase + path, slurm::testing::error(500, 1800, "no controller"));
  loop.advance(10min);
  EXPECT_TRUE(remembered());
  show_job("");
  show("", "", "");
  loop.advance(60s);
  EXPECT_FALSE(remembered()) << "slurmctld was asked long after the deletion";
}

TEST_F(CoordinatorTest, ANodeGetsOtherWordsWhenItsJobHasEnded) {
  const core::Result<SlurmFacts> facts;
  const auto configure = [&](const std::string& words) {
    store.commit(
        [&, words](const Contents& now) {
          return enlist::configure(now, {facts, clusters.snapshot(kCluster)}, "gpu-1", words, {});
        },
        [](const core::Result<void>& done) { EXPECT_TRUE(done) << done.error().message; });
    loop.advance(10ms);
  };
  report(kRuns);
  show("i1", R"("MIXED")", "");
  show_job(R"("RUNNING")");
  loop.advance(5s);
  configure("RealMemory=500");
  Report runs = kRuns;
  runs.steps_known = true;
  runs.steps = {"7.batch"};
  pass(10s, runs);
  EXPECT_EQ(last_drain(posted), "slurm-enlist: configuring");
  EXPECT_THAT(node().message, HasSubstr("it gets new parameters: jobs run there: 7"));
  EXPECT_EQ(core::get_string(told, {"desired", "leave"}), "steps");

  // The request is cancelled, and made again.
  configure("");
  pass(5s, runs);
  EXPECT_EQ(posted.back().at("state"), core::Json::array({"UNDRAIN"}));
  EXPECT_EQ(core::get_string(told, {"desired", "leave"}), "");
  configure("RealMemory=500");
  pass(10s, runs);
  EXPECT_EQ(last_drain(posted), "slurm-enlist: configuring");

  // Somebody else drains the node meanwhile.
  show_job("");
  show("i1", R"("IDLE","DRAIN")", "bad fan");
  runs.steps.clear();
  pass(5s, runs);
  EXPECT_EQ(node().phase, Phase::kStopping);
  EXPECT_EQ(node().node_conf, "");
  EXPECT_EQ(core::get_string(told, {"desired", "leave"}), "stop");
  EXPECT_EQ(core::get_string(told, {"desired", "node_conf"}), "");
  runs.running = false;
  runs.stopped = true;
  pass(5s, runs);
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(node().phase, Phase::kStarting);
  EXPECT_EQ(core::get_string(told, {"desired", "leave"}), "");
  EXPECT_EQ(core::get_string(told, {"desired", "node_conf"}), "RealMemory=500");

  runs = kRuns;
  runs.conf = "CPUs=4 RealMemory=500";
  posted.clear();
  show("i1", R"("IDLE","DRAIN")", "slurm-enlist: joining");
  pass(5s, runs);
  ASSERT_EQ(posted.size(), 1U);
  EXPECT_EQ(core::get_string(posted.front(), {"reason"}), "bad fan") << "the drain is found again";
  EXPECT_EQ(node().phase, Phase::kReady);
  EXPECT_EQ(deleted, 1);
}

TEST_F(CoordinatorTest, ANodeWithOtherResourcesThanItsWordsGetsANewRecord) {
  const core::Result<SlurmFacts> facts;
  const auto configure = [&] {
    store.commit(
        [&](const Contents& now) {
          return enlist::configure(now, {facts, clusters.snapshot(kCluster)}, "gpu-1", "", {});
        },
        [](const core::Result<void>& done) { EXPECT_TRUE(done) << done.error().message; });
    loop.advance(10ms);
  };
  report(kRuns);
  show("i1", R"("IDLE")", "");
  loop.advance(5s);
  configure();
  EXPECT_FALSE(node().configuring.wanted) << "Slurm has what the parameters say";
  Report more = kRuns;
  more.conf = "CPUs=8 RealMemory=1000";
  pass(5s, more);
  EXPECT_EQ(node().phase, Phase::kReady);
  EXPECT_THAT(node().message, HasSubstr("Slurm's record has 4 CPUs of 8"));
  more.conf = "CPUs=4 RealMemory=500";
  pass(5s, more);
  EXPECT_THAT(node().message, HasSubstr("Slurm's record has 1000 MiB of memory in place of 500"));
  configure();
  EXPECT_TRUE(node().configuring.restarts());
}

TEST_F(CoordinatorTest, NothingIsDeletedWhileSlurmIsAway) {
  report(kRuns);
  show("i1", R"("IDLE","DRAIN")", "slurm-enlist: leaving");
  Report stopped = kRuns;
  stopped.running = false;
  stopped.steps_known = stopped.stopped = true;
  report(stopped);
  for (const char* path : {"/nodes/", "/nodes/?update_time=", "/jobs/", "/jobs/?update_time="})
    http.on("GET", kBase + path, slurm::testing::error(500, 1800, "no controller"));
  loop.advance(5s);
  EXPECT_EQ(ask("/v1/leave", core::Json::object()), 200);
  pass(60s, stopped);
  EXPECT_EQ(deleted, 0);
  EXPECT_THAT(node().message, HasSubstr("Slurm does not answer"));
}

TEST_F(CoordinatorTest, ASilentNodeIsDrainedAndComesBack) {
  report(kRuns);
  show("i1", R"("IDLE")", "");
  loop.advance(5s);
  show("i1", R"("MIXED","NOT_RESPONDING")", "");
  loop.advance(4min);
  EXPECT_EQ(node().phase, Phase::kSilent);
  EXPECT_EQ(last_drain(posted), "slurm-enlist: silent");
  loop.advance(1min);
  EXPECT_EQ(posted.size(), 1U);
  EXPECT_NE(node().silent_since, core::WallTime{});
  // Slurm has set the node down meanwhile, and slurmd has registered again.
  show("i1", R"("DOWN","DRAIN")", "slurm-enlist: silent");
  pass(5s, kRuns);
  EXPECT_EQ(posted.back().at("state"), core::Json::array({"RESUME"}));
  EXPECT_EQ(node().phase, Phase::kReady);
  EXPECT_EQ(node().silent_since, core::WallTime{});
  EXPECT_EQ(deleted, 0) << "dead hosts are kept unless somebody asks otherwise";
}

TEST_F(CoordinatorTest, ADrainIsFoundAgainOnANewRecord) {
  report(kRuns);
  show("i1", R"("IDLE","DRAIN")", "bad fan");
  loop.advance(5s);
  EXPECT_EQ(node().marks.reason, "bad fan");
  show("", "", "");
  loop.advance(5s);
  ASSERT_EQ(node().registrations, 1U);
  EXPECT_EQ(node().marks.reason, "bad fan");
  Report again = kRuns;
  again.registrations = 1;
  show("i1", R"("IDLE","DRAIN")", "slurm-enlist: joining");
  pass(5s, again);
  ASSERT_EQ(posted.size(), 1U);
  EXPECT_EQ(core::get_string(posted.front(), {"reason"}), "bad fan");
  EXPECT_THAT(node().message, HasSubstr("somebody else has drained it: bad fan"));
  // Somebody resumes the node. The restored drain is not set once more.
  show("i1", R"("IDLE")", "");
  pass(5s, again);
  EXPECT_EQ(node().marks.reason, "");
}

TEST_F(CoordinatorTest, ACopyOfAHostDoesNotSpeakForIt) {
  Report runs = kRuns;
  runs.steps_known = true;
  runs.steps = {"7.batch"};
  Report copy = runs;
  copy.boot_id = "c";
  copy.hostname = "h2";
  report(runs);
  show("i1", R"("IDLE")", "");
  loop.advance(5s);
  ASSERT_EQ(node().phase, Phase::kReady);
  report(copy);
  loop.advance(1s);
  EXPECT_EQ(node().phase, Phase::kReady) << "the host has booted";
  report(runs);
  loop.advance(1s);
  EXPECT_EQ(node().phase, Phase::kImpostor);
  EXPECT_THAT(node().message, HasSubstr("two hosts use the key of this node"));
  EXPECT_THAT(node().message, HasSubstr("h (boot b) and h2 (boot c)"));

  // The copy runs no steps, and has stopped its slurmd.
  EXPECT_EQ(ask("/v1/leave", core::Json::object()), 200);
  copy.steps.clear();
  copy.running = false;
  copy.stopped = true;
  for (int i = 0; i < 300; ++i) {
    report(copy);
    loop.advance(1s);
    report(runs);
    loop.advance(1s);
  }
  EXPECT_EQ(node().phase, Phase::kStuck);
  EXPECT_THAT(node().message, HasSubstr("two hosts use the key"));
  EXPECT_EQ(last_drain(posted), "slurm-enlist: leaving");
  EXPECT_EQ(core::get_string(told, {"desired", "leave"}), "steps");
  EXPECT_EQ(deleted, 0);

  // The copy does not report with this key any more, because it has joined with a key of its own.
  pass(130s, runs);
  EXPECT_THAT(node().message, HasSubstr("steps still run on the host: 7.batch"));
  EXPECT_EQ(node().report.hostname, "h");
}

TEST_F(CoordinatorTest, TheEndAnswersThoseWhoWait) {
  bool stopped = false;
  coordinator.stop([&] { stopped = true; });
  loop.advance(11s);
  EXPECT_TRUE(stopped);
}

TEST(StoreTargetTest, AHostThatHasReturnedIsNotGivenUp) {
  core::ManualLoop loop;
  testing::MemoryStore store(loop);
  std::optional<core::MonoTime> heard_at;
  StoreTarget target(store, [&](const std::string&) { return heard_at; });
  const Node seen{.name = "gpu-1", .pool = "gpu", .key = kHost};
  store.set().nodes["gpu-1"] = seen;
  const auto give_up = [&](core::MonoTime when) {
    auto act = std::make_shared<RecordPhase>(seen, Phase::kSilent, "");
    act->leaving = {.wanted = true, .dead = true};
    act->heard_at = when;
    std::optional<core::Result<core::Json>> out;
    target.execute(act, [&](const plan::ActResult& result) { out = result.value; });
    // The agent reports while the act waits for its commit.
    heard_at = core::MonoTime{2s};
    loop.advance(1s);
    return out && out->has_value();
  };
  EXPECT_FALSE(give_up(core::MonoTime{1s}));
  EXPECT_FALSE(store.contents().nodes.at("gpu-1").leaving.wanted);
  EXPECT_TRUE(give_up(core::MonoTime{2s})) << "this was known";
  EXPECT_TRUE(store.contents().nodes.at("gpu-1").leaving.dead);

  auto forget = std::make_shared<ForgetNode>(store.contents().nodes.at("gpu-1"));
  forget->heard_at = core::MonoTime{1s};
  target.execute(forget, [](const plan::ActResult& result) { EXPECT_FALSE(result.value); });
  loop.advance(1s);
  EXPECT_TRUE(store.contents().nodes.contains("gpu-1"));
}

TEST(SlurmrestdTest, HasNoKeyAndASocketThatNobodyElseReaches) {
  const Command command = slurmrestd_command({.program = "/usr/sbin/slurmrestd", .user = "u", .slurm_conf = "/a/slurm.conf"});
  EXPECT_THAT(command.arguments, ::testing::ElementsAre("/usr/sbin/slurmrestd", "-a", "rest_auth/jwt", "-s",
                                                        "openapi/slurmctld", "unix:/run/slurm-enlist-coordinator/slurmrestd"));
  EXPECT_EQ(command.folder, "/run/slurm-enlist-coordinator");
  EXPECT_THAT(command.environment, ::testing::IsSupersetOf({"SLURM_CONF=/a/slurm.conf", "SLURM_JWT=daemon"}));
  EXPECT_EQ(command.user, "u");
}

}  // namespace
}  // namespace enlist
