#include "cli/rollout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/revision.hpp"
#include "cli/testing/objects.hpp"

namespace cli {
namespace {

using core::Json;
using testing::HasSubstr;
using Phase = RolloutState::Phase;

void say(Json& nodeset, const char* type, const char* status, const char* reason, const char* message) {
  for (Json& condition : nodeset["status"]["conditions"]) {
    if (condition["type"] == type) condition.update(Json{{"status", status}, {"reason", reason}, {"message", message}});
  }
}

TEST(RolloutStatus, TellsHowFarItIsAndWhatItWaitsFor) {
  const RolloutState state = rollout_state(nodeset_object());
  EXPECT_EQ(state.phase, Phase::kUnderWay);
  EXPECT_THAT(state.text, HasSubstr("2 of 3 workers are updated, 3 ready; Updating: 1 of 3 workers still use"));
}

TEST(RolloutStatus, IsDoneWhenAllWorkersAreUpdatedAndReady) {
  Json nodeset = nodeset_object();
  nodeset["status"]["updatedReplicas"] = 3;
  say(nodeset, "Progressing", "False", "Done", "");
  EXPECT_EQ(rollout_state(nodeset).phase, Phase::kComplete);
  nodeset["status"]["readyReplicas"] = 2;
  EXPECT_EQ(rollout_state(nodeset).phase, Phase::kUnderWay);
  nodeset["status"]["readyReplicas"] = 3;
  nodeset["metadata"]["generation"] = 4;
  EXPECT_EQ(rollout_state(nodeset).text, "waiting for the operator to see the change");
}

TEST(RolloutStatus, EndsWherePeopleHoldIt) {
  for (const char* reason : {"UpdatePaused", "UpdatePartitioned", "UpdateHeld", "OnDelete", "SwitchHeld"}) {
    Json nodeset = nodeset_object();
    say(nodeset, "Progressing", "False", reason, "1 of 3 workers still use an earlier template");
    EXPECT_EQ(rollout_state(nodeset).phase, Phase::kWaitsForPeople) << reason;
    EXPECT_EQ(rollout_state(nodeset).text, "1 of 3 workers still use an earlier template");
  }
}

TEST(RolloutStatus, DoesNotCallWorkersThatGoWanted) {
  Json nodeset = nodeset_object();
  nodeset["status"].update(Json{{"desired", 2}, {"replicas", 4}, {"readyReplicas", 4}, {"updatedReplicas", 4}});
  say(nodeset, "Progressing", "True", "SwitchingMode", "2 workers of the other scalingMode are still there");
  EXPECT_EQ(rollout_state(nodeset).phase, Phase::kUnderWay);
  EXPECT_THAT(rollout_state(nodeset).text, HasSubstr("2 workers are wanted and 4 exist: 4 of those are updated, 4 ready; "
                                                     "SwitchingMode: 2 workers of the other scalingMode"));
  // Until the first replacement worker exists, the counts equal those of a finished update.
  nodeset["status"].update(Json{{"replicas", 2}, {"readyReplicas", 2}, {"updatedReplicas", 2}});
  EXPECT_EQ(rollout_state(nodeset).phase, Phase::kUnderWay);
  EXPECT_THAT(rollout_state(nodeset).text, HasSubstr("2 workers are wanted and 2 exist"));
}

Json revision_object(std::int64_t number, const Json& nodeset, const std::string& image, const std::string& owner = "n-1") {
  auto spec = api::from_json<api::NodeSet>(nodeset)->spec;
  spec.slurmd["image"] = image;
  Json out{{"kind", "ControllerRevision"}, {"revision", number}, {"data", api::revision_data(spec)}};
  out["metadata"] = {{"name", "cpu-" + std::to_string(number)},
                     {"labels", {{"controller-revision-hash", api::revision_hash(spec)}}},
                     {"ownerReferences", Json::array({Json{{"kind", "NodeSet"}, {"uid", owner}, {"controller", true}}})}};
  return out;
}

struct Revisions : testing::Test {
  Json nodeset = nodeset_object();
  std::vector<Json> revisions;
  Revisions() {
    nodeset["spec"]["slurmd"]["image"] = "slurmd:2";
    revisions = revisions_of(nodeset, {revision_object(3, nodeset, "slurmd:2"), revision_object(1, nodeset, "slurmd:0"),
                                       revision_object(2, nodeset, "slurmd:1"), revision_object(9, nodeset, "x", "other")});
  }
};

TEST_F(Revisions, AreThoseOfTheNodeSetByNumber) {
  ASSERT_EQ(revisions.size(), 3U);
  EXPECT_EQ(revisions[0]["revision"], 1);
  EXPECT_EQ(revisions[2]["revision"], 3);
}

TEST_F(Revisions, HistoryTellsWhichIsInForceAndWhatChanged) {
  Json worker{{"metadata",
               {{"labels", {{"controller-revision-hash", revisions[1]["metadata"]["labels"]["controller-revision-hash"]}}}}}};
  const Json document = history_document(nodeset, revisions, {worker});
  EXPECT_EQ(document["items"][1]["workers"], 1);
  EXPECT_EQ(document["items"][1]["inForce"], false);
  EXPECT_EQ(document["items"][2]["inForce"], true);
  EXPECT_EQ(document["items"][2]["changes"], Json::array({"slurmd.image"}));
  EXPECT_THAT(history_text(document), HasSubstr("slurmd:2  slurmd.image"));
}

TEST_F(Revisions, UndoTakesTheNewestBeforeThatInForce) {
  EXPECT_EQ((*revision_to_undo(nodeset, revisions, {}))["revision"], 2);
  EXPECT_EQ((*revision_to_undo(nodeset, revisions, 1))["revision"], 1);
  EXPECT_THAT(revision_to_undo(nodeset, revisions, 7).error().message, HasSubstr("has no revision 7"));
  // The template was just changed and has no revision yet.
  nodeset["spec"]["slurmd"]["image"] = "slurmd:broken";
  EXPECT_EQ((*revision_to_undo(nodeset, revisions, {}))["revision"], 3);
}

TEST_F(Revisions, UndoPassesOverThoseThatRecordTheSame) {
  revisions[1] = revisions[2];
  revisions[1]["revision"] = 2;
  revisions[1]["data"]["spec"]["ssh"] = {{"enabled", false}, {"extraSshdConfig", "x"}};
  revisions[1]["metadata"]["labels"]["controller-revision-hash"] = "earlier";
  EXPECT_EQ((*revision_to_undo(nodeset, revisions, {}))["revision"], 1);
}

TEST_F(Revisions, WithoutAnEarlierOneTheMessageSaysWhy) {
  const auto found = revision_to_undo(nodeset, {revisions[2]}, {});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("spec.revisionHistoryLimit allows, which is 0"));
}

}  // namespace
}  // namespace cli
