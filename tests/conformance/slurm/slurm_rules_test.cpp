// Tests Slurm's rules of registration, deletion and reconfiguration that our client does not depend on.
// tests/conformance/slurm/README.md names the test of each rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "core/json.hpp"
#include "fixture.hpp"
#include "slurm/acts.hpp"

namespace conformance {
namespace {

using core::Json;
using ::testing::AnyOf;
using ::testing::ElementsAre;

class SlurmRules : public SlurmTest {
 protected:
  void TearDown() override {
    // After a failure the world may be in any state, so nothing is restored here.
    if (HasFatalFailure() || IsSkipped()) return SlurmTest::TearDown();
    for (const std::string& name : started_) forget(name);
    if (configured_) configure("");
    SlurmTest::TearDown();
  }

  void start(const std::string& name, const std::string& conf, const std::string& servers = "") {
    world->start_node(name, conf, servers);
    started_.push_back(name);
  }
  enum class Told { kReconfigured, kRestarted };
  /// Sets the keys for slurmctld, n1 and n2, and makes them load the keys.
  void use_keys(const std::vector<std::string>& kids, const std::string& use_default, Told told) {
    for (const char* host : {"", "n1", "n2"}) world->set_keys(host, kids, use_default);
    if (told == Told::kReconfigured) {
      // slurmctld ignores a second reconfigure with the same text, but slurmds do not. So each text is different.
      return configure("MessageTimeout=" + std::to_string(11 + kids.size()) + "\n");
    }
    for (const char* name : {"n1", "n2"}) world->stop_node(name);
    world->stop_slurmctld();
    world->start_slurmctld();
    for (const char* name : {"n1", "n2"}) world->start_node(name, kNodeConf);
    for (const char* name : {"n1", "n2"}) EXPECT_TRUE(becomes(name, "IDLE", 20s));
  }
  void runs_a_job_everywhere() {
    for (const char* name : {"n1", "n2"}) ASSERT_TRUE(becomes(name, "IDLE", 20s));
    const std::int64_t job = world->submit("n1,n2", 1s);
    ASSERT_TRUE(job_becomes(job, "COMPLETED", 30s));
  }
  void forget(const std::string& name) {
    if (world->slurmd_runs(name)) world->stop_node(name);
    if (state(name) != "absent") {
      EXPECT_TRUE(remove(name)) << name;
    }
  }
  void configure(const std::string& lines) {
    configured_ = !lines.empty();
    std::map<std::string, std::optional<core::WallTime>> before;
    for (const char* name : {"n1", "n2"}) {
      const auto start = slurmd_start(name);
      if (start && world->slurmd_runs(name)) before.emplace(name, start);
    }
    world->configure(lines);
    const auto loaded = ask<void>([&](auto done) { client->reconfigure(std::move(done)); });
    EXPECT_TRUE(loaded) << error_of(loaded);
    // A late registration would end a DOWN that the test sets next. Some slurmds of these tests never register, so this wait is
    // limited.
    for (const auto& [name, start] : before) registers_after(name, start, 20s);
    pass(kApart);
  }
  /// Sends SIGHUP to the node's slurmd, and waits until slurmctld has the registration that follows.
  void reload(const std::string& name) {
    const auto before = slurmd_start(name);
    pass(kApart);  // Start times of slurmd are in whole seconds.
    world->reload_node(name);
    EXPECT_TRUE(registers_after(name, before, 60s)) << name << " does not register";
  }
  std::optional<core::WallTime> slurmd_start(const std::string& name) {
    const auto found = node(name);
    return found ? found->slurmd_start_time : std::nullopt;
  }
  bool registers_after(const std::string& name, const std::optional<core::WallTime>& start, core::Duration most) {
    const core::MonoTime end = world->loop().clock().mono() + most;
    while (world->loop().clock().mono() < end) {
      const auto now = slurmd_start(name);
      if (now && now != start) return true;
      pass(100ms);
    }
    return false;
  }
  /// Expects that the node is soon in these partitions. Nodes may follow a reconfigure with a short delay.
  void comes_into(const std::string& name, const std::vector<std::string>& partitions, core::Duration most = 160s) {
    const core::MonoTime end = world->loop().clock().mono() + most;
    core::Result<Node> last = node(name);
    while ((!last || last->partitions != partitions) && world->loop().clock().mono() < end) {
      pass(100ms);
      last = node(name);
    }
    ASSERT_TRUE(last) << last.error().message;
    EXPECT_EQ(last->partitions, partitions) << name;
  }
  /// Sends a request that the client does not support. Returns the status, and the number of the first error.
  std::pair<int, std::int64_t> post(const std::string& path, const Json& body) {
    const slurm::Credentials who = tokens->current();
    net::HttpRequest request{.method = "POST", .target = "/slurm/" + client->capabilities()->data_parser + "/" + path};
    request.headers = {
        {"x-slurm-user-name", who.user}, {"x-slurm-user-token", who.token}, {"content-type", "application/json"}};
    request.body = body.dump();
    const auto reply = ask<net::HttpResponse>([&](auto done) { http->send(std::move(request), std::move(done)); });
    if (!reply) return {0, 0};
    const auto answer = core::parse_json(reply->body);
    const Json* errors = answer ? core::find(*answer, {"errors"}) : nullptr;
    const bool bad = errors != nullptr && errors->is_array() && !errors->empty();
    return {reply->status, bad ? core::get_int(errors->front(), {"error_number"}) : 0};
  }
  /// Returns a field of the node that our client does not read.
  Json field(const std::string& name, const char* key) {
    const slurm::Credentials who = tokens->current();
    net::HttpRequest request{.target = "/slurm/" + client->capabilities()->data_parser + "/node/" + name};
    request.headers = {{"x-slurm-user-name", who.user}, {"x-slurm-user-token", who.token}};
    const auto reply = ask<net::HttpResponse>([&](auto done) { http->send(std::move(request), std::move(done)); });
    const auto answer = core::parse_json(reply ? reply->body : "{}");
    const Json* nodes = answer ? core::find(*answer, {"nodes"}) : nullptr;
    return nodes == nullptr || nodes->empty() ? Json() : nodes->front().value(key, Json());
  }
  /// Returns true if the node has no record after this time. A node that has not registered by then never does by itself.
  bool stays_absent(const std::string& name, core::Duration time = 3s) {
    pass(time);
    return state(name) == "absent";
  }
  std::string reason(const std::string& name) {
    const auto found = node(name);
    return found ? found->reason : found.error().message;
  }
  void free(const std::string& name) {
    const auto freed = update(name, "RESUME");
    EXPECT_TRUE(freed) << error_of(freed);
    EXPECT_TRUE(becomes(name, "IDLE", 10s));
  }

 private:
  std::vector<std::string> started_;
  bool configured_ = false;
};

INSTANTIATE_TEST_SUITE_P(Slurm, SlurmRules, kWorlds, [](const auto& which) { return which.param; });

// --- Registration -----------------------------------------------------------------------------------------------------

TEST_P(SlurmRules, WhatLacksResourcesIsDrainedAndInvalid) {
  configure("GresTypes=gpu\n");
  start("big", "RealMemory=9000000 Gres=gpu:2 Features=cpu");
  ASSERT_TRUE(becomes("big", "IDLE+DRAIN+INVALID_REG", 10s));
  const std::regex text(R"(gres/gpu count reported lower than configured \(0 < 2\), )"
                        R"(Low RealMemory \(reported:\d+ < 100\.00% of configured:9000000\))");
  EXPECT_TRUE(std::regex_match(reason("big"), text)) << reason("big");
  EXPECT_EQ(field("big", "reason_set_by_user"), "slurm");
  // slurmctld refuses every update that would return the node to service.
  for (const char* word : {"RESUME", "UNDRAIN", "IDLE"}) {
    const auto freed = update("big", word);
    ASSERT_FALSE(freed) << word;
    EXPECT_EQ(freed.error().code, ErrorCode::kInvalid) << freed.error().message;
    EXPECT_EQ(freed.error().reason, before_26_05() ? "2028" : "2180");
  }
  // The next registration replaces another reason by Slurm's own, and does not end a DOWN.
  ASSERT_TRUE(update("big", "DRAIN", "slurm-operator: x"));
  EXPECT_EQ(reason("big"), "slurm-operator: x");
  ASSERT_TRUE(update("big", "DOWN", "slurm-operator: y"));
  reload("big");
  for (int i = 0; i < 200 && !std::regex_match(reason("big"), text); ++i) pass(100ms);
  EXPECT_TRUE(std::regex_match(reason("big"), text)) << reason("big");
  EXPECT_EQ(state("big"), "DOWN+DRAIN+INVALID_REG");
  const auto removed = remove("big");
  EXPECT_TRUE(removed) << error_of(removed);
}

TEST_P(SlurmRules, WhatHasEnoughAgainStaysDrained) {
  configure("GresTypes=gpu\n");
  ASSERT_EQ(post("node/n1", {{"gres", "gpu:1"}, {"weight", 9}, {"reason", "left over"}}).first, 200);
  EXPECT_EQ(state("n1"), "IDLE") << "until it registers";
  EXPECT_EQ(field("n1", "weight"), 9);
  configure("GresTypes=gpu\nMessageTimeout=11\n");
  ASSERT_TRUE(becomes("n1", "IDLE+DRAIN+INVALID_REG", 10s));
  EXPECT_EQ(field("n1", "weight"), 1) << "a reconfigure goes back to --conf";
  EXPECT_EQ(field("n1", "gres"), "gpu:1");
  reload("n1");  // A reason without a drain may survive one registration.
  const std::string lower = "gres/gpu count reported lower than configured (0 < 1)";
  for (int i = 0; i < 200 && reason("n1") != lower; ++i) pass(100ms);
  EXPECT_EQ(reason("n1"), lower);
  ASSERT_EQ(post("node/n1", {{"gres", ""}}).first, 200);
  reload("n1");
  ASSERT_TRUE(becomes("n1", "IDLE+DRAIN", 10s));
  EXPECT_EQ(reason("n1"), "gres/gpu count reported lower than configured (0 < 1)");
  free("n1");
}

TEST_P(SlurmRules, TheStateInConfCountsOnce) {
  start("s1", "State=DOWN Reason=\"a new node\" Features=cpu");
  start("s2", "State=DRAIN Reason=\"a new node\" Features=cpu");
  start("s3", "State=nonsense Features=cpu");
  EXPECT_TRUE(becomes("s1", "IDLE", 10s)) << "ReturnToService=2";
  EXPECT_TRUE(becomes("s2", "IDLE+DRAIN", 10s));
  EXPECT_EQ(reason("s2"), "a new node");
  free("s2");
  world->stop_node("s2");
  world->start_node("s2", "State=DRAIN Reason=\"a new node\" Features=cpu");
  pass(3s);
  EXPECT_TRUE(becomes("s2", "IDLE")) << "its name was known";
  EXPECT_TRUE(world->until([&] { return !world->slurmd_runs("s3"); }));
  EXPECT_EQ(state("s3"), "absent");
}

TEST_P(SlurmRules, SlurmdEndsAtAConfThatItDoesNotKnow) {
  start("u1", "NoSuchKey=1 Features=cpu");
  start("u2", "NodeName=u2 Features=cpu");
  start("u3", "Features=cpu");
  ASSERT_TRUE(becomes("u3", "IDLE", 10s));
  EXPECT_TRUE(world->slurmd_runs("u3"));
  for (const char* name : {"u1", "u2"}) {
    EXPECT_TRUE(world->until([&] { return !world->slurmd_runs(name); })) << name;
    EXPECT_EQ(state(name), "absent");
  }
}

TEST_P(SlurmRules, AFullTableRefusesInSilence) {
  configure("MaxNodeCount=2\n");
  start("t1", "Features=cpu");
  ASSERT_TRUE(stays_absent("t1", 15s)) << "also when its slurmd is slow to register";
  EXPECT_TRUE(world->slurmd_runs("t1"));
  configure("MaxNodeCount=3\n");
  EXPECT_TRUE(stays_absent("t1")) << "it was told that all is well";
  reload("t1");
  EXPECT_TRUE(becomes("t1", "IDLE", 10s));
}

TEST_P(SlurmRules, TheNameOfANodeSetIsRefusedInSilence) {
  configure("NodeSet=moved Feature=zz\nPartitionName=p2 Nodes=moved\n");
  start("moved", "Features=zz");
  EXPECT_TRUE(stays_absent("moved"));
  EXPECT_TRUE(world->slurmd_runs("moved"));
}

TEST_P(SlurmRules, ASlurmdThatFoundNoSlurmctldTriesAgain) {
  world->stop_slurmctld();
  start("late", "Features=cpu");
  pass(2s);
  EXPECT_TRUE(world->until([&] { return world->slurmd_runs("late"); }));
  world->start_slurmctld();
  EXPECT_TRUE(becomes("late", "IDLE", 40s));
}

TEST_P(SlurmRules, ASlurmdWithAnotherKeyTriesOn) {
  world->set_keys("keyed", {"other"});
  start("keyed", "Features=cpu");
  EXPECT_TRUE(stays_absent("keyed", 12s)) << "also at its second try";
  EXPECT_TRUE(world->slurmd_runs("keyed"));
  world->stop_node("keyed");
  world->set_keys("keyed", {});
  world->start_node("keyed", "Features=cpu");
  EXPECT_TRUE(becomes("keyed", "IDLE", 20s));
}

TEST_P(SlurmRules, SlurmdGoesOnToTheNextServerAtThePortOfTheFirst) {
  const std::string port = ":" + std::to_string(world->slurmctld_port());
  const std::string other = ":" + std::to_string(world->slurmctld_port() + 5);
  const std::string here = world->slurmctld_host();
  start("twice", "Features=cpu", here + port + "," + here + port);
  start("next", "Features=cpu", world->nobody() + port + "," + here + port);
  start("lost", "Features=cpu", world->nobody() + other + "," + here + port);
  EXPECT_TRUE(becomes("next", "IDLE", 15s));
  EXPECT_TRUE(stays_absent("lost", 12s)) << "also at the second try";
  EXPECT_EQ(state("twice"), "absent") << "it refuses the list";
  for (const char* name : {"lost", "twice"}) EXPECT_TRUE(world->slurmd_runs(name)) << name;
}

// --- Keys -------------------------------------------------------------------------------------------------------------

TEST_P(SlurmRules, KeysAreRotatedInThreeSteps) {
  use_keys({"old"}, "", Told::kRestarted);
  runs_a_job_everywhere();
  use_keys({"old", "new"}, "", Told::kReconfigured);
  runs_a_job_everywhere();
  use_keys({"old", "new"}, "new", Told::kReconfigured);
  runs_a_job_everywhere();
  use_keys({"new"}, "", Told::kReconfigured);
  runs_a_job_everywhere();
  use_keys({}, "", Told::kRestarted);
  runs_a_job_everywhere();
}

// --- Probes -----------------------------------------------------------------------------------------------------------

TEST_P(SlurmRules, ProbesAreAnsweredByHttpFrom25_11) {
  const int wanted = before_26_05() ? 0 : 204;
  // Waits for a slow answer. A server that does not support HTTP never gives one.
  const auto status = [&](const std::string& host, const std::string& path) {
    int last = 0;
    world->until([&] { return (last = world->http_status(host, path)) == wanted; });
    return last;
  };
  for (const char* path : {"/healthz", "/livez", "/readyz"}) {
    EXPECT_EQ(status("", path), wanted) << path;
    EXPECT_EQ(status("n1", path), wanted) << path;
  }
  world->stop_slurmctld();
  EXPECT_EQ(world->http_status("", "/livez"), 0);
  EXPECT_EQ(status("n1", "/livez"), wanted);
  world->start_slurmctld();
  EXPECT_EQ(status("", "/readyz"), wanted);
}

// --- Records ----------------------------------------------------------------------------------------------------------

TEST_P(SlurmRules, ADeletedNodeComesBackWithSighupOnly) {
  pass(10s);  // A slurmd that is about to register would create the record again.
  ASSERT_TRUE(update("n1", "DRAIN", "slurm-operator: x"));
  ASSERT_TRUE(remove("n1"));
  EXPECT_TRUE(stays_absent("n1"));
  configure("MessageTimeout=11\n");
  EXPECT_TRUE(stays_absent("n1")) << "a reconfigure reaches only those that have a record";
  EXPECT_TRUE(world->slurmd_runs("n1"));
  reload("n1");
  EXPECT_TRUE(becomes("n1", "IDLE", 10s)) << "and nothing is left of its drain";
}

TEST_P(SlurmRules, WithItsStateSlurmctldLosesItsNodes) {
  const std::int64_t first = world->submit("n1", 1s);
  EXPECT_GT(world->submit("n1", 1s), first);
  pass(10s);  // A slurmd that is about to register would create its record again.
  world->stop_slurmctld();
  world->lose_state();
  world->start_slurmctld();
  EXPECT_TRUE(stays_absent("n1", 12s));
  configure("MessageTimeout=11\n");
  EXPECT_TRUE(stays_absent("n1"));
  EXPECT_EQ(state("n2"), "absent");
  for (const char* name : {"n1", "n2"}) {
    reload(name);
    EXPECT_TRUE(becomes(name, "IDLE", 10s));
  }
  EXPECT_EQ(world->submit("n1", 1s), 1) << "the numbers of jobs begin again";
}

TEST_P(SlurmRules, AReservationKeepsARecordThoughIdle) {
  world->reserve("hold", "n2");
  ASSERT_TRUE(becomes("n2", "IDLE+RESERVED", 40s));
  EXPECT_EQ(field("n2", "reservation"), "hold");
  const auto busy = remove("n2");
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::kBusy);
  EXPECT_EQ(busy.error().reason, "2016");
  ASSERT_TRUE(run(slurm::drain_nodes(kCluster, slurm::Owner::kOperator, {"n2"}, "scale in")).value);
  EXPECT_EQ(state("n2"), "IDLE+DRAIN+RESERVED");
  const auto act = run(deletion("n2"));
  ASSERT_FALSE(act.value);
  EXPECT_EQ(act.value.error().code, ErrorCode::kBusy);
  const std::int64_t job = world->submit("n2", 300s);
  pass(2s);
  EXPECT_EQ(job_state(job), "PENDING") << "for others it is not there";
  world->cancel(job);
  world->end_reservation("hold");
  ASSERT_TRUE(becomes("n2", "IDLE+DRAIN", 10s));
  EXPECT_TRUE(remove("n2"));
}

/// Returns the reservation's nodes, "n1,n2", or "absent".
std::string nodes_of(const std::optional<slurm::Reservation>& reservation) {
  if (!reservation) return "absent";
  std::string out;
  for (const std::string& node : reservation->nodes) out += (out.empty() ? "" : ",") + node;
  return out;
}

TEST_P(SlurmRules, RestMakesReservationsFrom25_05) {
  slurm::ReservationWish wish{"maint", {"n1", "n2"}, {}, world->loop().clock().wall() + 3600s, 5min, "test"};
  const plan::ActResult made = run(slurm::make_reservation(kCluster, wish));
  if (before_26_05()) {
    ASSERT_FALSE(made.value);
    EXPECT_EQ(made.value.error().code, ErrorCode::kUnsupported);
    return;
  }
  ASSERT_TRUE(made.value) << made.value.error().message;
  const std::optional<slurm::Reservation> found = reservation("maint");
  ASSERT_TRUE(found);
  EXPECT_TRUE(slurm::made_by_operator(*found));
  EXPECT_EQ(nodes_of(found), "n1,n2");
  EXPECT_EQ(*found->end - *found->start, core::Duration{5min});
  EXPECT_EQ(state("n1"), "IDLE") << "before it begins, nodes do not show it";
  const plan::ActResult again = run(slurm::make_reservation(kCluster, wish));
  ASSERT_FALSE(again.value);
  EXPECT_EQ(again.value.error().code, ErrorCode::kConflict);
  // Slurm refuses a start time that is long past.
  wish.name = "late";
  wish.start = world->loop().clock().wall() - 3600s;
  const plan::ActResult late = run(slurm::make_reservation(kCluster, wish));
  ASSERT_FALSE(late.value);
  EXPECT_EQ(late.value.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(late.value.error().reason, "2054");
}

TEST_P(SlurmRules, AMaintenanceIgnoresWhatRunsAndKeepsTheRestAway) {
  if (before_26_05()) GTEST_SKIP() << "REST makes none";
  const std::int64_t job = world->submit("n1", 300s);
  ASSERT_TRUE(job_becomes(job, "RUNNING"));
  const slurm::ReservationWish wish{"maint", {"n1"}, {}, world->loop().clock().wall(), 5min, "test"};
  ASSERT_TRUE(run(slurm::make_reservation(kCluster, wish)).value);
  ASSERT_TRUE(becomes("n1", "MIXED+MAINTENANCE+RESERVED"));
  EXPECT_EQ(node("n1")->reservation, "maint");
  EXPECT_EQ(job_state(job), "RUNNING");
  const auto set = [&](std::vector<std::string> nodes) {
    return ask<void>([&](auto done) { client->set_reservation_nodes("maint", nodes, std::move(done)); });
  };
  // Nodes can be added and removed while the reservation is active. Slurm ignores the name of an unknown node.
  ASSERT_TRUE(set({"n1", "n2", "n77"}));
  EXPECT_EQ(nodes_of(reservation("maint")), "n1,n2");
  ASSERT_TRUE(becomes("n2", "IDLE+MAINTENANCE+RESERVED"));
  const std::int64_t other = world->submit("n2", 300s);
  pass(2s);
  EXPECT_EQ(job_state(other), "PENDING");
  ASSERT_TRUE(update("n2", "DRAIN", "slurm-operator: test"));
  // Until its next cycle, the backfill scheduler may show that it has planned the waiting job there.
  EXPECT_THAT(state("n2"), AnyOf("IDLE+DRAIN+MAINTENANCE+RESERVED", "IDLE+DRAIN+MAINTENANCE+PLANNED+RESERVED"));
  EXPECT_EQ(remove("n2").error().code, ErrorCode::kBusy);
  ASSERT_TRUE(set({"n1"}));
  ASSERT_TRUE(becomes("n2", "IDLE+DRAIN"));
  ASSERT_TRUE(ask<void>([&](auto done) { client->delete_reservation("maint", std::move(done)); }));
  ASSERT_TRUE(becomes("n1", "MIXED"));
  const auto gone = ask<void>([&](auto done) { client->delete_reservation("maint", std::move(done)); });
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().reason, "2053");
  world->cancel(other);
}

TEST_P(SlurmRules, AReservationThatRecursMovesOn) {
  if (before_26_05()) GTEST_SKIP() << "REST makes none";
  const core::WallTime start = world->loop().clock().wall();
  ASSERT_TRUE(run(slurm::make_reservation(kCluster, {"maint", {"n1"}, {"DAILY"}, start, 1min, "test"})).value);
  ASSERT_TRUE(becomes("n1", "IDLE+MAINTENANCE+RESERVED"));
  const std::optional<slurm::Reservation> first = reservation("maint");
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->flags.contains("DAILY"));
  ASSERT_TRUE(becomes("n1", "IDLE", 120s));
  // The nodes are free a moment before the reservation shows its next occurrence.
  std::optional<slurm::Reservation> next = reservation("maint");
  for (int i = 0; i < 60 && next && next->start == first->start; ++i) {
    pass(1s);
    next = reservation("maint");
  }
  ASSERT_TRUE(next);
  EXPECT_EQ(*next->start - *first->start, core::Duration{24h});
  EXPECT_EQ(*next->end - *first->end, core::Duration{24h});
}

TEST_P(SlurmRules, AReservationThatIsOverIsGone) {
  if (before_26_05()) GTEST_SKIP() << "REST makes none";
  const core::WallTime start = world->loop().clock().wall();
  ASSERT_TRUE(run(slurm::make_reservation(kCluster, {"maint", {"n1"}, {}, start, 1min, "test"})).value);
  ASSERT_TRUE(becomes("n1", "IDLE+MAINTENANCE+RESERVED"));
  ASSERT_TRUE(becomes("n1", "IDLE", 120s));
  const auto none = [&] { return !reservation("maint"); };
  for (int i = 0; i < 60 && !none(); ++i) pass(1s);
  EXPECT_TRUE(none());
}

TEST_P(SlurmRules, ANodeIsBusyUntilTheEpilogHasEnded) {
  configure(world->slow_epilog() + "\n");
  const std::int64_t job = world->submit("n1", 300s);
  ASSERT_TRUE(job_becomes(job, "RUNNING"));
  ASSERT_TRUE(update("n1", "DRAIN", "slurm-operator: x"));
  EXPECT_EQ(state("n1"), "MIXED+DRAIN");
  world->cancel(job);
  ASSERT_TRUE(becomes("n1", "IDLE+COMPLETING+DRAIN", 10s));
  const auto busy = remove("n1");
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::kBusy);
  EXPECT_TRUE(becomes("n1", "IDLE+DRAIN", 40s));
}

TEST_P(SlurmRules, ANameThatIsTakenIsNotCreated) {
  ASSERT_TRUE(world->create_node("c1"));
  EXPECT_EQ(state("c1"), "IDLE+CLOUD+POWERED_DOWN");
  EXPECT_TRUE(remove("c1"));
  if (before_26_05()) {
    EXPECT_EQ(post("new/node", {{"node_conf", "NodeName=c1 State=CLOUD"}}).first, 404);
    const std::int64_t job = world->submit("n2", 300s);
    ASSERT_TRUE(job_becomes(job, "RUNNING"));
    EXPECT_FALSE(world->create_node("n2"));
    EXPECT_EQ(state("n2"), "MIXED") << "a busy one stays";
    world->cancel(job);
    ASSERT_TRUE(becomes("n2", "IDLE"));
    EXPECT_FALSE(world->create_node("n2"));
    EXPECT_EQ(state("n2"), "absent") << "the refusal takes the idle one away";
    return;
  }
  EXPECT_EQ(post("new/node", {{"node_conf", "NodeName=c2 State=CLOUD"}}), std::pair(200, std::int64_t{0}));
  EXPECT_EQ(state("c2"), "IDLE+CLOUD+POWERED_DOWN");
  EXPECT_TRUE(remove("c2"));
  EXPECT_EQ(post("new/node", {{"node_conf", "NodeName=c3 State=IDLE"}}), std::pair(422, std::int64_t{2028}));
  EXPECT_EQ(post("new/node", {{"node_conf", "NodeName=n2 State=CLOUD"}}), std::pair(422, std::int64_t{2168}));
  EXPECT_FALSE(world->create_node("n2"));
  EXPECT_EQ(state("n2"), "IDLE");
}

TEST_P(SlurmRules, WhatReturnsToServiceByItself) {
  // ReturnToService. 0: no node returns. 1: nodes that are DOWN because they were silent return. 2: all DOWN nodes return. No
  // value ends a drain.
  for (const char* mode : {"0", "1"}) {
    configure(std::string("ReturnToService=") + mode + "\n");
    ASSERT_TRUE(update("n1", "DOWN", "slurm-operator: x"));
    ASSERT_TRUE(update("n2", "DRAIN", "slurm-operator: y"));
    for (const char* name : {"n1", "n2"}) reload(name);
    pass(3s);
    EXPECT_EQ(state("n1"), "DOWN") << mode;
    EXPECT_EQ(state("n2"), "IDLE+DRAIN") << mode;
    // A new slurmd, as of a replaced worker pod, does not end the DOWN either.
    world->stop_node("n1");
    world->start_node("n1", kNodeConf);
    pass(5s);
    EXPECT_EQ(state("n1"), "DOWN") << mode;
    free("n1");
    free("n2");
  }
}

TEST_P(SlurmRules, ASilentNodeIsDownAndReturnsWithReturnToService1) {
  configure("ReturnToService=1\nSlurmdTimeout=10\n");
  runs_a_job_everywhere();  // Replaces reasons from earlier tests.
  ASSERT_TRUE(update("n1", "DRAIN", "bad disk"));
  ASSERT_TRUE(update("n1", "UNDRAIN"));
  ASSERT_TRUE(becomes("n1", "IDLE", 10s));
  for (const char* name : {"n1", "n2"}) world->stop_node(name);
  for (const char* name : {"n1", "n2"}) ASSERT_TRUE(becomes(name, "DOWN+NOT_RESPONDING", 60s));
  EXPECT_EQ(reason("n2"), "Not responding");
  EXPECT_EQ(reason("n1"), before_26_05() ? "bad disk : Not responding" : "Not responding") << "what is left over is added to";
  for (const char* name : {"n1", "n2"}) world->start_node(name, kNodeConf);
  EXPECT_TRUE(becomes("n2", "IDLE", 20s));
  EXPECT_TRUE(becomes("n1", before_26_05() ? "DOWN" : "IDLE", 20s)) << "only for that very reason";
  if (!before_26_05()) return;
  EXPECT_TRUE(slurm::down_by_slurm(*node("n1")));
  ASSERT_TRUE(run(slurm::resume_node(kCluster, slurm::Owner::kOperator, "n1")).value);
  EXPECT_TRUE(becomes("n1", "IDLE", 10s));
}

TEST_P(SlurmRules, AResumeLeavesAReasonThatSlurmWritesOver) {
  ASSERT_TRUE(run(slurm::drain_nodes(kCluster, slurm::Owner::kOperator, {"n1"}, "x")).value);
  ASSERT_TRUE(run(slurm::resume_node(kCluster, slurm::Owner::kOperator, "n1")).value);
  ASSERT_TRUE(becomes("n1", "IDLE", 10s));
  EXPECT_EQ(reason("n1"), before_26_05() ? "Not responding" : "");
  configure("GresTypes=gpu\n");
  ASSERT_EQ(post("node/n1", {{"gres", "gpu:1"}}).first, 200);
  configure("GresTypes=gpu\nMessageTimeout=11\n");
  ASSERT_TRUE(becomes("n1", "IDLE+DRAIN+INVALID_REG", 10s));
  EXPECT_EQ(reason("n1"), "gres/gpu count reported lower than configured (0 < 1)");
  EXPECT_FALSE(run(slurm::resume_node(kCluster, slurm::Owner::kOperator, "n1")).value) << "that drain is Slurm's";
  ASSERT_EQ(post("node/n1", {{"gres", ""}}).first, 200);
  reload("n1");
  ASSERT_TRUE(becomes("n1", "IDLE+DRAIN", 10s));
  free("n1");
}

TEST_P(SlurmRules, WhatAPreStopDrainedStaysSo) {
  const std::string ours = "slurm-operator: Pod is terminating (uid)";
  ASSERT_TRUE(update("n1", "DRAIN", ours));
  ASSERT_TRUE(update("n1", "DOWN", ours));
  EXPECT_EQ(state("n1"), "DOWN+DRAIN");
  reload("n1");
  EXPECT_TRUE(becomes("n1", "IDLE+DRAIN", 10s)) << "ReturnToService=2 ends the DOWN only";
  const auto shown = node("n1");
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->reason, ours);
  ASSERT_TRUE(shown->reason_time && shown->slurmd_start_time);
  EXPECT_LT(core::WallTime{} - *shown->reason_time, core::Duration{0});
  free("n1");
}

// --- Reconfigure ------------------------------------------------------------------------------------------------------

TEST_P(SlurmRules, AReconfigureEndsADownButNotADrain) {
  ASSERT_TRUE(update("n1", "DOWN", "slurm-operator: x"));
  ASSERT_TRUE(update("n2", "DRAIN", "slurm-operator: y"));
  configure("MessageTimeout=11\n");
  EXPECT_TRUE(becomes("n1", "IDLE", 10s)) << "slurmd registers, and ReturnToService=2";
  EXPECT_EQ(state("n2"), "IDLE+DRAIN");
  EXPECT_EQ(reason("n2"), "slurm-operator: y");
}

TEST_P(SlurmRules, FeaturesMoveANodeWithTheNextReconfigure) {
  configure("NodeSet=moved Feature=zz\nPartitionName=p2 Nodes=moved\n");
  NodeUpdate change;
  change.features = {"cpu", "zz"};
  ASSERT_TRUE(ask<void>([&](auto done) { client->update_node("n1", change, std::move(done)); }));
  pass(1s);
  EXPECT_THAT(node("n1")->partitions, ElementsAre("all"));
  configure("NodeSet=moved Feature=zz\nPartitionName=p2 Nodes=moved\nMessageTimeout=11\n");
  comes_into("n1", {"all", "p2"});
}

TEST_P(SlurmRules, ARemovedPartitionTakesItsJobsAlong) {
  configure("PartitionName=p2 Nodes=ALL\n");
  const std::int64_t running = world->submit("n1", 300s, "p2");
  ASSERT_TRUE(job_becomes(running, "RUNNING"));
  ASSERT_TRUE(update("n2", "DRAIN", "slurm-operator: x"));
  const std::int64_t waiting = world->submit("n2", 300s, "p2");
  ASSERT_TRUE(job_becomes(waiting, "PENDING"));
  configure("");
  // A slurmd that is loading the new configuration may miss slurmctld's request to end the job. slurmctld repeats the request
  // only later, so the limit is long.
  EXPECT_TRUE(becomes("n1", "IDLE", 150s));
  comes_into("n1", {"all"});
  EXPECT_NE(job_state(running), "RUNNING");
  EXPECT_TRUE(job_becomes(waiting, "NODE_FAIL"));
  // Before 26.05 the job is requeued although its partition is gone.
  if (!before_26_05()) {
    EXPECT_TRUE(job_becomes(running, "NODE_FAIL"));
  }
  configure("PartitionName=p2 Nodes=ALL\n");
  // When the configuration has the partition again, slurmctld adds the partition's nodes again.
  comes_into("n1", {"all", "p2"});
}

TEST_P(SlurmRules, ADrainedPartitionStartsWhatItHasAndTakesNoMore) {
  configure("PartitionName=p2 Nodes=ALL\n");
  const std::int64_t running = world->submit("n1", 300s, "p2");
  ASSERT_TRUE(job_becomes(running, "RUNNING"));
  ASSERT_TRUE(update("n2", "DRAIN", "slurm-operator: x"));
  const std::int64_t waiting = world->submit("n2", 300s, "p2");
  ASSERT_TRUE(job_becomes(waiting, "PENDING"));
  configure("PartitionName=p2 Nodes=ALL State=DRAIN\n");
  EXPECT_EQ(world->submit("n1", 300s, "p2"), 0);
  ASSERT_TRUE(update("n2", "UNDRAIN", ""));
  EXPECT_TRUE(job_becomes(waiting, "RUNNING"));
  EXPECT_EQ(job_state(running), "RUNNING");
  world->cancel(running);
  world->cancel(waiting);
}

TEST_P(SlurmRules, AJobStaysOnANodeThatLeavesItsPartition) {
  configure("NodeSet=some Feature=cpu\nPartitionName=p2 Nodes=some\n");
  const std::int64_t job = world->submit("n1", 300s, "p2");
  ASSERT_TRUE(job_becomes(job, "RUNNING"));
  configure("NodeSet=some Feature=nosuch\nPartitionName=p2 Nodes=some\n");
  pass(3s);
  EXPECT_EQ(job_state(job), "RUNNING");
  configure("PartitionName=p2 Nodes=n2\n");
  pass(3s);
  EXPECT_EQ(job_state(job), "RUNNING");
  world->cancel(job);
  EXPECT_TRUE(becomes("n1", "IDLE"));
}

TEST_P(SlurmRules, AJobThatNamesADeletedNodeFailsWithTheNextReconfigure) {
  ASSERT_TRUE(update("n2", "DRAIN", "slurm-operator: x"));
  const std::int64_t job = world->submit("n2", 300s);
  ASSERT_TRUE(job_becomes(job, "PENDING"));
  ASSERT_TRUE(remove("n2"));
  pass(2s);
  EXPECT_EQ(job_state(job), "PENDING");
  configure("MessageTimeout=11\n");
  EXPECT_TRUE(job_becomes(job, "NODE_FAIL"));
}

}  // namespace
}  // namespace conformance
