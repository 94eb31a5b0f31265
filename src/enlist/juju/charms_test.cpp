// Tests both charms with models of Juju and Slurm.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base64.hpp"
#include "core/hash.hpp"
#include "enlist/juju/controller.hpp"
#include "enlist/juju/data.hpp"
#include "enlist/juju/testing/fake_site.hpp"

namespace enlist::juju::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Kind = Status::Kind;

core::Json value(const Databag& databag, const char* key) {
  return databag.contains(key) ? core::Json::parse(databag.at(key)) : core::Json();
}

// --- the application is integrated ---

// Requirement 6
// Requirement 7
// Requirement 42
TEST(JujuCharms, TheLeaderOfSlurmdPublishesPartitionAndNodeSet) {
  FakeSite site;
  site.deploy("slurmctld", "slurmctld");
  site.deploy("gpu", "slurmd", 3);
  site.juju.leaders["gpu"] = "gpu/2";
  const std::string relation = site.integrate("gpu");
  EXPECT_EQ(site.juju.count("gpu/2 publish"), 1);
  EXPECT_EQ(site.juju.count("gpu/0 publish") + site.juju.count("gpu/1 publish"), 0);
  std::vector<std::string> keys;
  for (const auto& [key, text] : site.juju.relations[relation].databags["gpu"]) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("nodeset", "partition"));
}

// Requirement 8
// Requirement 50
TEST(JujuCharms, PartitionNodeSetAndFeatureAreCalledLikeTheApplication) {
  FakeSite site;
  site.deploy("slurmctld", "slurmctld");
  site.deploy("gpu", "slurmd");
  site.juju.configure("gpu", "partition-config", "MaxTime=1-0 Default=YES");
  const Databag databag = site.juju.relations[site.integrate("gpu")].databags["gpu"];
  EXPECT_EQ(value(databag, "partition"),
            (core::Json{{"partitionname", "gpu"}, {"nodes", "gpu"}, {"maxtime", "1-0"}, {"default", "YES"}}));
  EXPECT_EQ(value(databag, "nodeset"), (core::Json{{"nodeset", "gpu"}, {"feature", "gpu"}}));
}

// Requirement 9
TEST(JujuCharms, TheLeaderOfSlurmctldWritesTheLinesOfEachApplication) {
  FakeSite site;
  site.deploy_both();
  site.juju.configure("slurmd", "partition-config", "MaxTime=1-0");
  site.integrate("slurmd");
  site.deploy("gpu", "slurmd");
  site.integrate("gpu");
  EXPECT_THAT(site.pools(), HasSubstr("\nNodeSet=gpu Feature=gpu\n"));
  EXPECT_THAT(site.pools(), HasSubstr("\nNodeSet=slurmd Feature=slurmd\n"));
  EXPECT_THAT(site.pools(), HasSubstr("\nPartitionName=gpu Nodes=gpu\n"));
  EXPECT_THAT(site.pools(), HasSubstr("\nPartitionName=slurmd Nodes=slurmd MaxTime=1-0\n"));
  EXPECT_EQ(site.at("slurmctld/0").machine.files[kPoolPath].second, 0644U);
}

// Requirement 9
TEST(JujuCharms, APartitionThatIsPublishedAnewReplacesItsLine) {
  FakeSite site;
  site.begin();
  site.juju.configure("slurmd", "partition-config", "MaxTime=2-0");
  EXPECT_THAT(site.slurm.loaded, HasSubstr("\nPartitionName=slurmd Nodes=slurmd MaxTime=2-0\n"));
  EXPECT_EQ(site.reconfigures(), 2);
}

// Requirement 6
// Requirement 10
TEST(JujuCharms, EachRelationHasASecretOfItsOwnWhoseIdAloneIsPublished) {
  FakeSite site;
  site.begin();
  const std::string first = "0";
  site.deploy("gpu", "slurmd");
  const std::string second = site.integrate("gpu");
  ASSERT_EQ(site.juju.secrets.size(), 2U);
  std::set<std::string> ids;
  for (const std::string& number : {first, second}) {
    const Databag databag = site.juju.relations[number].databags["slurmctld"];
    const std::string id = value(databag, "auth_key_id").get<std::string>();
    ids.insert(id);
    EXPECT_THAT(site.juju.secrets.at(id).grants, ElementsAre(number));
    EXPECT_EQ(site.juju.secrets.at(id).revisions.front().content, site.key);
    EXPECT_EQ(databag.size(), 2U);
    EXPECT_EQ(value(databag, "controllers"), core::Json::array({"10.0.0.1:6817"}));
  }
  EXPECT_EQ(ids.size(), 2U);
}

// Requirement 11
TEST(JujuCharms, SlurmctldIsReconfiguredOnlyIfItIsActive) {
  FakeSite site;
  site.slurm.up.clear();
  site.begin();
  EXPECT_EQ(site.reconfigures(), 0);
  EXPECT_THAT(site.pools(), Not(HasSubstr("slurmd")));
  EXPECT_EQ(site.message("slurmctld/0"), "no slurmctld of slurm.conf answers");
  site.slurm.up = {"ctl"};
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.reconfigures(), 1);
  EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=slurmd"));
}

// Requirement 12
TEST(JujuCharms, ThePartitionIsWrittenAndLoadedBeforeKeyAndControllersArePublished) {
  FakeSite site;
  site.deploy_both();
  site.after = [&](const std::string&, const std::string&) {
    if (site.juju.count("slurmctld/0 publish") == 0) return;
    EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=slurmd"));
    EXPECT_EQ(site.reconfigures(), 1);
  };
  site.integrate("slurmd");
  EXPECT_EQ(site.juju.count("slurmctld/0 publish"), 1);
}

// Requirement 12
TEST(JujuCharms, NothingIsPublishedToAnApplicationWhosePartitionIsRefused) {
  FakeSite site;
  site.slurm.refuses = "AllowGroups=none";
  site.begin();
  site.deploy("gpu", "slurmd");
  site.juju.configure("gpu", "partition-config", "AllowGroups=none");
  const std::string before = site.pools();
  const std::string relation = site.integrate("gpu");
  EXPECT_THAT(site.juju.relations[relation].databags["slurmctld"], IsEmpty());
  EXPECT_EQ(site.pools(), before);
  EXPECT_EQ(site.slurm.loaded, before);
  EXPECT_EQ(site.juju.statuses["slurmctld/0"].kind, Kind::kBlocked);
  EXPECT_THAT(site.message("slurmctld/0"), HasSubstr("slurmctld refuses the partitions: slurm_reconfigure error"));
  // update-status does not try the refused file again. A corrected setting replaces it.
  const int reconfigures = site.reconfigures();
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.reconfigures(), reconfigures);
  site.juju.configure("gpu", "partition-config", "MaxTime=1-0");
  EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=gpu Nodes=gpu MaxTime=1-0"));
  EXPECT_EQ(site.juju.statuses["slurmctld/0"], active());
  EXPECT_TRUE(site.slurm.nodes.contains("gpu-0"));
}

// Requirement 12
TEST(JujuCharms, AFileThatMayBeLoadedIsNotTakenBack) {
  FakeSite site;
  site.begin();
  site.deploy("gpu", "slurmd");
  site.slurm.loses_answer = true;
  const int reconfigures = site.reconfigures();
  site.integrate("gpu");
  EXPECT_EQ(site.reconfigures(), reconfigures + 1);
  EXPECT_THAT(site.pools(), HasSubstr("PartitionName=gpu"));
  EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=gpu"));
  EXPECT_EQ(site.juju.statuses["slurmctld/0"], active());
  // slurmctld may still be about to load the file of this request.
  site.slurm.loses_request = true;
  site.juju.configure("gpu", "partition-config", "MaxTime=1-0");
  EXPECT_THAT(site.pools(), HasSubstr("PartitionName=gpu Nodes=gpu MaxTime=1-0\n"));
  EXPECT_THAT(site.message("slurmctld/0"), HasSubstr("slurmctld has not answered the reconfigure: "));
  site.slurm.loses_answer = site.slurm.loses_request = false;
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=gpu Nodes=gpu MaxTime=1-0\n"));
  EXPECT_EQ(site.juju.statuses["slurmctld/0"], active());
}

// Requirement 13
TEST(JujuCharms, EachUnitFetchesTheSecretWritesTheKeyAndStartsSlurmd) {
  FakeSite site;
  site.deploy("slurmctld", "slurmctld");
  site.deploy("slurmd", "slurmd", 2);
  site.integrate("slurmd");
  for (const char* unit : {"slurmd/0", "slurmd/1"}) {
    FakeSite::Place& place = site.at(unit);
    EXPECT_EQ(place.machine.files[kKeyPath], std::pair(site.key, 0600U));
    EXPECT_EQ(place.slurmd.starts, 1);
    EXPECT_THAT(place.slurmd.now.arguments.value(), Contains("-Z"));
  }
  EXPECT_TRUE(site.slurm.nodes.contains("slurmd-0"));
  EXPECT_TRUE(site.slurm.nodes.contains("slurmd-1"));
  EXPECT_EQ(site.juju.statuses["slurmd/1"], active("slurmd-1 is IDLE"));
}

// Requirement 14
TEST(JujuCharms, SlurmdStartsOnlyOnceTheIdAndTheControllersAreThere) {
  FakeSite site;
  site.deploy("slurmd", "slurmd");
  site.charms["slurmctld"] = "slurmctld";
  const std::string relation = site.integrate("slurmd");
  const auto publish = [&](Databag databag) {
    site.juju.relations[relation].databags["slurmctld"] = std::move(databag);
    EXPECT_EQ(site.juju.send("slurmd/0", "slurmctld-relation-changed", {{"JUJU_RELATION_ID", "slurmctld:0"}}), 0);
    return site.at("slurmd/0").slurmd.starts;
  };
  site.juju.secrets["secret:s"] = {"", "slurmctld", {{"slurm.key", "k"}}, {relation}, {}};
  EXPECT_EQ(publish({}), 0);
  EXPECT_EQ(site.juju.statuses["slurmd/0"].kind, Kind::kWaiting);
  EXPECT_EQ(publish({{"auth_key_id", "\"secret:s\""}}), 0);
  EXPECT_EQ(publish({{"controllers", "[\"a:6817\"]"}}), 0);
  EXPECT_EQ(publish({{"auth_key_id", "\"\""}, {"controllers", "[\"a:6817\"]"}}), 0);
  EXPECT_EQ(publish({{"auth_key_id", "\"secret:s\""}, {"controllers", "[]"}}), 0);
  EXPECT_EQ(publish({{"auth_key_id", "\"secret:s\""}, {"controllers", "[\"a:6817\"]"}}), 1);
}

// Requirement 15
TEST(JujuCharms, TheControllersAreTheActiveOnesThePrimaryFirst) {
  FakeSite site;
  site.slurm.up = {"spare"};
  site.begin();
  const auto controllers = [&] { return value(site.juju.relations["0"].databags["slurmctld"], "controllers"); };
  EXPECT_EQ(controllers(), core::Json::array({"10.0.0.2:6817"}));
  site.slurm.up = {"spare", "ctl"};
  site.juju.everywhere("update-status");
  EXPECT_EQ(controllers(), (core::Json{"10.0.0.1:6817", "10.0.0.2:6817"}));
  EXPECT_THAT(site.launch("slurmd/0").controllers, ElementsAre("10.0.0.1:6817", "10.0.0.2:6817"));
  // A slurmctld that is down is no reason to restart every slurmd. A slurmctld that slurm.conf no longer names is.
  const int starts = site.at("slurmd/0").slurmd.starts;
  site.slurm.up = {"ctl"};
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.at("slurmd/0").slurmd.starts, starts);
  std::string& conf = site.at("slurmctld/0").machine.files["/etc/slurm/slurm.conf"].first;
  conf.erase(conf.find("SlurmctldHost=spare"), std::string("SlurmctldHost=spare(10.0.0.2)\n").size());
  site.juju.everywhere("update-status");
  EXPECT_EQ(controllers(), core::Json::array({"10.0.0.1:6817"}));
}

// Requirement 16
TEST(JujuCharms, ARotatedKeyIsWrittenAndReadBySlurmd) {
  FakeSite site;
  site.begin();
  site.at("slurmctld/0").machine.files[kKeyPath].first = "another key";
  site.juju.send("slurmctld/0", "update-status");
  site.juju.settle();
  EXPECT_EQ(site.juju.count("slurmctld/0 set-secret"), 1);
  EXPECT_THAT(site.juju.events, Contains("slurmd/0 secret-changed"));
  EXPECT_EQ(site.at("slurmd/0").machine.files[kKeyPath], std::pair(std::string("another key"), 0600U));
  EXPECT_EQ(site.at("slurmd/0").slurmd.reloads, 1);
  EXPECT_EQ(site.at("slurmd/0").slurmd.starts, 1);
}

/// The content of a slurm.jwks that Slurm accepts.
const std::string kKeys = R"({"keys": [{"alg": "HS256", "kty": "oct", "kid": "a", "k": "MDEyMzQ1Njc4OWFiY2RlZg=="}]})";

// Requirement 16
TEST(JujuCharms, AKeyInAnotherFileReplacesTheFormerOne) {
  FakeSite site;
  site.begin();
  auto& files = site.at("slurmctld/0").machine.files;
  files["/etc/slurm/slurm.jwks"] = {kKeys, 0600};
  site.juju.everywhere("update-status");
  auto& there = site.at("slurmd/0").machine.files;
  EXPECT_EQ(there["/etc/slurm/slurm.jwks"], std::pair(kKeys, 0600U));
  EXPECT_FALSE(there.contains(kKeyPath));
  EXPECT_EQ(site.at("slurmd/0").slurmd.starts, 2) << "it would go on with the file from before";
  files.erase("/etc/slurm/slurm.jwks");
  site.juju.everywhere("update-status");
  EXPECT_EQ(there[kKeyPath].first, site.key);
  EXPECT_FALSE(there.contains("/etc/slurm/slurm.jwks"));
  EXPECT_EQ(site.at("slurmd/0").slurmd.starts, 3);
  EXPECT_EQ(site.at("slurmd/0").slurmd.reloads, 0);
}

// Requirement 16
TEST(JujuCharms, AFormerKeyThatCannotBeRemovedIsRemovedByALaterHook) {
  FakeSite site;
  site.begin();
  FakeSite::Place& place = site.at("slurmd/0");
  place.machine.fixed = kKeyPath;
  site.at("slurmctld/0").machine.files["/etc/slurm/slurm.jwks"] = {kKeys, 0600};
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.message("slurmd/0"), HasSubstr("slurm.key: Read-only file system"));
  place.machine.fixed.clear();
  site.juju.everywhere("update-status");
  EXPECT_FALSE(place.machine.files.contains(kKeyPath));
  EXPECT_EQ(place.slurmd.starts, 2);
  EXPECT_EQ(place.slurmd.reloads, 0);
  EXPECT_EQ(site.juju.statuses["slurmd/0"], active("slurmd-0 is IDLE"));
}

// Requirement 16
TEST(JujuCharms, AFormerKeyThatSomebodyHasReplacedStays) {
  FakeSite site;
  site.begin();
  auto& there = site.at("slurmd/0").machine.files;
  there[kKeyPath].first = "of another cluster";
  site.at("slurmctld/0").machine.files["/etc/slurm/slurm.jwks"] = {kKeys, 0600};
  site.juju.everywhere("update-status");
  EXPECT_EQ(there[kKeyPath].first, "of another cluster");
  EXPECT_EQ(there["/etc/slurm/slurm.jwks"].first, kKeys);
  EXPECT_EQ(site.at("slurmd/0").slurmd.starts, 2);
  // Now slurm.jwks is somebody else's. Slurm would prefer it to slurm.key.
  there["/etc/slurm/slurm.jwks"].first = "of another cluster";
  there.erase(kKeyPath);
  site.at("slurmctld/0").machine.files.erase("/etc/slurm/slurm.jwks");
  site.juju.everywhere("update-status");
  EXPECT_EQ(there["/etc/slurm/slurm.jwks"].first, "of another cluster");
  EXPECT_FALSE(there.contains(kKeyPath));
  EXPECT_EQ(site.juju.statuses["slurmd/0"].kind, Kind::kBlocked);
  EXPECT_THAT(site.message("slurmd/0"), HasSubstr("slurm.jwks is there, which this charm has not written"));
  EXPECT_EQ(site.at("slurmd/0").slurmd.starts, 2);
}

// Requirement 17
TEST(JujuCharms, AnotherUnitNeedsNothingOfSlurmctld) {
  FakeSite site;
  site.begin();
  const std::string pools = site.pools();
  const auto writes = site.at("slurmctld/0").machine.writes;
  const int reconfigures = site.reconfigures(), calls = site.juju.count("slurmctld/0 ");
  site.juju.add_unit("slurmd");
  EXPECT_TRUE(site.slurm.nodes.contains("slurmd-1"));
  EXPECT_EQ(site.pools(), pools);
  EXPECT_EQ(site.at("slurmctld/0").machine.writes, writes);
  EXPECT_EQ(site.reconfigures(), reconfigures);
  EXPECT_EQ(site.juju.count("slurmctld/0 "), calls);
}

// --- units that leave ---

/// A site with slurmctld and two units of slurmd. The tests let the first of the two leave.
struct LeavingSite : FakeSite {
  LeavingSite() {
    deploy("slurmctld", "slurmctld");
    deploy("slurmd", "slurmd", 2);
    integrate("slurmd");
  }
  FakeService& slurmd() { return at("slurmd/0").slurmd; }
  [[nodiscard]] bool has_node() const { return slurm.nodes.contains("slurmd-0"); }
  /// Sends stop, and calls `change` when the hook waits for the third time. Returns the exit code of the hook, and the status
  /// that it set meanwhile.
  std::pair<int, std::string> stop_until(const std::function<void()>& change) {
    int waits = 0;
    std::string told;
    on_pause = [&](const std::string& unit) {
      EXPECT_TRUE(has_node());
      EXPECT_EQ(slurmd().stops, 0);
      told = message(unit);
      if (++waits == 3) change();
    };
    const int code = juju.send("slurmd/0", "stop");
    EXPECT_GE(waits, 3);
    return {code, told};
  }
};

// Requirement 18
// Requirement 19
// Requirement 22
TEST(JujuCharms, AUnitThatDepartsIsDrainedAtOnceAndNothingWaits) {
  LeavingSite site;
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  site.on_pause = [](const std::string&) { ADD_FAILURE() << "the hook waits"; };
  EXPECT_EQ(site.juju.send("slurmd/0", "slurmctld-relation-departed",
                           {{"JUJU_RELATION_ID", "slurmctld:0"}, {"JUJU_DEPARTING_UNIT", "slurmd/0"}}),
            0);
  EXPECT_THAT(site.slurm.acts, ElementsAre("drain slurmd-0: slurm-enlist: leaving"));
  EXPECT_EQ(site.juju.send("slurmd/0", "slurmctld-relation-broken", {{"JUJU_RELATION_ID", "slurmctld:0"}}), 0);
  EXPECT_EQ(site.slurm.acts.size(), 1U);
  EXPECT_EQ(site.slurmd().stops, 0);
  EXPECT_TRUE(site.slurm.jobs.contains(7));
}

// Requirement 18
// Requirement 24
TEST(JujuCharms, TheDepartureOfAnotherUnitIsNoConcernOfOurs) {
  LeavingSite site;
  site.slurm.jobs[7] = {.node = "slurmd-1"};
  const std::string pools = site.pools();
  const int reconfigures = site.reconfigures();
  site.juju.remove_unit("slurmd/0");
  EXPECT_THAT(site.slurm.acts, ElementsAre("drain slurmd-0: slurm-enlist: leaving", "delete slurmd-0"));
  EXPECT_EQ(site.slurmd().stops, 1);
  EXPECT_FALSE(site.at("slurmd/0").machine.files.contains(kKeyPath));
  EXPECT_TRUE(site.slurm.jobs.contains(7));
  EXPECT_THAT(site.slurm.ended, IsEmpty());
  EXPECT_EQ(site.at("slurmd/1").slurmd.starts, 1);
  EXPECT_EQ(site.at("slurmd/1").slurmd.stops, 0);
  EXPECT_EQ(site.at("slurmd/1").machine.files[kKeyPath].first, site.key);
  EXPECT_EQ(site.pools(), pools);
  EXPECT_EQ(site.reconfigures(), reconfigures);
}

// Requirement 20
// Requirement 21
TEST(JujuCharms, StopWaitsUntilNothingRunsThereByEverySign) {
  for (const char* state : {"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED", "SOMETHING_NEW"}) {
    LeavingSite site;
    site.slurm.jobs[7] = {.state = state, .node = "slurmd-0"};
    const auto [code, told] = site.stop_until([&] { site.slurm.jobs.clear(); });
    EXPECT_EQ(code, 0) << state;
    EXPECT_THAT(told, HasSubstr("slurmd-0 leaves: jobs ")) << state;
    EXPECT_THAT(told, HasSubstr(": 7")) << state;
    EXPECT_THAT(site.slurm.acts, ElementsAre("drain slurmd-0: slurm-enlist: leaving", "delete slurmd-0")) << state;
    EXPECT_EQ(site.slurmd().stops, 1) << state;
    EXPECT_THAT(site.slurm.ended, IsEmpty()) << state;
  }
}

// Requirement 20
// Requirement 21
TEST(JujuCharms, StopWaitsForStepsOnTheMachineThatSlurmDoesNotShow) {
  LeavingSite site;
  site.slurmd().there = std::vector<std::string>{"7.batch"};
  const auto [code, told] = site.stop_until([&] { site.slurmd().there = std::vector<std::string>(); });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(told, "slurmd-0 leaves: steps still run on the host: 7.batch");
  EXPECT_FALSE(site.has_node());
  LeavingSite unknown;
  unknown.slurmd().there = core::fail(core::ErrorCode::kUnavailable, "scontrol listjobs: exit code 1");
  EXPECT_THAT(unknown.stop_until([&] { unknown.slurmd().there = std::vector<std::string>(); }).second,
              HasSubstr("scontrol listjobs: exit code 1"));
}

TEST(JujuCharms, StopWaitsForJobsThatAskForTheNodeByItsName) {
  LeavingSite site;
  site.slurm.jobs[8] = {.state = "PENDING", .required = "slurmd-[0-3]"};
  site.slurm.jobs[9] = {.state = "PENDING", .required = "slurmd-1"};
  EXPECT_THAT(site.stop_until([&] { site.slurm.jobs.erase(8); }).second, HasSubstr("request this node by name"));
  EXPECT_FALSE(site.has_node());
  EXPECT_THAT(site.slurm.ended, IsEmpty());
}

// Requirement 2
TEST(JujuCharms, ADrainOfAnAdministratorKeepsItsReason) {
  LeavingSite site;
  site.slurm.set_state("slurmd-0", {"IDLE", "DRAIN", "DYNAMIC_NORM"}, "bad disk");
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  site.stop_until([&] {
    EXPECT_EQ(site.slurm.nodes["slurmd-0"]["reason"], "bad disk");
    site.slurm.jobs.clear();
  });
  EXPECT_THAT(site.slurm.acts, ElementsAre("delete slurmd-0"));
}

TEST(JujuCharms, StopWaitsForASlurmctldThatDoesNotAnswerAndDeletesNothing) {
  LeavingSite site;
  site.slurm.up.clear();
  EXPECT_EQ(site.juju.send("slurmd/0", "stop"), 1);
  EXPECT_GE(site.paused, std::chrono::minutes(10));
  EXPECT_THAT(site.message("slurmd/0"), HasSubstr("slurmd-0 leaves: Slurm does not answer: "));
  EXPECT_THAT(site.juju.logs, Contains(HasSubstr("slurmd-0 cannot leave, because Slurm does not answer")));
  EXPECT_TRUE(site.has_node());
  EXPECT_EQ(site.slurmd().stops, 0);
  site.slurm.up = {"ctl"};
  EXPECT_EQ(site.juju.send("slurmd/0", "stop"), 0);
  EXPECT_FALSE(site.has_node());
  EXPECT_EQ(site.slurmd().stops, 1);
}

TEST(JujuCharms, StopThatFailsBehindTheDeletionIsCarriedOutByTheNext) {
  LeavingSite site;
  site.juju.remove_unit("slurmd/0");
  EXPECT_EQ(site.juju.send("slurmd/0", "stop"), 0);
  EXPECT_EQ(site.slurmd().stops, 1);
}

TEST(JujuCharms, AKeyThatCannotBeRemovedIsRemovedByTheNextStop) {
  LeavingSite site;
  site.at("slurmd/0").machine.fixed = kKeyPath;
  EXPECT_EQ(site.juju.send("slurmd/0", "stop"), 1);
  site.at("slurmd/0").machine.fixed.clear();
  EXPECT_EQ(site.juju.send("slurmd/0", "stop"), 0);
  EXPECT_FALSE(site.at("slurmd/0").machine.files.contains(kKeyPath));
  EXPECT_FALSE(site.slurmd().now.arguments);
}

TEST(JujuCharms, ASlurmdThatEndsAgainAndAgainKeepsNoUnitForEver) {
  LeavingSite site;
  site.slurmd().now.running = false;
  site.slurmd().now.changing = true;
  EXPECT_EQ(site.juju.send("slurmd/0", "stop"), 0);
  EXPECT_GE(site.paused, std::chrono::minutes(10));
  EXPECT_EQ(site.slurmd().stops, 1);
  EXPECT_TRUE(site.has_node());
}

TEST(JujuCharms, AUnitWhoseNameWasInUseOnThisMachineBeforeStarts) {
  FakeSite site;
  site.charms["slurmd"] = "slurmd";
  site.at("slurmd/0").machine.files["/var/lib/slurm-enlist/charm-leaves-slurmd-0"] = {"slurmd/0", 0644};
  site.begin();
  EXPECT_EQ(site.juju.statuses["slurmd/0"], active("slurmd-0 is IDLE"));
}

TEST(JujuCharms, ASlurmdThatIsDeadLeavesIfNoStepIsOnTheMachine) {
  LeavingSite site;
  site.slurmd().now.running = false;
  site.slurmd().there = std::vector<std::string>{"7.0"};
  site.stop_until([&] { site.slurmd().there = std::vector<std::string>(); });
  EXPECT_EQ(site.slurmd().stops, 1);
  EXPECT_TRUE(site.has_node());
  EXPECT_THAT(site.juju.logs, Contains(HasSubstr("Slurm may still have a record of slurmd-0")));
}

TEST(JujuCharms, TheRecordOfAnotherSlurmdOfThisNameIsLeftAlone) {
  LeavingSite site;
  site.slurm.nodes["slurmd-0"]["instance_id"] = "another";
  site.juju.remove_unit("slurmd/0");
  EXPECT_THAT(site.slurm.acts, IsEmpty());
  EXPECT_TRUE(site.has_node());
  EXPECT_EQ(site.slurmd().stops, 1);
}

TEST(JujuCharms, AUnitWithoutASlurmdOfItsOwnLeavesAtOnce) {
  FakeSite site;
  site.deploy_both();
  site.at("slurmd/0").slurmd.now.running = true;
  site.juju.remove_unit("slurmd/0");
  EXPECT_EQ(site.at("slurmd/0").slurmd.stops, 0);
  EXPECT_EQ(site.paused, std::chrono::milliseconds(0));
}

// Requirement 40
TEST(JujuCharms, AUnitThatIsRemovedWhileItIsToRegisterAnewLeavesAndSaysSo) {
  LeavingSite site;
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  site.juju.act("slurmd/0", "node-config", {{"parameters", "Weight=5"}});
  EXPECT_EQ(site.slurm.nodes["slurmd-0"]["reason"], "slurm-enlist: configuring");
  site.juju.send("slurmd/0", "slurmctld-relation-departed",
                 {{"JUJU_RELATION_ID", "slurmctld:0"}, {"JUJU_DEPARTING_UNIT", "slurmd/0"}});
  EXPECT_EQ(site.slurm.nodes["slurmd-0"]["reason"], "slurm-enlist: leaving");
  site.stop_until([&] { site.slurm.jobs.clear(); });
  EXPECT_FALSE(site.has_node());
  EXPECT_EQ(site.slurmd().starts, 1);
}

// --- units that are gone ---

/// A site whose first unit of slurmd is removed by force, so that no hook of that unit runs.
struct GoneSite : LeavingSite {
  /// Removes the unit by force, and lets Slurm see its slurmd as silent.
  void lose(const std::string& reason = "Not responding") {
    juju.remove_unit_by_force("slurmd/0");
    slurm.silence("slurmd-0", reason);
  }
  void pass(std::chrono::seconds time) {
    paused += time;
    juju.everywhere("update-status");
  }
};

TEST(JujuCharms, TheRecordOfAUnitThatIsGoneIsDeletedOnceItsSlurmdIsSilentForLong) {
  GoneSite site;
  site.juju.remove_unit_by_force("slurmd/0");
  site.pass(std::chrono::hours(1));
  EXPECT_THAT(site.slurm.acts, IsEmpty()) << "its slurmd answers";
  EXPECT_EQ(site.juju.statuses["slurmctld/0"], active());
  site.slurm.silence("slurmd-0");
  const auto node = site.slurm.nodes["slurmd-0"];
  site.pass(std::chrono::seconds(0));
  site.pass(std::chrono::seconds(119));
  EXPECT_THAT(site.slurm.acts, IsEmpty());
  EXPECT_EQ(
      site.juju.statuses["slurmctld/0"],
      waiting("slurmd/0 is gone, and Slurm has no answer from its slurmd. Its record slurmd-0 is deleted in a later hook"));
  site.pass(std::chrono::seconds(1));
  EXPECT_THAT(site.slurm.acts, ElementsAre("drain slurmd-0: slurm-enlist: leaving", "delete slurmd-0"));
  EXPECT_EQ(site.juju.statuses["slurmctld/0"], active());
  EXPECT_TRUE(site.slurm.nodes.contains("slurmd-1"));
  EXPECT_THAT(site.slurm.ended, IsEmpty());
  // slurmctld is killed before it has saved the deletion.
  site.pass(std::chrono::seconds(20));
  site.slurm.nodes["slurmd-0"] = node;
  site.slurm.acts.clear();
  site.pass(std::chrono::minutes(5));
  site.pass(std::chrono::minutes(5));
  EXPECT_THAT(site.slurm.acts, ElementsAre("drain slurmd-0: slurm-enlist: leaving", "delete slurmd-0"));
  // The unit is forgotten: the leader does not ask for its record any more.
  site.pass(std::chrono::seconds(30));
  const auto count = site.at("slurmctld/0").machine.count("scontrol --json show node slurmd-0");
  site.pass(std::chrono::hours(1));
  EXPECT_EQ(site.at("slurmctld/0").machine.count("scontrol --json show node slurmd-0"), count);
}

TEST(JujuCharms, ASilentSlurmdMustBeSilentAtEachLook) {
  GoneSite site;
  site.lose();
  site.pass(std::chrono::seconds(60));
  site.slurm.set_state("slurmd-0", {"IDLE", "DYNAMIC_NORM"}, "");
  site.pass(std::chrono::seconds(60));
  site.slurm.silence("slurmd-0");
  site.pass(std::chrono::seconds(60));
  // While Slurm does not answer, the silence counts as interrupted as well.
  site.pass(std::chrono::seconds(60));
  site.slurm.up.clear();
  site.pass(std::chrono::seconds(60));
  site.slurm.up = {"ctl"};
  site.pass(std::chrono::seconds(60));
  EXPECT_THAT(site.slurm.acts, IsEmpty());
  // A node that does not respond, but is not down yet (SlurmdTimeout), does not count as silent.
  site.slurm.set_state("slurmd-0", {"IDLE", "NOT_RESPONDING", "DYNAMIC_NORM"}, "");
  site.pass(std::chrono::hours(1));
  site.pass(std::chrono::hours(1));
  EXPECT_THAT(site.slurm.acts, IsEmpty());
  EXPECT_TRUE(site.has_node());
}

TEST(JujuCharms, TheRecordOfAUnitThatIsGoneStaysWhileAJobNeedsIt) {
  for (const auto& [job, words] : std::map<std::string, FakeJob>{
           {"jobs run there: 7; the host is silent", {.node = "slurmd-0"}},
           {"jobs are suspended there: 7", {.state = "SUSPENDED", .node = "slurmd-0"}},
           {"jobs are completing there, such as their epilog: 7", {.state = "COMPLETING", .node = "slurmd-0"}},
           {"pending jobs request this node by name", {.state = "PENDING", .required = "slurmd-[0-3]"}}}) {
    GoneSite site;
    site.slurm.jobs[7] = words;
    site.lose();
    for (int i = 0; i < 3; ++i) site.pass(std::chrono::minutes(5));
    EXPECT_TRUE(site.has_node()) << job;
    EXPECT_EQ(site.juju.statuses["slurmctld/0"].kind, Kind::kWaiting) << job;
    EXPECT_THAT(site.message("slurmctld/0"), HasSubstr("Its record slurmd-0 stays: " + job));
    EXPECT_THAT(site.slurm.acts, ElementsAre("drain slurmd-0: slurm-enlist: leaving")) << job;
    site.slurm.jobs.clear();
    site.pass(std::chrono::minutes(5));
    EXPECT_FALSE(site.has_node()) << job;
    EXPECT_THAT(site.slurm.ended, IsEmpty()) << job;
  }
}

TEST(JujuCharms, NoOtherRecordIsDeleted) {
  GoneSite site;
  // slurmd-1 is of a unit that Juju still has, slurmd-0 was made by another program, and slurmd-7 is of no unit.
  site.slurm.silence("slurmd-1");
  site.lose();
  site.slurm.nodes["slurmd-0"]["instance_id"] = "another";
  site.slurm.nodes["slurmd-7"] = site.slurm.nodes["slurmd-0"];
  site.slurm.nodes["slurmd-7"]["name"] = "slurmd-7";
  for (int i = 0; i < 3; ++i) site.pass(std::chrono::minutes(5));
  EXPECT_THAT(site.slurm.acts, IsEmpty());
  EXPECT_EQ(site.slurm.nodes.size(), 3U);
  EXPECT_EQ(site.juju.statuses["slurmctld/0"], active());
}

TEST(JujuCharms, TheRecordOfAUnitThatIsGoneIsDeletedByALaterLeaderToo) {
  FakeSite site;
  site.deploy("slurmctld", "slurmctld", 2);
  site.deploy("slurmd", "slurmd", 2);
  site.integrate("slurmd");
  site.juju.remove_unit_by_force("slurmd/0");
  site.slurm.silence("slurmd-0");
  site.at("slurmctld/1").machine.files[kPoolPath] = site.at("slurmctld/0").machine.files[kPoolPath];
  site.juju.remove_unit_by_force("slurmctld/0");
  for (int i = 0; i < 2; ++i) {
    site.paused += std::chrono::minutes(5);
    site.juju.everywhere("update-status");
  }
  EXPECT_FALSE(site.slurm.nodes.contains("slurmd-0"));
  EXPECT_TRUE(site.slurm.nodes.contains("slurmd-1"));
}

TEST(JujuCharms, UnitsOfAnApplicationThatIsRemovedByForceLeaveNoRecords) {
  GoneSite site;
  for (const char* unit : {"slurmd/0", "slurmd/1"}) site.juju.remove_unit_by_force(unit);
  for (const char* node : {"slurmd-0", "slurmd-1"}) site.slurm.silence(node);
  site.juju.remove_relation("0");
  for (int i = 0; i < 3; ++i) site.pass(std::chrono::minutes(5));
  EXPECT_THAT(site.slurm.nodes, IsEmpty());
  EXPECT_THAT(site.pools(), Not(HasSubstr("PartitionName=slurmd ")));
}

TEST(JujuCharms, TheDrainOfAUnitWhoseApplicationComesBackIsNotLost) {
  // The machine of slurmd/0 is off for repair. Its unit joins the new relation only when the machine is back.
  GoneSite site;
  site.slurm.set_state("slurmd-0", {"IDLE", "DRAIN", "DYNAMIC_NORM"}, "bad disk");
  site.slurm.silence("slurmd-0", "bad disk");
  auto dispatch = site.juju.dispatch;
  site.juju.dispatch = [&](const std::string& unit, const auto& environment, HookTools& tools) {
    return unit == "slurmd/0" ? 1 : dispatch(unit, environment, tools);
  };
  site.juju.remove_relation("0");
  const std::string relation = site.integrate("slurmd");
  site.juju.relations[relation].members.erase("slurmd/0");
  for (int i = 0; i < 3; ++i) site.pass(std::chrono::minutes(5));
  EXPECT_TRUE(site.has_node());
  EXPECT_EQ(site.slurm.nodes["slurmd-0"]["reason"], "bad disk");
}

// --- applications that leave ---

// Requirement 25
// Requirement 26
// Requirement 28
// Requirement 30
TEST(JujuCharms, APartitionIsRemovedWhenItsRelationHasBrokenAndItHasNoJobs) {
  for (const bool broken_first : {false, true}) {
    FakeSite site;
    site.begin();
    site.deploy("gpu", "slurmd");
    site.juju.configure("gpu", "partition-config", "MaxTime=1-0 AllowGroups=a,b");
    const std::string relation = site.integrate("gpu");
    site.slurm.jobs[7] = {.partition = "gpu", .node = "gpu-0"};
    site.slurm.jobs[8] = {.state = "PENDING", .partition = "slurmd,gpu"};
    int reconfigures = site.reconfigures();
    site.juju.remove_relation(relation, broken_first);
    // The partition is drained first.
    EXPECT_EQ(site.reconfigures(), reconfigures + 1);
    EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=gpu Nodes=gpu AllowGroups=a,b MaxTime=1-0 State=DRAIN\n"));
    EXPECT_EQ(site.juju.secrets.size(), 2U);
    for (const int job : {7, 8}) {
      site.juju.everywhere("update-status");
      EXPECT_EQ(site.reconfigures(), reconfigures + 1);
      EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=gpu"));
      EXPECT_EQ(site.juju.statuses["slurmctld/0"].kind, Kind::kWaiting);
      EXPECT_THAT(site.message("slurmctld/0"),
                  HasSubstr("gpu is being removed: jobs use its partition: " + std::to_string(job)));
      site.slurm.jobs.erase(job);
    }
    reconfigures = site.reconfigures();
    site.juju.everywhere("update-status");
    EXPECT_EQ(site.reconfigures(), reconfigures + 1);
    EXPECT_THAT(site.pools(), Not(HasSubstr("gpu")));
    EXPECT_THAT(site.pools(), HasSubstr("PartitionName=slurmd"));
    EXPECT_THAT(site.slurm.ended, IsEmpty());
    ASSERT_EQ(site.juju.secrets.size(), 1U);
    EXPECT_THAT(site.juju.secrets.begin()->second.grants, ElementsAre("0"));
    EXPECT_EQ(site.juju.statuses["slurmctld/0"], active());
    EXPECT_EQ(site.at("slurmd/0").slurmd.stops, 0);
    EXPECT_EQ(site.paused, std::chrono::milliseconds(0));
  }
}

// Requirement 26
TEST(JujuCharms, APartitionStaysWhileNobodyKnowsWhetherItHasJobs) {
  FakeSite site;
  site.begin();
  site.juju.remove_relation("0");
  site.slurm.up.clear();
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.pools(), HasSubstr("PartitionName=slurmd"));
  EXPECT_THAT(site.message("slurmctld/0"), HasSubstr("slurmd is being removed"));
  EXPECT_EQ(site.juju.secrets.size(), 1U);
  site.slurm.up = {"ctl"};
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.pools(), Not(HasSubstr("PartitionName=slurmd ")));
  EXPECT_EQ(site.juju.secrets.size(), 0U);
}

// Requirement 27
TEST(JujuCharms, UnitsWhoseRelationEndsLeaveByThemselvesWithoutBlocking) {
  LeavingSite site;
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  site.juju.remove_relation("0");
  EXPECT_EQ(site.paused, std::chrono::milliseconds(0));
  EXPECT_THAT(site.slurm.acts, Contains("drain slurmd-0: slurm-enlist: leaving"));
  EXPECT_EQ(site.juju.statuses["slurmd/0"], waiting("slurmd-0 leaves: jobs run there: 7"));
  EXPECT_EQ(site.slurmd().stops, 0);
  // slurmd/1 has no jobs, so it has left.
  EXPECT_FALSE(site.slurm.nodes.contains("slurmd-1"));
  EXPECT_EQ(site.at("slurmd/1").slurmd.stops, 1);
  EXPECT_EQ(site.juju.statuses["slurmd/1"], blocked("integrate the application with slurmctld"));
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.slurmd().stops, 0);
  site.slurm.jobs.clear();
  site.juju.everywhere("update-status");
  EXPECT_FALSE(site.has_node());
  EXPECT_EQ(site.slurmd().stops, 1);
  // The application is integrated again.
  site.integrate("slurmd");
  EXPECT_TRUE(site.has_node());
  EXPECT_EQ(site.juju.statuses["slurmd/0"], active("slurmd-0 is IDLE"));
  EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=slurmd Nodes=slurmd\n"));
}

TEST(JujuCharms, ARelationThatEndsUnderADeadSlurmdLeavesNothingOnTheMachine) {
  LeavingSite site;
  site.slurmd().now.running = false;
  site.slurmd().fails = "systemctl: exit code 1";
  site.slurmd().there = std::vector<std::string>{"7.0"};
  site.juju.remove_relation("0");
  EXPECT_THAT(site.message("slurmd/0"), HasSubstr("slurmd-0 leaves: Slurm does not answer"));
  EXPECT_TRUE(site.at("slurmd/0").machine.files.contains(kKeyPath));
  site.slurmd().there = std::vector<std::string>();
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.juju.statuses["slurmd/0"], blocked("integrate the application with slurmctld"));
  EXPECT_FALSE(site.at("slurmd/0").machine.files.contains(kKeyPath));
  EXPECT_THAT(site.juju.logs, Contains(HasSubstr("Slurm may still have a record of slurmd-0")));
  // The leader of slurmctld deletes the record.
  site.slurm.silence("slurmd-0");
  for (int i = 0; i < 2; ++i) {
    site.paused += std::chrono::minutes(5);
    site.juju.everywhere("update-status");
  }
  EXPECT_FALSE(site.has_node());
}

TEST(JujuCharms, ASlurmdThatRunsOnWithoutARelationIsNotHidden) {
  FakeSite site;
  site.begin();
  // An administrator has resolved a failed relation-broken without running the hook again.
  site.juju.relations.clear();
  site.juju.send("slurmd/0", "update-status");
  EXPECT_EQ(site.juju.statuses["slurmd/0"].kind, Kind::kBlocked);
  EXPECT_THAT(site.message("slurmd/0"), HasSubstr("slurmd still runs"));
  EXPECT_EQ(site.at("slurmd/0").slurmd.stops, 0);
}

TEST(JujuCharms, AnApplicationThatComesBackWhileItLeavesStays) {
  LeavingSite site;
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  site.juju.remove_relation("0");
  EXPECT_TRUE(site.slurm.drains("slurmd-0"));
  site.integrate("slurmd");
  EXPECT_FALSE(site.slurm.drains("slurmd-0"));
  EXPECT_EQ(site.slurmd().stops, 0);
  EXPECT_TRUE(site.slurm.jobs.contains(7));
  EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=slurmd Nodes=slurmd\n"));
  EXPECT_EQ(site.juju.statuses["slurmctld/0"], active());
  EXPECT_EQ(site.juju.secrets.size(), 1U);
}

// Requirement 25
// Requirement 27
// Requirement 28
// Requirement 49
TEST(JujuCharms, AnApplicationThatIsRemovedUnderAJobLeavesWhenTheJobHasEnded) {
  LeavingSite site;
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  int waits = 0;
  site.on_pause = [&](const std::string&) {
    // Hooks of slurmctld run while the hook of slurmd waits.
    site.juju.send("slurmctld/0", "update-status");
    EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=slurmd "));
    if (++waits == 3) site.slurm.jobs.clear();
  };
  site.juju.remove_application("slurmd");
  EXPECT_EQ(waits, 3);
  EXPECT_THAT(site.slurm.ended, IsEmpty());
  EXPECT_THAT(site.slurm.nodes, IsEmpty());
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.slurm.loaded, Not(HasSubstr("PartitionName=slurmd ")));
  EXPECT_EQ(site.juju.secrets.size(), 0U);
  EXPECT_EQ(site.juju.statuses["slurmctld/0"], active());
}

// Requirement 25
TEST(JujuCharms, AControllerThatLeavesTakesNoPartitionWithIt) {
  for (const bool broken_first : {false, true}) {
    FakeSite site;
    site.deploy("slurmctld", "slurmctld", 2);
    site.deploy("slurmd", "slurmd");
    site.integrate("slurmd");
    site.slurm.jobs[7] = {.node = "slurmd-0"};
    site.juju.remove_unit("slurmctld/0", broken_first);
    site.at("slurmctld/1").machine.files[kPoolPath] = site.at("slurmctld/0").machine.files[kPoolPath];
    site.juju.everywhere("update-status");
    EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=slurmd Nodes=slurmd\n"));
    EXPECT_THAT(site.slurm.ended, IsEmpty());
    EXPECT_EQ(site.juju.secrets.size(), 1U);
    EXPECT_THAT(site.slurm.acts, IsEmpty());
  }
}

TEST(JujuCharms, ANewLeaderGoesOnWithTheRemovalOfAPartition) {
  FakeSite site;
  site.deploy("slurmctld", "slurmctld", 2);
  site.deploy("slurmd", "slurmd");
  site.integrate("slurmd");
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  site.juju.remove_relation("0");
  site.at("slurmctld/1").machine.files[kPoolPath] = site.at("slurmctld/0").machine.files[kPoolPath];
  site.juju.lead("slurmctld/1");
  EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=slurmd "));
  site.slurm.jobs.clear();
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.pools("slurmctld/1"), Not(HasSubstr("PartitionName=slurmd ")));
}

TEST(JujuCharms, ASecretThatALeaderLeftBehindIsRemovedByTheNext) {
  FakeSite site;
  site.begin();
  site.juju.secrets["secret:old"] = {label_of("slurmd:77"), "slurmctld", {{"slurm.key", "k"}}, {}, {}};
  site.juju.secrets["secret:other"] = {"somebody-else", "slurmctld", {{"x", "k"}}, {}, {}};
  site.juju.everywhere("update-status");
  EXPECT_FALSE(site.juju.secrets.contains("secret:old"));
  EXPECT_TRUE(site.juju.secrets.contains("secret:other"));
}

// --- leadership ---

// Requirement 41
TEST(JujuCharms, ANewLeaderTakesOverFromTheData) {
  FakeSite site;
  site.deploy("slurmctld", "slurmctld", 2);
  site.deploy("slurmd", "slurmd", 2);
  site.integrate("slurmd");
  // Copies the pool file, because the slurmctlds of one cluster share /etc/slurm.
  site.at("slurmctld/1").machine.files[kPoolPath] = site.at("slurmctld/0").machine.files[kPoolPath];
  const auto databags = site.juju.relations["0"].databags;
  site.juju.remove_unit("slurmctld/0");
  site.juju.remove_unit("slurmd/0");
  EXPECT_EQ(site.juju.leaders["slurmctld"], "slurmctld/1");
  EXPECT_EQ(site.juju.relations["0"].databags, databags);
  EXPECT_EQ(site.juju.secrets.size(), 1U);
  EXPECT_EQ(site.juju.count("slurmctld/1 "), 0);
  EXPECT_EQ(site.juju.count("slurmd/1 "), 0);
  site.juju.configure("slurmd", "partition-config", "MaxTime=1-0");
  EXPECT_EQ(site.juju.count("slurmd/1 publish"), 1);
  EXPECT_THAT(site.pools("slurmctld/1"), HasSubstr("PartitionName=slurmd Nodes=slurmd MaxTime=1-0\n"));
}

// Requirement 41
TEST(JujuCharms, ALeaderThatComesBackTakesNoPartitionAwayThatAnotherHasAdded) {
  FakeSite site;
  site.deploy("slurmctld", "slurmctld", 2);
  site.deploy("slurmd", "slurmd");
  site.integrate("slurmd");
  site.slurm.refuses = "AllowGroups=none";
  site.deploy("gpu", "slurmd");
  site.juju.configure("gpu", "partition-config", "AllowGroups=none");
  site.integrate("gpu");
  ASSERT_THAT(site.message("slurmctld/0"), HasSubstr("slurmctld refuses the partitions"));
  const auto lead = [&](const std::string& from, const std::string& to) {
    site.at(to).machine.files[kPoolPath] = site.at(from).machine.files[kPoolPath];
    site.juju.lead(to);
  };
  site.slurm.refuses.clear();
  lead("slurmctld/0", "slurmctld/1");
  ASSERT_THAT(site.slurm.loaded, HasSubstr("PartitionName=gpu "));
  site.slurm.jobs[7] = {.partition = "gpu", .node = "gpu-0"};
  lead("slurmctld/1", "slurmctld/0");
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=gpu "));
  EXPECT_THAT(site.slurm.ended, IsEmpty());
  EXPECT_EQ(site.juju.statuses["slurmctld/0"], active());
}

// Requirement 41
TEST(JujuCharms, ALeaderThatDoesNotKnowTheFormerFileTakesNoPartitionAway) {
  FakeSite site;
  site.deploy("slurmctld", "slurmctld", 2);
  site.deploy("slurmd", "slurmd");
  site.integrate("slurmd");
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  // The first leader has written this file, and was gone before slurmctld loaded the file.
  site.slurm.refuses = "AllowGroups=none";
  const std::string file =
      pool_file({{"gpu", {.name = "gpu", .partition_conf = "AllowGroups=none"}}, {"slurmd", {.name = "slurmd"}}});
  site.at("slurmctld/1").machine.files[kPoolPath] = {file, 0644};
  site.juju.lead("slurmctld/1");
  EXPECT_THAT(site.message("slurmctld/1"), HasSubstr("it is not known with which file it runs"));
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.juju.statuses["slurmctld/1"].kind, Kind::kBlocked);
  EXPECT_THAT(site.slurm.loaded, HasSubstr("PartitionName=slurmd "));
  EXPECT_THAT(site.slurm.ended, IsEmpty());
}

// Requirement 32
// Requirement 41
TEST(JujuCharms, OnlyLeadersWrite) {
  FakeSite site;
  site.deploy("slurmctld", "slurmctld", 2);
  site.deploy("slurmd", "slurmd");
  site.integrate("slurmd");
  EXPECT_EQ(site.juju.count("slurmctld/1 "), 0);
  EXPECT_THAT(site.at("slurmctld/1").machine.writes, IsEmpty());
  EXPECT_EQ(site.at("slurmctld/1").machine.count("scontrol reconfigure"), 0);
  EXPECT_EQ(site.juju.statuses["slurmctld/1"], active());
}

// --- the interface ---

// Requirement 31
TEST(JujuCharms, TheKeyIsNeverInTheExchangedDataNorInALog) {
  FakeSite site;
  site.key = "not-to-be-seen-anywhere";
  site.begin();
  std::string seen;
  for (const auto& [number, relation] : site.juju.relations) {
    for (const auto& [app, databag] : relation.databags) {
      for (const auto& [key, text] : databag) seen += text;
    }
  }
  for (const std::string& line : site.juju.logs) seen += line;
  for (const auto& [unit, place] : site.places) {
    for (const std::string& line : place->machine.ran) seen += line;
    for (const auto& [file, content] : place->machine.files) seen += file == kKeyPath ? "" : content.first;
    seen += core::Json(place->slurmd.now.arguments.value_or(std::vector<std::string>())).dump();
  }
  for (const std::string& secret : {site.key, core::base64_encode(site.key)}) EXPECT_THAT(seen, Not(HasSubstr(secret)));
  const auto data = controller_data_from(site.juju.relations["0"].databags["slurmctld"]);
  ASSERT_TRUE(data && *data);
  EXPECT_TRUE(site.juju.secrets.contains((*data)->auth_key_id));
}

// Requirement 32
// Requirement 45
// Requirement 50
TEST(JujuCharms, DataOfAnotherApplicationAreNotBelieved) {
  FakeSite site;
  site.begin();
  site.deploy("gpu", "slurmd");
  const std::string relation = site.integrate("gpu");
  site.juju.relations[relation].databags["gpu"] = compute_data("slurmd", "MaxTime=1").value();
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.pools(), Not(HasSubstr("MaxTime")));
}

// Requirement 33
TEST(JujuCharms, AChangedOptionIsPublishedByTheSameCode) {
  FakeSite site;
  site.begin();
  site.juju.configure("slurmd", "partition-config", "MaxTime=1-0");
  const Databag after = site.juju.relations["0"].databags["slurmd"];
  FakeSite other;
  other.deploy_both();
  other.juju.configure("slurmd", "partition-config", "MaxTime=1-0");
  other.integrate("slurmd");
  EXPECT_EQ(after, other.juju.relations["0"].databags["slurmd"]);
}

// Requirement 33
TEST(JujuCharms, AWrongOptionIsReportedAndPublishesNothing) {
  for (const std::string& wrong : {"PartitionName=x", "Nodes=ALL", "MaxTiem=1-0", "MaxTime=1\nNodeName=x"}) {
    FakeSite site;
    site.begin();
    const auto before = site.juju.relations["0"].databags;
    site.juju.configure("slurmd", "partition-config", wrong);
    EXPECT_EQ(site.juju.relations["0"].databags, before) << wrong;
    EXPECT_EQ(site.juju.statuses["slurmd/0"].kind, Kind::kBlocked) << wrong;
    EXPECT_THAT(site.message("slurmd/0"), HasSubstr("partition-config: ")) << wrong;
    FakeSite fresh;
    fresh.deploy_both();
    fresh.juju.configure("slurmd", "partition-config", wrong);
    fresh.integrate("slurmd");
    EXPECT_THAT(fresh.juju.relations["0"].databags["slurmd"], IsEmpty()) << wrong;
    EXPECT_THAT(fresh.message("slurmd/0"), HasSubstr("partition-config: ")) << wrong;
    EXPECT_EQ(site.at("slurmd/0").slurmd.starts, 1);
    site.juju.configure("slurmd", "partition-config", "");
    EXPECT_EQ(site.juju.statuses["slurmd/0"].kind, Kind::kActive) << wrong;
  }
}

// --- slurmd ---

// Requirement 5
// Requirement 34
// Requirement 36
// Requirement 44
TEST(JujuCharms, SlurmdRunsWithTheArgumentsOfADynamicNode) {
  FakeSite site;
  site.slurm.up = {"ctl", "spare"};
  site.begin();
  EXPECT_THAT(site.at("slurmd/0").slurmd.now.arguments.value(),
              ElementsAre("-Z", "-N", "slurmd-0", "--conf", "CPUs=8 Boards=1 RealMemory=64000 Features=slurmd", "--conf-server",
                          "10.0.0.1:6817,10.0.0.2:6817", "--instance-id", ::testing::SizeIs(16)));
}

// Requirement 35
// Requirement 42
TEST(JujuCharms, TheAdministratorsWordsWinOverWhatIsDetected) {
  FakeSite site;
  site.deploy_both();
  site.juju.configure("slurmd", "node-config", "RealMemory=1000 Weight=5 Features=ssd Gres=gpu:2");
  site.integrate("slurmd");
  EXPECT_EQ(site.launch("slurmd/0").conf, "CPUs=8 Boards=1 RealMemory=1000 Weight=5 Gres=gpu:2 Features=ssd,slurmd");
}

TEST(JujuCharms, WordsWithWhichSlurmdWouldNotStartAreReported) {
  FakeSite site;
  site.begin();
  site.juju.configure("slurmd", "node-config", "NodeName=x");
  EXPECT_EQ(site.juju.statuses["slurmd/0"].kind, Kind::kBlocked);
  EXPECT_THAT(site.message("slurmd/0"), HasSubstr("node-config: NodeName"));
  EXPECT_EQ(site.at("slurmd/0").slurmd.starts, 1);
}

TEST(JujuCharms, OtherReadingsOfTheHardwareDoNotRestartSlurmd) {
  FakeSite site;
  site.begin();
  site.at("slurmd/0").machine.programs["/usr/sbin/slurmd -C"].out = "NodeName=h CPUs=8 Boards=1 RealMemory=63999\n";
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.at("slurmd/0").slurmd.starts, 1);
  site.at("slurmd/0").slurmd.now.running = false;
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.launch("slurmd/0").conf, HasSubstr("RealMemory=63999"));
}

// Requirement 4
// Requirement 37
TEST(JujuCharms, AFailedStartIsLoggedAndShownOnThatUnitOnly) {
  FakeSite site;
  site.deploy("slurmctld", "slurmctld");
  site.deploy("slurmd", "slurmd", 2);
  site.at("slurmd/1").slurmd.ends = "slurmd ended: fatal: no cgroup";
  site.integrate("slurmd");
  EXPECT_EQ(site.juju.statuses["slurmd/1"], blocked("slurmd does not run: slurmd ended: fatal: no cgroup"));
  EXPECT_THAT(site.juju.logs, Contains("ERROR slurmd does not run: slurmd ended: fatal: no cgroup"));
  EXPECT_EQ(site.juju.statuses["slurmd/0"].kind, Kind::kActive);
  EXPECT_EQ(site.juju.statuses["slurmctld/0"].kind, Kind::kActive);
}

// Requirement 37
TEST(JujuCharms, AStartThatSystemdRefusesIsAStatusAndNoFailedHook) {
  FakeSite site;
  site.deploy_both();
  site.at("slurmd/0").slurmd.fails = "systemctl enable: exit code 1";
  site.integrate("slurmd");
  EXPECT_EQ(site.juju.statuses["slurmd/0"], blocked("slurmd does not start: systemctl enable: exit code 1"));
  site.at("slurmd/0").slurmd.fails.clear();
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.juju.statuses["slurmd/0"].kind, Kind::kActive);
}

// Requirement 4
TEST(JujuCharms, ANodeThatSlurmDoesNotTakeIsNotShownAsActive) {
  FakeSite site;
  site.slurm.full = true;
  site.begin();
  EXPECT_EQ(site.juju.statuses["slurmd/0"].kind, Kind::kBlocked);
  EXPECT_THAT(site.message("slurmd/0"), HasSubstr("Slurm has not accepted slurmd-0"));
  EXPECT_LE(site.paused, std::chrono::seconds(11));
}

TEST(JujuCharms, ANodeThatSlurmHasLostRegistersAgain) {
  FakeSite site;
  site.begin();
  site.slurm.nodes.clear();
  site.juju.everywhere("update-status");
  EXPECT_TRUE(site.slurm.nodes.contains("slurmd-0"));
  EXPECT_EQ(site.juju.statuses["slurmd/0"], active("slurmd-0 is IDLE"));
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.at("slurmd/0").slurmd.reloads, 1);
  // While Slurm does not answer, the record does not count as lost.
  site.slurm.up.clear();
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.at("slurmd/0").slurmd.reloads, 1);
}

TEST(JujuCharms, ASlurmdOfSomebodyElseAndAKeyOfSomebodyElseAreLeftAlone) {
  FakeSite site;
  site.deploy_both();
  site.at("slurmd/0").slurmd.now.running = true;
  site.integrate("slurmd");
  EXPECT_THAT(site.message("slurmd/0"), HasSubstr("slurmd runs already"));
  EXPECT_EQ(site.at("slurmd/0").slurmd.starts, 0);
  EXPECT_FALSE(site.at("slurmd/0").machine.files.contains(kKeyPath));

  FakeSite other;
  other.deploy_both();
  other.at("slurmd/0").machine.files[kKeyPath] = {"of another cluster", 0600};
  other.integrate("slurmd");
  EXPECT_THAT(other.message("slurmd/0"), HasSubstr("slurm.key has another key"));
  EXPECT_EQ(other.at("slurmd/0").machine.files[kKeyPath].first, "of another cluster");
  EXPECT_EQ(other.at("slurmd/0").slurmd.starts, 0);

  FakeSite beside;
  beside.deploy_both();
  beside.at("slurmd/0").machine.files["/etc/slurm/slurm.jwks"] = {"of another cluster", 0600};
  beside.integrate("slurmd");
  EXPECT_THAT(beside.message("slurmd/0"), HasSubstr("slurm.jwks is there"));
  EXPECT_FALSE(beside.at("slurmd/0").machine.files.contains(kKeyPath));
  EXPECT_EQ(beside.at("slurmd/0").slurmd.starts, 0);
}

TEST(JujuCharms, AKeyThatCannotBeReadLeavesSlurmdAsItIs) {
  FakeSite site;
  site.begin();
  site.juju.broken_tools.insert("key");
  site.juju.send("slurmd/0", "update-status");
  EXPECT_EQ(site.juju.statuses["slurmd/0"], waiting("the key of the cluster cannot be read: secret-get: no controller"));
  EXPECT_EQ(site.at("slurmd/0").slurmd.starts, 1);
  EXPECT_EQ(site.at("slurmd/0").machine.files[kKeyPath].first, site.key);
}

// --- actions ---

core::Json words(const std::string& parameters, bool reset = false) {
  return {{"parameters", parameters}, {"reset", reset}};
}

// Requirement 38
TEST(JujuCharms, NodeConfigWithAWrongWordFailsAndChangesNothing) {
  LeavingSite site;
  const auto files = site.at("slurmd/0").machine.files;
  for (const std::string& wrong :
       {"NodeName=x", "State=DOWN", "Reason=x", "Port=7000", "Wieght=5", "Weight", "Gres='gpu:1'", ""}) {
    const auto action = site.juju.act("slurmd/0", "node-config", words(wrong));
    EXPECT_EQ(action.code, 0) << wrong;
    EXPECT_NE(action.failure, "") << wrong;
    EXPECT_EQ(site.at("slurmd/0").machine.files, files) << wrong;
  }
  EXPECT_THAT(site.juju.act("slurmd/0", "node-config", words("State=DOWN")).failure, HasSubstr("State"));
  EXPECT_THAT(site.slurm.acts, IsEmpty());
  EXPECT_EQ(site.slurmd().starts, 1);
}

// Requirement 39
// Requirement 40
TEST(JujuCharms, NodeConfigOfAnIdleNodeRegistersItAnew) {
  LeavingSite site;
  const auto action = site.juju.act("slurmd/0", "node-config", words("Weight=5 Features=ssd"));
  EXPECT_EQ(action.failure, "");
  EXPECT_EQ(action.results.at("result"), "applied");
  EXPECT_EQ(action.results.at("words"), "Weight=5 Features=ssd");
  EXPECT_THAT(site.slurm.acts, ElementsAre("drain slurmd-0: slurm-enlist: configuring", "delete slurmd-0"));
  const std::string conf = "CPUs=8 Boards=1 RealMemory=64000 Weight=5 Features=ssd,slurmd";
  EXPECT_EQ(site.slurm.nodes["slurmd-0"]["conf"], conf);
  EXPECT_FALSE(site.slurm.drains("slurmd-0"));
  EXPECT_EQ(site.juju.statuses["slurmd/0"], active("slurmd-0 is IDLE"));
  EXPECT_EQ(site.slurmd().starts, 2);
  EXPECT_EQ(site.at("slurmd/1").slurmd.starts, 1);
  // The settings stay through other hooks, an upgrade, a restart of slurmd and another relation.
  for (const char* event : {"update-status", "config-changed", "upgrade-charm", "start"}) site.juju.everywhere(event);
  EXPECT_EQ(site.slurmd().starts, 2);
  site.slurmd().now.running = false;
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.launch("slurmd/0").conf, conf);
  site.juju.remove_relation("0");
  EXPECT_FALSE(site.has_node());
  site.integrate("slurmd");
  EXPECT_EQ(site.slurm.nodes["slurmd-0"]["conf"], conf);
  // Further settings are added to the former ones, and `reset` removes all.
  site.juju.act("slurmd/0", "node-config", words("RealMemory=1000"));
  EXPECT_EQ(site.slurm.nodes["slurmd-0"]["conf"], "CPUs=8 Boards=1 Weight=5 RealMemory=1000 Features=ssd,slurmd");
  site.juju.act("slurmd/0", "node-config", words("", true));
  EXPECT_EQ(site.slurm.nodes["slurmd-0"]["conf"], "CPUs=8 Boards=1 RealMemory=64000 Features=slurmd");
}

// Requirement 40
TEST(JujuCharms, NodeConfigNeverRegistersANodeAnewUnderAJob) {
  LeavingSite site;
  site.slurm.jobs[7] = {.state = "SUSPENDED", .node = "slurmd-0"};
  const auto action = site.juju.act("slurmd/0", "node-config", words("Weight=5"));
  EXPECT_EQ(action.failure, "");
  EXPECT_THAT(action.results.at("result"), HasSubstr("registers again when nothing runs there"));
  EXPECT_EQ(site.paused, std::chrono::milliseconds(0));
  EXPECT_THAT(site.message("slurmd/0"), HasSubstr("must register again with its new parameters: jobs are suspended there: 7"));
  EXPECT_THAT(site.juju.act("slurmd/0", "resume").failure, HasSubstr("registers again"));
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.slurmd().starts, 1);
  EXPECT_THAT(site.slurm.acts, ElementsAre("drain slurmd-0: slurm-enlist: configuring"));
  site.slurm.jobs.clear();
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.slurm.ended, IsEmpty());
  EXPECT_EQ(site.slurmd().starts, 2);
  EXPECT_EQ(site.juju.statuses["slurmd/0"], active("slurmd-0 is IDLE"));
  EXPECT_THAT(site.launch("slurmd/0").conf, HasSubstr("Weight=5"));
}

// Requirement 40
TEST(JujuCharms, NodeConfigThatIsTakenBackOpensTheNodeAgain) {
  LeavingSite site;
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  site.juju.act("slurmd/0", "node-config", words("Weight=5"));
  EXPECT_TRUE(site.slurm.drains("slurmd-0"));
  EXPECT_EQ(site.juju.act("slurmd/0", "node-config", words("", true)).results.at("result"), "applied");
  EXPECT_FALSE(site.slurm.drains("slurmd-0"));
  EXPECT_EQ(site.slurmd().starts, 1);
}

// Requirement 40
TEST(JujuCharms, WordsThatAreGivenWhileSlurmdIsDownCountOnceItRuns) {
  LeavingSite site;
  site.slurmd().now.running = false;
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  EXPECT_EQ(site.juju.act("slurmd/0", "node-config", words("Features=ssd")).failure, "");
  site.juju.everywhere("update-status");
  EXPECT_TRUE(site.slurm.drains("slurmd-0"));
  EXPECT_TRUE(site.slurmd().now.running);
  site.slurm.jobs.clear();
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.slurm.nodes["slurmd-0"]["conf"].get<std::string>(), HasSubstr("Features=ssd,slurmd"));
  EXPECT_EQ(site.juju.statuses["slurmd/0"], active("slurmd-0 is IDLE"));
}

// Requirement 40
TEST(JujuCharms, ANodeThatCouldNotStartAgainIsNotTakenOut) {
  LeavingSite site;
  site.juju.broken_tools.insert("key");
  site.juju.act("slurmd/0", "node-config", words("Weight=5"));
  EXPECT_TRUE(site.has_node());
  site.juju.broken_tools.clear();
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.launch("slurmd/0").conf, HasSubstr("Weight=5"));
}

// Requirement 2
// Requirement 40
TEST(JujuCharms, ANodeThatRegistersAnewKeepsTheDrainOfAnAdministrator) {
  LeavingSite site;
  site.slurm.set_state("slurmd-0", {"IDLE", "DRAIN", "DYNAMIC_NORM"}, "disk \"sda\"");
  site.juju.act("slurmd/0", "node-config", words("Weight=5"));
  EXPECT_TRUE(site.slurm.drains("slurmd-0"));
  EXPECT_EQ(site.slurm.nodes["slurmd-0"]["reason"], "disk 'sda'");
  EXPECT_THAT(site.slurm.acts, ElementsAre("delete slurmd-0"));
  // After a resume, a later start of slurmd does not drain the node again.
  EXPECT_EQ(site.juju.act("slurmd/0", "resume").results.at("state"), "IDLE");
  site.juju.everywhere("update-status");
  EXPECT_EQ(site.slurmd().starts, 2);
  EXPECT_FALSE(site.slurm.drains("slurmd-0"));
  site.slurmd().now.running = false;
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.launch("slurmd/0").conf, Not(HasSubstr("DRAIN")));
}

// Requirement 40
TEST(JujuCharms, FeaturesAreChangedUnderAJob) {
  LeavingSite site;
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  EXPECT_EQ(site.juju.act("slurmd/0", "node-config", words("Features=ssd")).results.at("result"), "applied");
  EXPECT_THAT(site.slurm.acts, ElementsAre("features slurmd-0: ssd,slurmd ssd,slurmd"));
  EXPECT_THAT(site.launch("slurmd/0").conf, HasSubstr("Features=ssd,slurmd"));
  EXPECT_TRUE(site.slurm.jobs.contains(7));
}

// Requirement 40
TEST(JujuCharms, NodeConfigWithoutARunningSlurmdIsStoredOnly) {
  FakeSite site;
  site.deploy_both();
  EXPECT_THAT(site.juju.act("slurmd/0", "node-config", words("Weight=5")).results.at("result"), HasSubstr("stored"));
  EXPECT_EQ(site.at("slurmd/0").slurmd.starts, 0);
  site.integrate("slurmd");
  EXPECT_THAT(site.launch("slurmd/0").conf, HasSubstr("Weight=5"));
  EXPECT_THAT(site.slurm.acts, IsEmpty());
}

// Requirement 40
TEST(JujuCharms, NodeConfigWaitsForASlurmctldThatDoesNotAnswer) {
  LeavingSite site;
  site.slurm.up.clear();
  EXPECT_EQ(site.juju.act("slurmd/0", "node-config", words("Weight=5")).failure, "");
  EXPECT_THAT(site.message("slurmd/0"), HasSubstr("Slurm does not answer"));
  EXPECT_EQ(site.slurmd().starts, 1);
  EXPECT_NE(site.juju.act("slurmd/1", "node-config", words("Features=ssd")).failure, "");
  EXPECT_EQ(site.at("slurmd/1").slurmd.starts, 1);
}

TEST(JujuCharms, ADrainAndAResumeAreThoseOfAnAdministrator) {
  LeavingSite site;
  const auto drained = site.juju.act("slurmd/0", "drain", {{"reason", "new \"fan\""}});
  EXPECT_EQ(drained.results.at("state"), "IDLE+DRAIN");
  EXPECT_EQ(site.slurm.nodes["slurmd-0"]["reason"], "new 'fan'");
  EXPECT_EQ(site.juju.statuses["slurmd/0"], active("slurmd-0 is IDLE+DRAIN: new 'fan'"));
  site.juju.everywhere("update-status");
  EXPECT_TRUE(site.slurm.drains("slurmd-0"));
  EXPECT_THAT(site.juju.act("slurmd/0", "drain", {{"reason", "other"}}).failure, HasSubstr("drained already: new 'fan'"));
  EXPECT_EQ(site.juju.act("slurmd/0", "resume").results.at("state"), "IDLE");
  EXPECT_EQ(site.slurm.given_reason, "Not responding") << "it would stand for the next drain of Slurm";
  EXPECT_EQ(site.juju.act("slurmd/0", "resume").failure, "");
  // `resume` does not undo the drain of another program.
  site.slurm.set_state("slurmd-0", {"IDLE", "DRAIN", "DYNAMIC_NORM"}, "slurm-bridge: pods run there");
  EXPECT_THAT(site.juju.act("slurmd/0", "resume").failure, HasSubstr("another program"));
  EXPECT_TRUE(site.slurm.drains("slurmd-0"));
}

// Requirement 23
// Requirement 24
TEST(JujuCharms, DestroyJobsEndsTheJobsOfThisNodeAndNamesThem) {
  LeavingSite site;
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  site.slurm.jobs[11] = {.node = "slurmd-0", .shown = "10_3", .stays = true};
  site.slurm.jobs[12] = {.state = "COMPLETED", .node = "slurmd-0"};
  site.slurm.jobs[13] = {.node = "slurmd-1"};
  site.slurm.jobs[10] = {.state = "PENDING", .shown = "10_[4-9]"};
  const auto action = site.juju.act("slurmd/0", "destroy-jobs");
  EXPECT_EQ(action.failure, "");
  EXPECT_EQ(action.results.at("jobs"), "7,10_3");
  EXPECT_EQ(action.results.at("still-there"), "10_3");
  EXPECT_THAT(site.slurm.acts, ElementsAre("cancel 7", "cancel 10_3"));
  EXPECT_TRUE(site.slurm.jobs.contains(13));
  EXPECT_TRUE(site.has_node());
  EXPECT_EQ(site.juju.act("slurmd/1", "destroy-jobs").results.at("jobs"), "13");
  EXPECT_EQ(site.juju.act("slurmd/1", "destroy-jobs").results.at("jobs"), "");
  site.slurm.nodes["slurmd-1"]["instance_id"] = "another";
  EXPECT_THAT(site.juju.act("slurmd/1", "destroy-jobs").failure, HasSubstr("another slurmd"));
}

TEST(JujuCharms, AUnitThatIsBeingRemovedTakesNoMoreWords) {
  LeavingSite site;
  site.slurm.jobs[7] = {.node = "slurmd-0"};
  site.juju.send("slurmd/0", "slurmctld-relation-departed",
                 {{"JUJU_RELATION_ID", "slurmctld:0"}, {"JUJU_DEPARTING_UNIT", "slurmd/0"}});
  for (const char* action : {"node-config", "resume"})
    EXPECT_THAT(site.juju.act("slurmd/0", action, words("Weight=5")).failure, HasSubstr("is being removed")) << action;
  EXPECT_EQ(site.juju.act("slurmd/0", "destroy-jobs").results.at("jobs"), "7");
  EXPECT_NE(site.juju.act("slurmd/0", "x").failure, "");
}

// --- rest ---

TEST(JujuCharms, NothingIsDoneWhereNothingHasChanged) {
  FakeSite site;
  site.begin();
  site.deploy("gpu", "slurmd", 2);
  site.integrate("gpu");
  const auto calls = site.juju.calls;
  std::map<std::string, std::size_t> writes;
  for (const auto& [unit, place] : site.places) writes[unit] = place->machine.writes.size();
  const int reconfigures = site.reconfigures();
  for (const char* event : {"update-status", "config-changed", "upgrade-charm", "leader-settings-changed", "start"})
    site.juju.everywhere(event);
  EXPECT_EQ(site.juju.calls, calls);
  for (const auto& [unit, place] : site.places) {
    EXPECT_EQ(place->machine.writes.size(), writes[unit]) << unit;
    EXPECT_LE(place->slurmd.starts, 1) << unit;
    EXPECT_EQ(place->slurmd.reloads, 0) << unit;
  }
  EXPECT_EQ(site.reconfigures(), reconfigures);
}

TEST(JujuCharms, AnySingleEventIsEnough) {
  // Juju may merge or omit events. Hooks of both sides in turn are enough, whatever the names of the events are.
  FakeSite site;
  site.deploy_both();
  auto dispatch = std::move(site.juju.dispatch);
  site.juju.dispatch = [](const auto&, const auto&, auto&) { return 1; };
  site.integrate("slurmd");
  site.juju.dispatch = dispatch;
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(site.juju.send("slurmd/0", "update-status"), 0);
    EXPECT_EQ(site.juju.send("slurmctld/0", "update-status"), 0);
  }
  EXPECT_EQ(site.juju.send("slurmd/0", "update-status"), 0);
  EXPECT_EQ(site.juju.statuses["slurmd/0"].kind, Kind::kActive);
}

TEST(JujuCharms, AReconfigureWaitsForJobsThatAreStarting) {
  FakeSite site;
  site.deploy_both();
  site.slurm.starting = 4;
  site.after = [&](const std::string&, const std::string&) {
    if (site.reconfigures() > 0) EXPECT_LT(site.slurm.starting, 0);
  };
  site.integrate("slurmd");
  EXPECT_EQ(site.reconfigures(), 1);
}

TEST(JujuCharms, AFileOfSomebodyElseIsNotReplaced) {
  FakeSite site;
  site.deploy_both();
  site.at("slurmctld/0").machine.files[kPoolPath].first = "NodeSet=x Feature=x\n";
  site.integrate("slurmd");
  EXPECT_EQ(site.pools(), "NodeSet=x Feature=x\n");
  EXPECT_EQ(site.juju.statuses["slurmctld/0"].kind, Kind::kBlocked);
}

TEST(JujuCharms, WhatIsMissingOnAMachineIsAStatus) {
  FakeSite site;
  site.deploy_both();
  site.at("slurmd/0").machine.programs.erase("/usr/sbin/slurmd -V");
  site.at("slurmctld/0").machine.files["/etc/slurm/slurm.conf"].first = "ClusterName=c\nSlurmctldHost=ctl\n";
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.message("slurmd/0"), HasSubstr("Install Slurm's slurmd"));
  EXPECT_THAT(site.message("slurmctld/0"),
              HasSubstr("AuthType=auth/slurm,SlurmctldParameters=enable_configless,MaxNodeCount=1024"));
  site.at("slurmctld/0").machine.programs.erase("slurmctld -V");
  site.juju.everywhere("update-status");
  EXPECT_THAT(site.message("slurmctld/0"), HasSubstr("Install Slurm's slurmctld"));
}

TEST(JujuCharms, WrongUsageIsToldAndNothingIsDone) {
  FakeSite site;
  site.deploy("slurmd", "slurmd");
  EXPECT_EQ(site.juju.send("slurmd/0", "install", {}), 0);
  FakeSite::Place& place = site.at("slurmd/0");
  site.juju.dispatch = [&](const auto&, const auto&, HookTools& tools) {
    const CharmParts parts{.host = place.machine, .tools = tools, .slurmd = place.slurmd, .pause = {}, .now = {}};
    const auto err = [&](std::string_view text) { site.said += text; };
    EXPECT_EQ(run_charm("slurmdbd", {}, parts, err), 2);
    EXPECT_EQ(run_charm("slurmd", {}, parts, err), 2);
    EXPECT_EQ(run_charm("slurmctld", {{"JUJU_DISPATCH_PATH", "actions/x"}, {"JUJU_UNIT_NAME", "slurmctld/0"}}, parts, err), 2);
    return run_charm("slurmd", {{"JUJU_DISPATCH_PATH", "other/x"}, {"JUJU_UNIT_NAME", "slurmd/0"}}, parts, err);
  };
  EXPECT_EQ(site.juju.send("slurmd/0", "x"), 2);
  EXPECT_THAT(site.said, HasSubstr("Juju runs this"));
  EXPECT_THAT(site.said, HasSubstr("the charm has no other/x"));
}

}  // namespace
}  // namespace enlist::juju::testing
