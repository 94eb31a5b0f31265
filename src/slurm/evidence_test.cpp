#include "slurm/evidence.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "plan/testing/observing.hpp"
#include "slurm/acts.hpp"
#include "slurm/testing/jobs.hpp"

namespace slurm {
namespace {

using testing::job;

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

std::optional<Drained> drained(const Snapshot& snapshot, std::string node = "cpu-0") {
  return Drained::of(plan::testing::Observer::at(kNow), snapshot, {"c", std::move(node)});
}

bool is_drained(const Snapshot& snapshot) {
  return drained(snapshot).has_value();
}

std::optional<NeverRegistered> never_registered(const Snapshot& snapshot, std::string node, bool stamped,
                                                std::optional<core::MonoTime> since) {
  return NeverRegistered::of(plan::testing::Observer::at(kNow), snapshot, {"c", std::move(node)}, stamped, since);
}

std::optional<Silent> silent(const Snapshot& snapshot, std::string node = "cpu-0") {
  return Silent::of(plan::testing::Observer::at(kNow), snapshot, {"c", std::move(node)}, "host");
}

TEST(NodeEvidence, SaysDrainedOfANodeThatRunsAndTakesNothing) {
  const auto evidence = drained(snapshot_with({"IDLE", {"DRAIN", "DYNAMIC_NORM"}}));
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->kind(), "Drained");
  EXPECT_EQ(evidence->node().name, "cpu-0");
  EXPECT_TRUE(is_drained(snapshot_with({"DOWN", {"DRAIN", "NOT_RESPONDING"}})));
}

TEST(NodeEvidence, IsSilentWhenTheStateDisagrees) {
  EXPECT_FALSE(is_drained(snapshot_with({"IDLE", {}})));
  EXPECT_FALSE(is_drained(snapshot_with({"DOWN", {}})));
  EXPECT_FALSE(is_drained(snapshot_with({"IDLE", {"DRAIN", "UNDRAIN"}})));
  EXPECT_FALSE(is_drained(snapshot_with({"IDLE", {"DRAIN", "COMPLETING"}})));
  for (const char* base : {"ALLOCATED", "MIXED", "UNKNOWN", "ERROR", "FUTURE", ""}) {
    EXPECT_FALSE(is_drained(snapshot_with({base, {"DRAIN"}}))) << base;
  }
}

TEST(NodeEvidence, IsSilentWhileAnyJobHoldsTheNode) {
  for (const bool indexed : {false, true}) {
    Snapshot snapshot = snapshot_with({"IDLE", {"DRAIN"}});
    snapshot.jobs[1] = job(1, "SUSPENDED", {}, {"cpu-1", "cpu-0"});
    if (indexed) snapshot.job_index = JobIndex::of(snapshot.jobs);
    EXPECT_FALSE(is_drained(snapshot));
    snapshot.jobs[1] = job(1, "COMPLETED", {"COMPLETING"}, {"cpu-0"});
    if (indexed) snapshot.job_index = JobIndex::of(snapshot.jobs);
    EXPECT_FALSE(is_drained(snapshot));
    snapshot.jobs[1] = job(1, "COMPLETED", {}, {"cpu-0"});
    snapshot.jobs[2] = job(2, "RUNNING", {}, {"cpu-1"});
    if (indexed) snapshot.job_index = JobIndex::of(snapshot.jobs);
    EXPECT_TRUE(is_drained(snapshot));
  }
}

TEST(NodeEvidence, NeedsAFreshCompleteSnapshot) {
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

TEST(NodeEvidence, GoesByWhatAnAnswerCosts) {
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

TEST(NodeEvidence, SaysNothingOfANodeThatIsNotThere) {
  EXPECT_FALSE(drained(snapshot_with({"IDLE", {"DRAIN"}}), "cpu-1"));
}

TEST(NodeEvidence, NeverRegisteredNeedsAbsenceAndNoStamp) {
  const core::MonoTime kLong = kNow - kRegistration;
  Snapshot snapshot = snapshot_with({"IDLE", {}});
  const auto evidence = never_registered(snapshot, "cpu-1", false, kLong);
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->kind(), "NeverRegistered");
  EXPECT_EQ(evidence->node().name, "cpu-1");
  EXPECT_FALSE(never_registered(snapshot, "cpu-1", true, kLong));
  EXPECT_FALSE(never_registered(snapshot, "cpu-0", false, kLong));
  Snapshot with_job = snapshot;
  with_job.jobs[7] = job(7, "SUSPENDED", {}, {"cpu-1"});
  EXPECT_FALSE(never_registered(with_job, "cpu-1", false, kLong)) << "slurmctld lets go of a node whose jobs are suspended";
  snapshot.health = Snapshot::Health::kStale;
  EXPECT_FALSE(never_registered(snapshot, "cpu-1", false, kLong));
}

TEST(NodeEvidence, NeverRegisteredIsNotSaidOfASlurmdThatMayBeAboutTo) {
  const Snapshot snapshot = snapshot_with({"IDLE", {}});
  const auto told = [&](std::optional<core::MonoTime> since) {
    return never_registered(snapshot, "cpu-1", false, since).has_value();
  };
  EXPECT_FALSE(told(kNow));
  EXPECT_FALSE(told(kNow - kRegistration + core::Duration{1}));
  EXPECT_TRUE(told(kNow - kRegistration));
  EXPECT_TRUE(told({})) << "it cannot register";
}

TEST(NodeEvidence, ForgottenNeedsAbsenceAndThatNoJobNamesIt) {
  Snapshot snapshot = snapshot_with({"IDLE", {}});
  const core::WallTime since{core::Duration{1'767'323'045'000}};
  const auto forgotten = [&](std::string_view node) {
    return Forgotten::of(plan::testing::Observer::at(kNow), snapshot, {"c", std::string(node)}, since);
  };
  const auto evidence = forgotten("cpu-1");
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->kind(), "Forgotten");
  EXPECT_EQ(evidence->node().name, "cpu-1");
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

TEST(NodeEvidence, SilentNeedsThatSlurmHasGivenItUpAndThatNoJobNamesIt) {
  for (const bool down : {true, false}) {
    for (const bool responds : {true, false}) {
      NodeState state{down ? "DOWN" : "IDLE", {}};
      if (!responds) state.flags.insert("NOT_RESPONDING");
      const auto evidence = silent(snapshot_with(state));
      ASSERT_EQ(evidence.has_value(), down && !responds);
      if (evidence) {
        EXPECT_EQ(evidence->kind(), "Silent");
      }
    }
  }
  Snapshot snapshot = snapshot_with({"DOWN", {"NOT_RESPONDING"}});
  EXPECT_FALSE(silent(snapshot, "cpu-1")) << "Slurm has no such node";
  for (const char* job_state : {"RUNNING", "SUSPENDED", "PENDING"}) {
    Job named;
    named.state = job_state;
    if (named.state == "PENDING") {
      named.required_nodes = "cpu-0";
    } else {
      named.nodes = {"cpu-0"};
    }
    snapshot.jobs[1] = std::make_shared<Job>(named);
    EXPECT_FALSE(silent(snapshot, "cpu-0")) << job_state;
  }
  snapshot.jobs.erase(1);
  EXPECT_TRUE(silent(snapshot, "cpu-0"));
  snapshot.health = Snapshot::Health::kStale;
  EXPECT_FALSE(silent(snapshot, "cpu-0"));
}

TEST(NodeEvidence, SaysLeftBehindOfARecordThatIsDown) {
  const auto left = [](const Snapshot& snapshot, const char* node = "cpu-0") {
    return LeftBehind::of(plan::testing::Observer::at(kNow), snapshot, {"c", node}, "its worker is gone");
  };
  Snapshot snapshot = snapshot_with({"DOWN", {"NOT_RESPONDING"}});
  ASSERT_TRUE(left(snapshot));
  EXPECT_EQ(left(snapshot)->detail(), "its worker is gone");
  EXPECT_EQ(left(snapshot)->live(), NodeEvidence::Live::kKept);
  EXPECT_EQ(left(snapshot)->good_until(), snapshot.requested_at + snapshot.good_for());
  EXPECT_FALSE(left(snapshot, "cpu-1")) << "Slurm has no such record";
  EXPECT_FALSE(left(snapshot_with({"IDLE", {"DRAIN"}}))) << "its slurmd runs";
  snapshot.health = Snapshot::Health::kStale;
  EXPECT_FALSE(left(snapshot));
}

std::optional<DrainTimedOut> timed_out(const Snapshot& snapshot, EndOfJobs how = EndOfJobs::kCancel) {
  return DrainTimedOut::of(plan::testing::Observer::at(kNow), snapshot, {"c", "cpu-0"}, Owner::kOperator, "scale in", how,
                           "drained for 4h");
}

/// Returns a job on the node, modified by `change`.
std::shared_ptr<const Job> job_there(std::int64_t id, const std::function<void(Job&)>& change = {}) {
  Job out = *job(id, "RUNNING", {}, {"cpu-1", "cpu-0"});
  out.batch = out.requeue = true;
  if (change) change(out);
  return std::make_shared<const Job>(out);
}

TEST(NodeEvidence, ADrainThatTimedOutNamesTheJobsThatMayBeEnded) {
  Snapshot snapshot = snapshot_with({"MIXED", {"DRAIN"}});
  EXPECT_FALSE(timed_out(snapshot)) << "there is none";
  snapshot.jobs[1] = job_there(1);
  snapshot.jobs[2] = job_there(2, [](Job& j) { j.requeue = false; });
  snapshot.jobs[3] = job_there(3, [](Job& j) { j.batch = false; });
  snapshot.jobs[4] = job_there(4, [](Job& j) { j.state = "SUSPENDED"; });
  snapshot.jobs[5] = job_there(5, [](Job& j) { j.flags = {"COMPLETING"}; });
  snapshot.jobs[6] = job_there(6, [](Job& j) { j.only_named = 1; });
  snapshot.jobs[7] = job_there(7, [](Job& j) { j.nodes_unknown = true; });
  snapshot.jobs[8] = job_there(8, [](Job& j) { j.nodes = {"cpu-1"}; });
  snapshot.jobs[-1] = job_there(-1);
  const auto ids = [](const std::optional<DrainTimedOut>& evidence) {
    std::vector<std::int64_t> out;
    for (const auto& one : evidence->jobs()) out.push_back(one.id);
    return out;
  };
  EXPECT_EQ(ids(timed_out(snapshot)), (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(ids(timed_out(snapshot, EndOfJobs::kRequeue)), (std::vector<std::int64_t>{1, 4}));
  snapshot.requested_at = kNow - kFresh - core::Duration{1};
  EXPECT_FALSE(timed_out(snapshot)) << "it is old";
  snapshot.requested_at = kNow;
  snapshot.health = Snapshot::Health::kStale;
  EXPECT_FALSE(timed_out(snapshot));
}

TEST(NodeEvidence, OnlyOurDrainForThatPurposeTimesOut) {
  const auto with = [](NodeState state, const std::string& reason) {
    Snapshot snapshot = snapshot_with(std::move(state));
    Node node = *snapshot.nodes["cpu-0"];
    node.reason = reason;
    snapshot.nodes["cpu-0"] = std::make_shared<const Node>(node);
    snapshot.jobs[1] = job_there(1);
    return snapshot;
  };
  EXPECT_TRUE(timed_out(with({"MIXED", {"DRAIN"}}, "slurm-operator: scale in")));
  EXPECT_TRUE(timed_out(with({"MIXED", {"DRAIN"}}, "slurm-operator: scale in : Not responding")));
  EXPECT_FALSE(timed_out(with({"MIXED", {}}, "slurm-operator: scale in"))) << "left over";
  EXPECT_FALSE(timed_out(with({"MIXED", {"DRAIN", "UNDRAIN"}}, "slurm-operator: scale in")));
  EXPECT_FALSE(timed_out(with({"MIXED", {"DRAIN"}}, "slurm-operator: Node (a) was cordoned")));
  EXPECT_FALSE(timed_out(with({"MIXED", {"DRAIN"}}, "slurm-operator: scale in; slurm-bridge: pods run there")));
  EXPECT_FALSE(timed_out(with({"MIXED", {"DRAIN"}}, "scale in"))) << "a person's";
}

TEST(NodeEvidence, IsGoodForAsLongAsTheSnapshotThatItWasFoundIn) {
  Snapshot snapshot = snapshot_with({"IDLE", {"DRAIN"}});
  snapshot.cost = core::Duration{8000};
  const core::MonoTime until = snapshot.requested_at + core::Duration{17000};
  EXPECT_EQ(drained(snapshot)->good_until(), until);
  EXPECT_EQ(never_registered(snapshot, "cpu-1", false, std::nullopt)->good_until(), until);
  snapshot.nodes["cpu-0"] = std::make_shared<const Node>(*snapshot_with({"DOWN", {"NOT_RESPONDING"}}).node("cpu-0"));
  EXPECT_EQ(silent(snapshot)->good_until(), until);
}

TEST(NodeEvidence, SaysWhatALiveLookHasToFind) {
  EXPECT_EQ(drained(snapshot_with({"IDLE", {"DRAIN"}}))->live(), NodeEvidence::Live::kKept);
  EXPECT_EQ(silent(snapshot_with({"DOWN", {"NOT_RESPONDING"}}))->live(), NodeEvidence::Live::kSilent);
  EXPECT_EQ(
      delete_node(Owner::kOperator, *silent(snapshot_with({"DOWN", {"NOT_RESPONDING"}})), "x")->describe()["expectSilent"],
      true);
  EXPECT_EQ(delete_node(Owner::kOperator, *drained(snapshot_with({"IDLE", {"DRAIN"}})), "x")->describe()["expectDown"], true);
}

template <class Evidence>
concept KeepsTheRecord = requires(Evidence evidence) {
  confirm_idle(evidence);
};
template <class Evidence>
concept EndsANode = requires(Evidence evidence) {
  end_node(Owner::kOperator, evidence);
};

TEST(NodeEvidence, ActsTakeTheKindThatTheyNeed) {
  static_assert(KeepsTheRecord<Drained> && !KeepsTheRecord<Silent> && !KeepsTheRecord<NodeEvidence>);
  static_assert(EndsANode<SlurmdEnded> && !EndsANode<Drained>);
  static_assert(
      !std::is_constructible_v<Drained, const plan::Observing&, NodeId, std::string_view, std::string, std::nullopt_t>,
      "only a snapshot issues it");
}

}  // namespace
}  // namespace slurm
