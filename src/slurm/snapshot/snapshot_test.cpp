#include "slurm/snapshot/snapshot.hpp"

#include <gtest/gtest.h>

namespace slurm {
namespace {

using std::chrono::milliseconds;
constexpr core::MonoTime kNow{core::Duration{10'000}};

Snapshot snapshot_with(NodeState state) {
  Snapshot snapshot;
  snapshot.health = Snapshot::Health::kComplete;
  snapshot.requested_at = kNow - core::Duration{1000};
  Node node;
  node.name = "cpu-0";
  node.reason = "slurm-operator: scale in";
  node.state = std::move(state);
  snapshot.nodes["cpu-0"] = std::make_shared<const Node>(node);
  return snapshot;
}

std::shared_ptr<const Job> job(std::int64_t id, std::string state, std::set<std::string, std::less<>> flags,
                               std::vector<std::string> nodes) {
  auto out = std::make_shared<Job>();
  out->id = id;
  out->state = std::move(state);
  out->flags = std::move(flags);
  out->nodes = std::move(nodes);
  return out;
}

bool is_drained(const Snapshot& snapshot) {
  return SnapshotWitness::drained(snapshot, "cpu-0", "uid-0", kNow).has_value();
}

TEST(Witness, SaysDrainedOfANodeThatRunsAndTakesNothing) {
  const auto evidence = SnapshotWitness::drained(snapshot_with({"IDLE", {"DRAIN", "DYNAMIC_NORM"}}), "cpu-0", "uid-0", kNow);
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->kind(), plan::Evidence::Kind::kDrained);
  EXPECT_EQ(evidence->subject(), "uid-0");
  EXPECT_TRUE(is_drained(snapshot_with({"DOWN", {"DRAIN", "NOT_RESPONDING"}})));
}

TEST(Witness, IsSilentWhenTheStateDisagrees) {
  EXPECT_FALSE(is_drained(snapshot_with({"IDLE", {}})));
  EXPECT_FALSE(is_drained(snapshot_with({"DOWN", {}})));
  EXPECT_FALSE(is_drained(snapshot_with({"IDLE", {"DRAIN", "UNDRAIN"}})));
  EXPECT_FALSE(is_drained(snapshot_with({"IDLE", {"DRAIN", "COMPLETING"}})));
  for (const char* base : {"ALLOCATED", "MIXED", "UNKNOWN", "ERROR", "FUTURE", ""}) {
    EXPECT_FALSE(is_drained(snapshot_with({base, {"DRAIN"}}))) << base;
  }
}

TEST(Witness, IsSilentWhileAnyJobHoldsTheNode) {
  for (const bool indexed : {false, true}) {
    Snapshot snapshot = snapshot_with({"IDLE", {"DRAIN"}});
    snapshot.jobs[1] = job(1, "SUSPENDED", {}, {"cpu-1", "cpu-0"});
    if (indexed) snapshot.index_jobs();
    EXPECT_FALSE(is_drained(snapshot));
    snapshot.jobs[1] = job(1, "COMPLETED", {"COMPLETING"}, {"cpu-0"});
    if (indexed) snapshot.index_jobs();
    EXPECT_FALSE(is_drained(snapshot));
    snapshot.jobs[1] = job(1, "COMPLETED", {}, {"cpu-0"});
    snapshot.jobs[2] = job(2, "RUNNING", {}, {"cpu-1"});
    if (indexed) snapshot.index_jobs();
    EXPECT_TRUE(is_drained(snapshot));
  }
}

TEST(Witness, NeedsAFreshCompleteSnapshot) {
  Snapshot snapshot = snapshot_with({"IDLE", {"DRAIN"}});
  snapshot.requested_at = kNow - kFresh;
  EXPECT_TRUE(is_drained(snapshot));
  snapshot.requested_at = kNow - kFresh - core::Duration{1};
  EXPECT_FALSE(is_drained(snapshot));
  snapshot.requested_at = kNow;
  snapshot.health = Snapshot::Health::kStale;
  EXPECT_FALSE(is_drained(snapshot));
  snapshot.health = Snapshot::Health::kNone;
  EXPECT_FALSE(is_drained(snapshot));
}

TEST(Witness, GoesByWhatAnAnswerCosts) {
  Snapshot snapshot = snapshot_with({"IDLE", {"DRAIN"}});
  const auto counts_for = [&](core::Duration cost, core::Duration most) {
    snapshot.cost = cost;
    snapshot.requested_at = kNow - most;
    EXPECT_TRUE(is_drained(snapshot)) << cost.count();
    snapshot.requested_at = kNow - most - core::Duration{1};
    EXPECT_FALSE(is_drained(snapshot)) << cost.count();
  };
  counts_for(core::Duration{20}, kFresh);
  counts_for(core::Duration{8000}, core::Duration{17000});
  counts_for(core::Duration{36000}, kFreshAtMost);
  counts_for(core::Duration{90000}, core::Duration{90000} + kFresh);
}

TEST(Witness, SaysNothingOfANodeThatIsNotThere) {
  EXPECT_FALSE(SnapshotWitness::drained(snapshot_with({"IDLE", {"DRAIN"}}), "cpu-1", "uid-1", kNow));
}

TEST(Witness, NeverRegisteredNeedsAbsenceAndNoStamp) {
  const core::MonoTime kLong = kNow - kRegistration;
  Snapshot snapshot = snapshot_with({"IDLE", {}});
  const auto evidence = SnapshotWitness::never_registered(snapshot, "cpu-1", "uid-1", false, kLong, kNow);
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->kind(), plan::Evidence::Kind::kNeverRegistered);
  EXPECT_EQ(evidence->subject(), "uid-1");
  EXPECT_FALSE(SnapshotWitness::never_registered(snapshot, "cpu-1", "uid-1", true, kLong, kNow));
  EXPECT_FALSE(SnapshotWitness::never_registered(snapshot, "cpu-0", "uid-0", false, kLong, kNow));
  snapshot.health = Snapshot::Health::kStale;
  EXPECT_FALSE(SnapshotWitness::never_registered(snapshot, "cpu-1", "uid-1", false, kLong, kNow));
}

TEST(Witness, NeverRegisteredIsNotSaidOfASlurmdThatMayBeAboutTo) {
  const Snapshot snapshot = snapshot_with({"IDLE", {}});
  const auto told = [&](std::optional<core::MonoTime> since) {
    return SnapshotWitness::never_registered(snapshot, "cpu-1", "uid-1", false, since, kNow).has_value();
  };
  EXPECT_FALSE(told(kNow));
  EXPECT_FALSE(told(kNow - kRegistration + core::Duration{1}));
  EXPECT_TRUE(told(kNow - kRegistration));
  EXPECT_TRUE(told({})) << "it cannot register";
}

TEST(Witness, ForgottenNeedsAbsenceAndThatNoJobNamesIt) {
  Snapshot snapshot = snapshot_with({"IDLE", {}});
  const core::WallTime since{core::Duration{1'767'323'045'000}};
  const auto forgotten = [&](std::string_view node) {
    return SnapshotWitness::forgotten(snapshot, node, "uid-1", since, kNow);
  };
  const auto evidence = forgotten("cpu-1");
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->kind(), plan::Evidence::Kind::kForgotten);
  EXPECT_EQ(evidence->subject(), "uid-1");
  EXPECT_EQ(evidence->detail(), "Slurm has had no node cpu-1 since 2026-01-02T03:04:05Z, and no job names it");
  EXPECT_FALSE(forgotten("cpu-0"));
  Job waiting;
  waiting.state = "PENDING";
  waiting.required_nodes = "cpu-1";
  snapshot.jobs.emplace(1, std::make_shared<Job>(waiting));
  EXPECT_FALSE(forgotten("cpu-1"));
  snapshot.jobs.erase(1);
  snapshot.health = Snapshot::Health::kStale;
  EXPECT_FALSE(forgotten("cpu-1"));
}

TEST(Witness, SilentNeedsThatSlurmHasGivenItUpAndThatNoJobNamesIt) {
  for (const bool down : {true, false}) {
    for (const bool responds : {true, false}) {
      NodeState state{down ? "DOWN" : "IDLE", {}};
      if (!responds) state.flags.insert("NOT_RESPONDING");
      const auto evidence = SnapshotWitness::silent(snapshot_with(state), "cpu-0", "uid-0", "host", kNow);
      ASSERT_EQ(evidence.has_value(), down && !responds);
      if (evidence) {
        EXPECT_EQ(evidence->kind(), plan::Evidence::Kind::kSilent);
      }
    }
  }
  Snapshot snapshot = snapshot_with({"DOWN", {"NOT_RESPONDING"}});
  EXPECT_FALSE(SnapshotWitness::silent(snapshot, "cpu-1", "uid-1", "host", kNow)) << "Slurm has no such node";
  for (const char* job_state : {"RUNNING", "SUSPENDED", "PENDING"}) {
    Job named;
    named.state = job_state;
    if (named.state == "PENDING") {
      named.required_nodes = "cpu-0";
    } else {
      named.nodes = {"cpu-0"};
    }
    snapshot.jobs[1] = std::make_shared<Job>(named);
    EXPECT_FALSE(SnapshotWitness::silent(snapshot, "cpu-0", "uid-0", "host", kNow)) << job_state;
  }
  snapshot.jobs.erase(1);
  EXPECT_TRUE(SnapshotWitness::silent(snapshot, "cpu-0", "uid-0", "host", kNow));
  snapshot.health = Snapshot::Health::kStale;
  EXPECT_FALSE(SnapshotWitness::silent(snapshot, "cpu-0", "uid-0", "host", kNow));
}

TEST(SharedMap, CopiesShareUntilOneIsWritten) {
  SharedMap<std::string, int> a{{"x", 1}};
  SharedMap<std::string, int> b = a;
  EXPECT_TRUE(a.same(b));
  b["y"] = 2;
  EXPECT_FALSE(a.same(b));
  EXPECT_EQ(a.size(), 1U);
  EXPECT_EQ(b.size(), 2U);
  EXPECT_EQ(b.at("x"), 1);
  b.erase("x");
  EXPECT_TRUE(a.contains("x"));
  EXPECT_TRUE((SharedMap<std::string, int>{}.empty()));
}

TEST(Job, HoldsNodesInEveryStateInWhichSlurmKeepsThem) {
  EXPECT_TRUE(job(1, "RUNNING", {}, {})->holds_nodes());
  EXPECT_TRUE(job(1, "SUSPENDED", {}, {})->holds_nodes());
  EXPECT_TRUE(job(1, "RUNNING", {"CONFIGURING"}, {})->holds_nodes());
  EXPECT_TRUE(job(1, "FAILED", {"COMPLETING"}, {})->holds_nodes());
  EXPECT_TRUE(job(1, "PENDING", {"COMPLETING", "REQUEUED"}, {})->holds_nodes());
  EXPECT_FALSE(job(1, "PENDING", {}, {})->holds_nodes());
  EXPECT_FALSE(job(1, "COMPLETED", {}, {})->holds_nodes());
}

}  // namespace
}  // namespace slurm
