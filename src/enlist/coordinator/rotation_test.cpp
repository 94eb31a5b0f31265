// Tests the coordinator's part of the rotation: requests of administrators, the holders of the key, the key file, and the plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base64.hpp"
#include "core/testing/manual_loop.hpp"
#include "enlist/coordinator/pools_acts.hpp"
#include "enlist/coordinator/pools_plan.hpp"
#include "enlist/coordinator/rotating.hpp"
#include "enlist/coordinator/rotation_controller.hpp"
#include "enlist/coordinator/testing/fakes.hpp"
#include "enlist/rules/pool_file.hpp"
#include "slurm/conf/loaded.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr core::WallTime kNoon{core::Duration{1'800'000'000'000}};
const std::string kOld(32, 'o');

std::string jwks_of(const std::string& key) {
  return core::Json{{"keys", {{{"alg", "HS256"}, {"kty", "oct"}, {"kid", "old"}, {"k", core::base64_encode(key)}}}}}.dump();
}

KeySet old_keys() {
  return {.revision = "1234567890", .keys = {{"old", "p"}}, .signer = "old"};
}
Contents with(const Rotation& rotation) {
  Contents out;
  out.values[kRotationValue] = to_json(rotation);
  return out;
}
Rotation stored(const core::Result<Changes>& changes) {
  return rotation_from(*changes.value().values.at(kRotationValue)).value();
}
Rotation running() {
  return begin_rotation(old_keys(), "new", kNoon).value();
}

TEST(RotatingTest, OneRotationRunsAtATime) {
  const Rotation begun = stored(begin_rotation(Contents{}, old_keys(), "new", {"login1"}, 60s, kNoon));
  EXPECT_EQ(begun.phase, RotationPhase::kSpread);
  EXPECT_EQ(begun.fresh.kid, "new");
  EXPECT_EQ(begun.lifetime, 60s);
  EXPECT_THAT(begun.also, ElementsAre("login1"));
  EXPECT_EQ(begin_rotation(with(begun), old_keys(), "newer", {}, 0s, kNoon).error().code, ErrorCode::kConflict);
  Rotation ended = begun;
  ended.phase = RotationPhase::kEnded;
  ended.mark = "r7";
  EXPECT_EQ(stored(begin_rotation(with(ended), old_keys(), "newer", {}, 0s, kNoon)).former_mark, "r7")
      << "the pool file keeps what slurmctld has loaded";
  EXPECT_EQ(begin_rotation(Contents{}, old_keys(), "new", {"a b"}, 0s, kNoon).error().code, ErrorCode::kInvalid);
  const core::Result<KeySet> unread = core::fail(ErrorCode::kUnavailable, "it cannot be read");
  EXPECT_EQ(begin_rotation(Contents{}, unread, "new", {}, 0s, kNoon).error().message, "it cannot be read");
}

TEST(RotatingTest, OnlyWhatIsWaitedForIsAcknowledged) {
  const core::Json status{{"hosts", {{{"host", "db"}, {"acknowledge", true}}, {{"host", "gpu-1"}, {"acknowledge", false}}}}};
  const Contents now = with(running());
  EXPECT_THAT(stored(acknowledge(now, status, {"db"}, "Spread")).acknowledged, ElementsAre("db"));
  EXPECT_EQ(acknowledge(now, status, {"gpu-1"}, "Spread").error().code, ErrorCode::kNotFound) << "its agent tells";
  EXPECT_EQ(acknowledge(now, {{"phase", "Spread"}}, {"db"}, "Spread").error().code, ErrorCode::kNotFound)
      << "the file is not there yet";
  EXPECT_EQ(acknowledge({}, status, {"db"}, "Spread").error().code, ErrorCode::kConflict);
  EXPECT_EQ(acknowledge(now, status, {"db"}, "Sign").error().message,
            "the rotation is in the phase Spread, not in Sign: see slurm-enlist rotate status");
}

TEST(RotatingTest, ANodeWithJobsIsNotLeftOut) {
  Contents now = with(running());
  now.nodes["gpu-1"] = {.name = "gpu-1", .pool = "gpu", .key = "k"};
  const auto slurm = [](const slurm::NodeState& state) {
    auto out = std::make_shared<slurm::Snapshot>();
    out->health = slurm::Snapshot::Health::kComplete;
    auto node = std::make_shared<slurm::Node>();
    node->name = "gpu-1";
    node->state = state;
    out->nodes = {{"gpu-1", node}};
    return out;
  };
  EXPECT_THAT(stored(go_without(now, slurm({"DOWN", {"NOT_RESPONDING"}}), {"gpu-1"})).without, ElementsAre("gpu-1"));
  EXPECT_EQ(go_without(now, slurm({"IDLE", {}}), {"gpu-1"}).error().code, ErrorCode::kConflict);
  EXPECT_EQ(go_without(now, nullptr, {"gpu-1"}).error().code, ErrorCode::kConflict) << "unknown is not idle";
  EXPECT_EQ(go_without(now, slurm({"DOWN", {}}), {"gpu-9"}).error().code, ErrorCode::kNotFound);
}

TEST(RotatingTest, HoldersAreThoseOfSlurmConf) {
  SlurmFacts facts;
  facts.controller_names = {"ctl"};
  EXPECT_THAT(key_holders(facts, "elsewhere", {}), ElementsAre()) << "the only slurmctld is the one beside the coordinator";
  facts.controller_names = {"ctl", "ctl2"};
  facts.accounting_hosts = {"db", "ctl2"};
  EXPECT_THAT(key_holders(facts, "ctl.lan", {"login1", "db"}),
              ElementsAre(KeyHolder{"ctl2", "restart slurmctld, and restart slurmdbd"}, KeyHolder{"db", "restart slurmdbd"},
                          KeyHolder{"login1", "reload sackd"}));
  facts.accounting_hosts = {"localhost"};
  EXPECT_THAT(key_holders(facts, "ctl2", {}),
              ElementsAre(KeyHolder{"ctl", "restart slurmctld"}, KeyHolder{"localhost", "restart slurmdbd", true}));
}

TEST(RotatingTest, FactsOfTheConfiguration) {
  const SlurmFacts facts = facts_of(
                               "ClusterName=c\nSlurmctldHost=a(10.0.0.1)\nSlurmctldHost=b\nAuthInfo=ttl=300,cred_expire=90\n"
                               "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=db\n")
                               .value();
  EXPECT_THAT(facts.controller_names, ElementsAre("a", "b"));
  EXPECT_THAT(facts.accounting_hosts, ElementsAre("db"));
  EXPECT_EQ(facts.signed_for_s, 300);
  EXPECT_THAT(facts_of("ClusterName=c\nSlurmctldHost=a\nAccountingStorageType=accounting_storage/slurmdbd\n"
                       "AccountingStorageHost=db\nAccountingStorageExternalHost=far:7031,db,farther\n")
                  ->accounting_hosts,
              ElementsAre("db", "far", "farther"));
  const SlurmFacts plain = facts_of("ClusterName=c\nSlurmctldHost=a\n").value();
  EXPECT_EQ(plain.signed_for_s, 120);
  EXPECT_THAT(plain.accounting_hosts, ElementsAre());
}

/// A rotation that has begun, without agents: a store, a key file and the plan.
struct RotationPlanTest : ::testing::Test {
  RotationPlanTest() {
    host.files["/etc/slurm/slurm.conf"] = "ClusterName=c\nSlurmctldHost=a\n";
    host.files["/etc/slurm/slurm.jwks"] = jwks_of(kOld);
    files.start();
    loop.advance(10ms);
    store.set().values[kRotationValue] = to_json(begin_rotation(files.keys().value(), "new", kNoon).value());
  }
  RotationObserved observed() {
    RotationObserved out{.context = {}, .cluster = "slurm"};
    out.state = store.contents().values.at(kRotationValue);
    out.keys = files.keys();
    return out;
  }
  /// Carries out the only step of the plan. Returns its error.
  std::optional<core::Error> act() {
    const plan::Plan plan = plan_rotation(observed());
    const plan::Step& step = plan.lanes().at("auth key").groups().front().front();
    EXPECT_THAT(step.act->describe().dump(), Not(HasSubstr(core::base64_encode(kOld))));
    std::optional<core::Error> error;
    target.execute(step.act, [&](const plan::ActResult& result) {
      if (!result.value) error = result.value.error();
    });
    loop.advance(10ms);
    return error;
  }
  ~RotationPlanTest() override { EXPECT_THAT(log.text, Not(HasSubstr(core::base64_encode(kOld)))); }

  core::ManualLoop loop;
  core::SystemRandom random;
  testing::KeptLog log;
  testing::FakeHost host;
  testing::MemoryStore store{loop};
  SlurmFiles files{loop, log, host, "/etc/slurm/slurm.conf", [] {}};
  RotationTarget target{loop, random, log, store, host, files};
};

TEST_F(RotationPlanTest, TheFileIsWrittenOnceAndWithBothKeys) {
  EXPECT_EQ(act(), std::nullopt);
  EXPECT_EQ(host.modes["/etc/slurm/slurm.jwks"], 0770U) << "at most";
  EXPECT_EQ(files.keys()->keys.size(), 2U);
  const std::string written = host.files["/etc/slurm/slurm.jwks"];
  EXPECT_THAT(written, HasSubstr(core::base64_encode(kOld)));
  EXPECT_EQ(act(), std::nullopt) << "the print of the new key is stored";
  EXPECT_EQ(host.files["/etc/slurm/slurm.jwks"], written);
  EXPECT_FALSE(rotation_from(store.contents().values.at(kRotationValue))->fresh.print.empty());
}

TEST_F(RotationPlanTest, AFileThatHasChangedSinceIsNotReplaced) {
  const std::string other = host.files["/etc/slurm/slurm.jwks"] = jwks_of(std::string(32, 'q'));
  const auto error = act();
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kConflict);
  EXPECT_EQ(host.files["/etc/slurm/slurm.jwks"], other);
  EXPECT_TRUE(plan_rotation(observed()).empty()) << "it is read again, and is not ours";
  EXPECT_THAT(core::get_string(rotation_status(observed()), {"problem"}), HasSubstr("somebody else"));
}

TEST_F(RotationPlanTest, AStateThatHasChangedSinceIsNotReplaced) {
  ASSERT_EQ(act(), std::nullopt);
  const plan::Plan plan = plan_rotation(observed());
  Rotation other = running();
  other.abandoned = true;
  store.set().values[kRotationValue] = to_json(other);
  std::optional<core::Error> error;
  target.execute(plan.lanes().at("auth key").groups().front().front().act, [&](const plan::ActResult& result) {
    if (!result.value) error = result.value.error();
  });
  loop.advance(10ms);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kConflict);
}

TEST_F(RotationPlanTest, TheStatusTellsWithoutKeys) {
  ASSERT_EQ(act(), std::nullopt);
  ASSERT_EQ(act(), std::nullopt);
  const core::Json status = rotation_status(observed());
  EXPECT_EQ(status["phase"], "Spread");
  EXPECT_EQ(status["running"], true);
  EXPECT_EQ(status["waits"], "Slurm does not answer");
  EXPECT_THAT(status.dump(), Not(HasSubstr("print")));
  RotationObserved none;
  EXPECT_EQ(rotation_status(none), (core::Json{{"phase", ""}, {"running", false}}));
}

TEST_F(RotationPlanTest, AnErrorOfTheWriteIsShown) {
  RotationObserved now = observed();
  const plan::Plan plan = plan_rotation(now);
  const plan::StepId id = plan.lanes().at("auth key").groups().front().front().id;
  const core::Error full{ErrorCode::kUnavailable, "/etc/slurm/slurm.jwks: No space left on device", 0, {}, {}};
  now.context.outcomes[id] = {plan::Outcome::State::kFailed, 3, {}, {}, full};
  EXPECT_EQ(core::get_string(rotation_status(now), {"problem"}),
            "the key file cannot be written: /etc/slurm/slurm.jwks: No space left on device");
}

/// A rotation in Spread whose file all daemons but slurmctld have loaded. slurmctld is to load the file, or has loaded it.
struct RotationMarkTest : RotationPlanTest {
  RotationMarkTest() {
    act();
    act();
    Rotation state = rotation_from(store.contents().values.at(kRotationValue)).value();
    state.mark = files.keys()->revision;
    store.set().values[kRotationValue] = to_json(state);
    mark = state.mark;
  }
  [[nodiscard]] static slurm::SnapshotPtr runs_with(const std::string& text) {
    auto out = std::make_shared<slurm::Snapshot>();
    out->health = slurm::Snapshot::Health::kComplete;
    const std::string name = slurm::conf::marker_name(slurm::Owner::kEnlistment, hash_of(text));
    out->partitions[name] = {name, "", "INACTIVE"};
    return out;
  }
  /// Returns what is observed after slurmctld has refused a file, which was offered after `accepted`.
  RotationObserved refused(const std::string& accepted, const std::string& offered) {
    RotationObserved out = observed();
    out.context.now = kNoon;
    out.pools = kBad;
    slurm::rollout::State rollout;
    rollout.offered[std::string(kPoolFile)] = accepted;
    rollout.offered_hash = rollout.accepted_hash = hash_of(accepted);
    rollout.refused_hash = hash_of(offered);
    rollout.refused_reason = "bad words";
    rollout.refused_at = kNoon;
    rollout.refusals = 1;
    out.pool_file = to_json(rollout);
    out.slurm = runs_with(accepted);
    return out;
  }
  const std::map<std::string, Pool> kBad{{"bad", {.name = "bad"}}};
  std::string mark;
};

TEST_F(RotationMarkTest, APoolThatIsRefusedSinceDoesNotConcernTheKey) {
  const RotationObserved now = refused(pool_file({}, mark), pool_file(kBad, mark));
  const plan::Plan plan = plan_rotation(now);
  const auto record = std::dynamic_pointer_cast<const RecordRotation>(plan.lanes().at("auth key").groups().front().front().act);
  ASSERT_TRUE(record);
  const Rotation next = rotation_from(record->next).value();
  EXPECT_EQ(next.phase, RotationPhase::kSpread);
  EXPECT_EQ(next.refusal, "");
  EXPECT_NE(next.settled, core::WallTime{}) << "slurmctld runs with the keys of this phase";
}

TEST_F(RotationMarkTest, ARefusalBeforeItHasLoadedTheKeysStepsBack) {
  for (const auto& group : plan_rotation(refused(pool_file({}), pool_file(kBad))).lanes().at("auth key").groups())
    EXPECT_THAT(group, IsEmpty()) << "a pool that was refused before";
  const plan::Plan plan = plan_rotation(refused(pool_file({}), pool_file({}, mark)));
  const auto record = std::dynamic_pointer_cast<const RecordRotation>(plan.lanes().at("auth key").groups().front().front().act);
  ASSERT_TRUE(record);
  EXPECT_EQ(rotation_from(record->next)->phase, RotationPhase::kReturn);
  EXPECT_EQ(rotation_from(record->next)->refusal, "bad words");
}

TEST(PoolFileTest, TheRevisionOfTheKeyMakesAnotherFile) {
  EXPECT_EQ(key_revision_of(pool_file({}, "r1")), "r1");
  EXPECT_EQ(key_revision_of(pool_file({})), "");
  EXPECT_EQ(key_revision_of(""), "");
  const std::map<std::string, Pool> gpu{{"gpu", {.name = "gpu", .partition_conf = "MaxTime=60"}}};
  EXPECT_TRUE(same_pools(pool_file(gpu, "r1"), pool_file(gpu)));
  EXPECT_FALSE(same_pools(pool_file(gpu, "r1"), pool_file({}, "r1")));
  EXPECT_FALSE(same_pools(pool_file(gpu), "PartitionName=gpu\n"));
  EXPECT_EQ(with_key_revision(pool_file(gpu, "r1"), "r2"), pool_file(gpu, "r2"));
  EXPECT_EQ(with_key_revision(pool_file(gpu, "r1"), ""), pool_file(gpu));
  EXPECT_EQ(with_key_revision(pool_file({}), "r1"), pool_file({}, "r1"));

  EXPECT_EQ(pool_file({}), pool_file({}, ""));
  EXPECT_NE(hash_of(pool_file({}, "r1")), hash_of(pool_file({})));
  EXPECT_NE(hash_of(pool_file({}, "r1")), hash_of(pool_file({}, "r2")));
  EXPECT_EQ(key_mark_of({}), "");
  Rotation rotation = running();
  rotation.mark = "r1";
  EXPECT_EQ(key_mark_of(with(rotation).values), "r1");
}

}  // namespace
}  // namespace enlist
