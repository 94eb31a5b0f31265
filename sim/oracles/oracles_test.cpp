#include "sim/oracles/oracles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "kube/acts.hpp"
#include "operator/common/names.hpp"
#include "sim/histories/world.hpp"

namespace sim {
namespace {

using core::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
namespace kinds = kube::resources;

/// Two idle workers. What must not happen is done here in the operator's name.
class OraclesTest : public testing::Test {
 protected:
  void SetUp() override {
    world.start_operators();
    world.apply(controller_json());
    world.apply(restapi_json());
    world.apply(nodeset_json("cpu", 2));
    ASSERT_THAT(world.settle(core::Duration{180000}), IsEmpty());
    ASSERT_THAT(violations(), IsEmpty());
  }
  [[nodiscard]] const std::vector<std::string>& violations() { return world.oracles().violations(); }
  void delete_worker(const std::string& name) {
    Caller caller;
    caller.user = std::string(kOperatorAgent);
    ASSERT_TRUE(world.api().remove(kinds::kPod, {World::kNamespace, name}, {}, caller));
  }
  void set_state(const std::string& node, const char* state, std::string_view user) {
    SimNodeUpdate change;
    change.state = state;
    ASSERT_EQ(world.slurm()->update_node(node, change, std::string(user)), SlurmErrno::kSuccess);
  }
  /// Both workers go while the operator is away; of their records nothing tells whose they are.
  void leave_unmarked_records() {
    world.crash_operator(0, core::Duration{60000});
    world.loop().run_for(core::Duration{1});
    for (const char* name : {"cpu-0", "cpu-1"}) {
      SimNodeUpdate change;
      change.comment = "";
      ASSERT_EQ(world.slurm()->update_node(name, change, std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
      world.kube().nodes().fail_pod({World::kNamespace, name});  // No preStop gives the node our reason.
      world.remove(kinds::kPod, name);
    }
    const auto gone = [&] {
      return world.find(kinds::kPod, "cpu-0") == nullptr && world.find(kinds::kPod, "cpu-1") == nullptr;
    };
    ASSERT_TRUE(world.loop().run_until(gone, core::Duration{30000}));
  }
  /// As an act of the operator does right before its write.
  void look_at(const std::string& node) {
    world.oracles().request({.method = "GET", .target = "/slurm/v0.0.42/node/" + node}, true, "");
  }
  /// On both workers.
  bool start_job() {
    JobRequest request;
    request.partition = "cpu";
    request.nodes = 2;
    request.duration = core::Duration{3600000};
    world.slurm()->submit(request);
    return world.loop().run_until([&] { return world.slurm()->busy("cpu-0"); }, core::Duration{20000});
  }
  void delete_controller(const char* policy) {
    world.merge(op::resources::kController, World::kCluster, {{"spec", {{"deletionPolicy", policy}}}});
    world.remove(op::resources::kController, World::kCluster);
  }
  static plan::Plan plan_of(const kube::Resource& resource, Json object) {
    plan::Plan plan;
    plan.lane("test").add({{"create it"}, "test", kube::create(resource, std::move(object))});
    return plan;
  }

  World world{WorldOptions{}};
};

TEST_F(OraclesTest, AnIdleWorkerMayNotGoWhileSlurmCouldGiveItJobs) {
  delete_worker("cpu-0");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("worker default/cpu-0 was deleted while Slurm could give it jobs")));
}

TEST_F(OraclesTest, AWorkerThatIsDrainedOrUnknownToSlurmMayGo) {
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  delete_worker("cpu-0");
  ASSERT_EQ(world.slurm()->delete_node("cpu-1", std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
  delete_worker("cpu-1");
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, WhatAnAdminHoldsIsReadyButForAllOfThem) {
  for (const char* node : {"cpu-0", "cpu-1"}) {
    SimNodeUpdate change;
    change.state = "DRAIN";
    change.reason = "disk is failing";
    ASSERT_EQ(world.slurm()->update_node(node, change, std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
    EXPECT_THAT(world.settle(core::Duration{60000}), IsEmpty()) << node;
  }
}

TEST_F(OraclesTest, AWorkerThatHasFailedOnAMachineThatIsCutOffIsWaitedFor) {
  const std::string machine = core::get_string(*world.find(kinds::kPod, "cpu-0"), {"spec", "nodeName"});
  world.kube().nodes().cut_node(machine);
  EXPECT_THAT(world.oracles().unmet(), IsEmpty()) << "its slurmd lives on";
  world.kube().nodes().fail_pod({World::kNamespace, "cpu-0"});
  world.loop().run_for(core::Duration{10000});
  EXPECT_THAT(world.oracles().unmet(), ElementsAre("pod default/cpu-0 has no slurmd"));
  world.kube().nodes().heal_node(machine);
  EXPECT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  EXPECT_EQ(world.oracles().starts()["pod cpu-0"], 2) << "the operator replaced it when it heard of that";
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, WorkersGoWithTheirCluster) {
  delete_controller("Immediate");
  delete_worker("cpu-0");
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, WorkersStayWhenTheirControllerIsTornAway) {
  world.tear_away(op::resources::kController, World::kCluster);
  delete_worker("cpu-0");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("while Slurm could give it jobs")));
  world.loop().run_for(core::Duration{120000});
  EXPECT_THAT(world.workers(), ElementsAre("cpu-1"));
  delete_worker("cpu-1");
  EXPECT_THAT(violations(), ElementsAre(testing::_, HasSubstr("cpu-1 was deleted while there was no Controller")));
}

TEST_F(OraclesTest, WorkersOfAClusterThatDrainsFirstStay) {
  delete_controller("Drain");
  delete_worker("cpu-0");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("while Slurm could give it jobs")));
}

TEST_F(OraclesTest, TheRecordOfAWorkerMayNotGoWhileSlurmCouldGiveItJobs) {
  ASSERT_EQ(world.slurm()->delete_node("cpu-0"), SlurmErrno::kSuccess);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("the record of node cpu-0 was deleted under worker default/cpu-0")));
}

TEST_F(OraclesTest, TheRecordOfADrainedWorkerMayGo) {
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  ASSERT_EQ(world.slurm()->delete_node("cpu-0"), SlurmErrno::kSuccess);
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, TheRecordThatAnAdminHoldsStaysWhileItsWorkerIsWanted) {
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  world.loop().run_for(core::Duration{120000});
  ASSERT_EQ(world.slurm()->delete_node("cpu-0"), SlurmErrno::kSuccess);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("the record of node cpu-0 was deleted, which an admin holds")));
}

TEST_F(OraclesTest, TheRecordThatAnAdminHoldsOutlivesAWorkerThatIsNotWanted) {
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  world.loop().run_for(core::Duration{120000});
  world.merge(op::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 0}}}});
  ASSERT_THAT(world.settle(core::Duration{60000}), IsEmpty());
  EXPECT_NE(world.slurm()->node("cpu-0"), nullptr) << "a next worker of the name is to be drained as well";
  EXPECT_THAT(violations(), IsEmpty());
}

/// Slurm keeps one reason and no owner: nobody can tell that DOWN from one that the admin set.
TEST_F(OraclesTest, TheDownThatAnAdminsUndrainLeavesUnderItsReasonOutlivesTheWorkerToo) {
  world.pause_operator(0, core::Duration{60000});  // It would delete the record at once.
  world.merge(op::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 1}}}});
  world.remove(kinds::kPod, "cpu-1");
  const auto gone = [&] { return world.find(kinds::kPod, "cpu-1") == nullptr; };
  ASSERT_TRUE(world.loop().run_until(gone, core::Duration{30000}));
  set_state("cpu-1", "UNDRAIN", kSlurmAdmin);
  EXPECT_THAT(world.oracles().unmet(), testing::Contains(HasSubstr("node cpu-1 is a record without a pod: DOWN")))
      << "of its preStop";
  SimNodeUpdate change;
  change.state = "DRAIN";
  change.reason = "disk is failing";
  ASSERT_EQ(world.slurm()->update_node("cpu-1", change, std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
  set_state("cpu-1", "UNDRAIN", kSlurmAdmin);
  ASSERT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  ASSERT_NE(world.slurm()->node("cpu-1"), nullptr);
  EXPECT_TRUE(world.slurm()->node("cpu-1")->down);
  set_state("cpu-1", "RESUME", kSlurmAdmin);
  EXPECT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  EXPECT_EQ(world.slurm()->node("cpu-1"), nullptr) << "that word has ended";
  EXPECT_THAT(violations(), IsEmpty());
}

/// Slurm writes its own reason over an admin's with each registration that it refuses, and with no other.
TEST_F(OraclesTest, WhereSlurmRefusesAWorkerTheReasonTellsWhetherItsRecordOutlivesIt) {
  world.pause_operator(0, core::Duration{60000});  // It would delete the record at once.
  world.merge(op::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 1}}}});
  world.slurm()->set_memory(500);
  world.slurm()->reload_slurmd("cpu-1");
  world.slurm()->set_memory(SlurmOptions{}.memory);
  ASSERT_TRUE(world.slurm()->node("cpu-1")->invalid_reg);
  world.kube().nodes().fail_pod({World::kNamespace, "cpu-1"});
  world.remove(kinds::kPod, "cpu-1");
  const auto gone = [&] { return world.find(kinds::kPod, "cpu-1") == nullptr; };
  ASSERT_TRUE(world.loop().run_until(gone, core::Duration{30000}));
  set_state("cpu-1", "DRAIN", kSlurmAdmin);
  EXPECT_THAT(world.oracles().unmet(), testing::Contains(HasSubstr("node cpu-1 is a record without a pod")))
      << "the reason is Slurm's, though an admin drained it too";
  SimNodeUpdate change;
  change.state = "DRAIN";
  change.reason = "disk is failing";
  ASSERT_EQ(world.slurm()->update_node("cpu-1", change, std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
  ASSERT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  world.loop().run_for(core::Duration{400000});  // slurmctld sets it DOWN meanwhile, and adds to the reason.
  EXPECT_THAT(world.oracles().unmet(), IsEmpty());
  EXPECT_NE(world.slurm()->node("cpu-1"), nullptr) << "a next worker of the name is to be drained as well";
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, NoMoreWorkersAreMadeThanWereWishedForLately) {
  const auto one_more = [&](const std::string& name) {
    Json pod = *world.find(kinds::kPod, "cpu-0");
    pod["metadata"]["name"] = name;
    for (const char* drawn : {"uid", "resourceVersion"}) pod["metadata"].erase(drawn);
    ASSERT_TRUE(world.api().create(kinds::kPod, pod));
  };
  world.merge(op::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 3}}}});
  world.merge(op::resources::kNodeSet, "cpu", {{"spec", {{"replicas", 2}}}});
  one_more("cpu-2");
  EXPECT_THAT(violations(), IsEmpty());
  one_more("cpu-3");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("worker default/cpu-3 makes 4 of its NodeSet, of which 3 at most")));
}

TEST_F(OraclesTest, AnotherClustersPodIsNoneForARecord) {
  EXPECT_THAT(world.oracles().unmet(), IsEmpty());
  world.merge(kinds::kPod, "cpu-0", {{"metadata", {{"labels", {{std::string(api::kLabelCluster), "another"}}}}}});
  EXPECT_THAT(world.oracles().unmet(), testing::Contains(HasSubstr("node cpu-0 is a record without a pod")));
}

TEST_F(OraclesTest, AWorkerThatItsNodeSetLeftBehindIsWaitedForOnceItGoes) {
  world.remove(op::resources::kNodeSet, "cpu", "Orphan");
  ASSERT_THAT(world.settle(core::Duration{180000}), IsEmpty()) << "it may stay";
  ASSERT_EQ(world.find(op::resources::kNodeSet, "cpu"), nullptr);
  world.remove(kinds::kPod, "cpu-0");
  EXPECT_THAT(world.oracles().unmet(), testing::Contains("pod default/cpu-0 is on its way out"));
  EXPECT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  EXPECT_EQ(world.find(kinds::kPod, "cpu-0"), nullptr);
}

/// Without a comment nobody can tell whose they are, when their cluster comes back.
TEST_F(OraclesTest, RecordsOfWorkersThatWentWithoutAControllerAreNobodys) {
  world.pause_operator(0, core::Duration{60000});
  for (const char* node : {"cpu-0", "cpu-1"}) {
    SimNodeUpdate change;
    change.comment = "";
    ASSERT_EQ(world.slurm()->update_node(node, change, std::string(kSlurmAdmin)), SlurmErrno::kSuccess);
  }
  world.tear_away(op::resources::kController, World::kCluster);
  world.tear_away(op::resources::kNodeSet, "cpu");
  // preStop finds no slurmctld.
  ASSERT_TRUE(world.loop().run_until([&] { return world.slurm() == nullptr; }, core::Duration{30000}));
  for (const char* pod : {"cpu-0", "cpu-1"}) world.remove(kinds::kPod, pod);
  world.loop().run_for(core::Duration{60000});
  ASSERT_THAT(world.workers(), IsEmpty());
  world.apply(controller_json());
  EXPECT_THAT(world.settle(core::Duration{900000}), IsEmpty());
  EXPECT_NE(world.slurm()->node("cpu-0"), nullptr);
}

TEST_F(OraclesTest, AndOfThoseThatANodeSetLeftWhileSlurmctldWasAway) {
  ASSERT_NO_FATAL_FAILURE(leave_unmarked_records());
  SimSlurm& slurm = *world.slurm();
  slurm.stop();
  world.tear_away(op::resources::kNodeSet, "cpu");
  ASSERT_EQ(world.find(op::resources::kNodeSet, "cpu"), nullptr);
  ASSERT_TRUE(slurm.start());
  EXPECT_THAT(world.settle(core::Duration{900000}), IsEmpty());
  EXPECT_NE(slurm.node("cpu-0"), nullptr);
}

TEST_F(OraclesTest, AndOfThoseThatANodeSetLeftThatWentAlone) {
  ASSERT_NO_FATAL_FAILURE(leave_unmarked_records());
  SimSlurm& slurm = *world.slurm();
  world.remove(op::resources::kNodeSet, "cpu", "Orphan");
  // As the operator does, which then waits for no record.
  world.merge(op::resources::kNodeSet, "cpu", {{"metadata", {{"finalizers", Json::array({"orphan"})}}}});
  const auto alone = [&] { return world.find(op::resources::kNodeSet, "cpu") == nullptr; };
  ASSERT_TRUE(world.loop().run_until(alone, core::Duration{20000}));
  ASSERT_TRUE(slurm.up());
  EXPECT_THAT(world.settle(core::Duration{900000}), IsEmpty());
  EXPECT_NE(slurm.node("cpu-0"), nullptr);
}

TEST_F(OraclesTest, NoSlurmdIsEndedWithItsPodWhereJobsMayStart) {
  world.pause_operator(0, core::Duration{60000});  // It would drain the node as well.
  world.remove(kinds::kPod, "cpu-0");
  ASSERT_TRUE(world.loop().run_until([&] { return world.slurm()->node("cpu-0")->drain; }, core::Duration{30000}));
  set_state("cpu-0", "RESUME", "slurm");
  world.loop().run_for(core::Duration{1000});
  EXPECT_THAT(violations(), testing::Contains(HasSubstr("Slurm may start jobs there")));
}

TEST_F(OraclesTest, WhatAnAdminFreesAfterTheLookIsNotSeen) {
  for (const char* node : {"cpu-0", "cpu-1"}) {
    set_state(node, "DRAIN", kSlurmAdmin);
    look_at(node);
    set_state(node, "RESUME", kSlurmAdmin);
  }
  delete_worker("cpu-0");
  ASSERT_EQ(world.slurm()->delete_node("cpu-1"), SlurmErrno::kSuccess);
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, WhatBeginsThereThenIsTheAdmins) {
  world.pause_operator(0, core::Duration{60000});  // It looks at nodes, too.
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  look_at("cpu-0");
  set_state("cpu-0", "RESUME", kSlurmAdmin);
  ASSERT_TRUE(start_job());
  delete_worker("cpu-0");
  world.loop().run_for(core::Duration{1000});
  EXPECT_THAT(world.oracles().jobs().losses(), ElementsAre(Pair(Blame::kAdmin, 1)));
  EXPECT_THAT(violations(), IsEmpty());
}

TEST_F(OraclesTest, NotWhatBeginsWhereTheLookCameAfterTheAdmin) {
  world.pause_operator(0, core::Duration{60000});
  set_state("cpu-0", "DRAIN", kSlurmAdmin);
  set_state("cpu-0", "RESUME", kSlurmAdmin);
  look_at("cpu-0");
  ASSERT_TRUE(start_job());
  delete_worker("cpu-0");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("worker default/cpu-0 was deleted while job")));
}

TEST_F(OraclesTest, NorWhatBeginsByOurOwnResume) {
  world.pause_operator(0, core::Duration{60000});
  set_state("cpu-0", "DRAIN", "slurm");
  look_at("cpu-0");
  set_state("cpu-0", "RESUME", "slurm");
  ASSERT_TRUE(start_job());
  delete_worker("cpu-0");
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("worker default/cpu-0 was deleted while job")));
}

TEST_F(OraclesTest, ALookBeforeTheDrainOrBeforeOurOwnResumeIsNone) {
  look_at("cpu-0");
  set_state("cpu-0", "DRAIN", "slurm");
  set_state("cpu-0", "RESUME", "slurm");
  delete_worker("cpu-0");
  EXPECT_EQ(violations().size(), 1U);
  set_state("cpu-1", "DRAIN", "slurm");
  look_at("cpu-1");
  set_state("cpu-1", "RESUME", "slurm");
  delete_worker("cpu-1");
  EXPECT_EQ(violations().size(), 2U);
}

/// With one namespace only that is read; of several, caches know all.
TEST(NamespacesTest, OfOthersNothingIsWritten) {
  World world({.namespaces = {World::kNamespace, "a third one"}});
  for (const char* ns : {World::kNamespace, World::kOtherNamespace}) {
    for (const Json& object : {controller_json(), restapi_json(), nodeset_json("cpu", 2)}) world.apply(object, ns);
  }
  world.start_operators();
  EXPECT_THAT(world.settle(core::Duration{180000}), IsEmpty());
  EXPECT_THAT(world.oracles().violations(), IsEmpty());
  EXPECT_EQ(world.workers().size(), 2U);
  const Json* other = world.api().peek(op::resources::kController, {World::kOtherNamespace, World::kCluster});
  EXPECT_FALSE(other->contains("status"));
}

TEST_F(OraclesTest, ASecretInAPlanIsFound) {
  const Json* secret = world.find(kinds::kSecret, op::generated_jwt_key_name(World::kCluster));
  ASSERT_NE(secret, nullptr);
  const std::string key = secret->at("data").begin()->get<std::string>();
  world.oracles().read_plan(plan_of(kinds::kConfigMap, config_map_json("a", {{"b", "nothing"}})));
  EXPECT_THAT(violations(), IsEmpty());
  world.oracles().read_plan(plan_of(kinds::kConfigMap, config_map_json("a", {{"b", "it is " + key}})));
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("a secret shows in a plan")));
}

TEST_F(OraclesTest, SoAreItsBytesAndTheURLsAlphabet) {
  std::string key;
  for (int i = 0; i < 32; ++i) key += static_cast<char>(250 - 7 * i);
  world.apply(secret_json("drawn", {{"key", key}}));
  world.oracles().read_plan(plan_of(kinds::kConfigMap, config_map_json("a", {{"b", "it is " + key}})));
  EXPECT_EQ(violations().size(), 1U);
  world.oracles().log_line("it is " + core::base64url_encode(key));
  EXPECT_EQ(violations().size(), 2U);
}

TEST_F(OraclesTest, SoIsOneThatThePlanItselfMakes) {
  const Json made = secret_json("made", {{"key", "drawn in the middle of a plan"}});
  world.oracles().read_plan(plan_of(kinds::kSecret, made));
  EXPECT_THAT(violations(), IsEmpty());
  world.apply(made);
  EXPECT_THAT(violations(), ElementsAre(HasSubstr("a secret shows in a plan")));
}

}  // namespace
}  // namespace sim
