#include "operator/controller/plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "operator/controller/testing/observed.hpp"
#include "slurm/acts.hpp"

namespace op::controller {
namespace {

using core::Json;
using testing::observed_of;

constexpr core::MonoTime kNow{core::Duration{1000000}};

/// So many records of workers whose NodeSet is gone, as Slurm told them so long ago.
Observed with_records(int count, core::Duration age) {
  Observed out = observed_of(Json::object());
  out.context.mono = kNow;
  auto snapshot = std::make_shared<slurm::Snapshot>();
  snapshot->health = slurm::Snapshot::Health::kComplete;
  snapshot->requested_at = kNow - age;
  for (int i = 0; i < count; ++i) {
    auto node = std::make_shared<slurm::Node>();
    node->name = "gone-" + std::to_string(i);
    node->state.base = "DOWN";
    node->reason = "slurm-operator: NodeSet ns/gone was scaled in";
    snapshot->nodes.insert_or_assign(node->name, node);
  }
  out.snapshot = snapshot;
  return out;
}

std::size_t deleted_records(const plan::Plan& plan) {
  const auto lane = plan.lanes().find("records");
  return lane == plan.lanes().end() ? 0 : lane->second.groups().front().size();
}

TEST(Records, AreDeletedAFewInAPass) {
  const plan::Plan few = plan(with_records(3, core::Duration{0}));
  EXPECT_EQ(deleted_records(few), 3U);
  EXPECT_NE(few.wake_reason(), "records of workers are left");
  const plan::Plan many = plan(with_records(100, core::Duration{0}));
  EXPECT_GT(deleted_records(many), 20U);
  EXPECT_LE(deleted_records(many), 32U);
  EXPECT_EQ(many.wake(), core::Duration{1000});
  EXPECT_EQ(many.wake_reason(), "records of workers are left");
}

TEST(Records, OfAnOldSnapshotWaitForAFreshOne) {
  const plan::Plan old = plan(with_records(3, core::Duration{60000}));
  EXPECT_EQ(deleted_records(old), 0U);
  EXPECT_EQ(old.wake(), core::Duration{1000});
  EXPECT_EQ(old.wake_reason(), "records of workers are left");
}

/// The condition that the plan writes, as "status reason: message".
std::string condition(const plan::Plan& plan, std::string_view type) {
  const Json written = plan.describe();
  for (const Json& item : written["lanes"]["status"][0][0]["do"]["patch"]["status"]["conditions"]) {
    if (item["type"] != type) continue;
    return core::get_string(item, {"status"}) + " " + core::get_string(item, {"reason"}) + ": " +
           core::get_string(item, {"message"});
  }
  return "none";
}

plan::Plan with_finalizer_and_claim(const char* phase) {
  Observed observed = observed_of(Json::object());
  auto object = std::make_shared<kube::Object>(*observed.object);
  object->meta.finalizers = {std::string(api::kFinalizerController)};
  observed.object = object;
  observed.claim = *kube::record_from_json<kube::Object>({{"kind", "PersistentVolumeClaim"},
                                                          {"metadata", {{"namespace", "ns"}, {"name", "state"}}},
                                                          {"status", {{"phase", phase}}}});
  return plan(observed);
}

TEST(Claim, ALostOneDoesNotMendItself) {
  EXPECT_EQ(condition(with_finalizer_and_claim("Lost"), "Degraded"), "True ClaimPending: PersistentVolumeClaim state is Lost");
  EXPECT_EQ(condition(with_finalizer_and_claim("Pending"), "Degraded"), "False AsExpected: ");
  EXPECT_EQ(condition(with_finalizer_and_claim("Pending"), "Progressing"),
            "True ClaimPending: PersistentVolumeClaim state is Pending; slurmctld is starting");
}

}  // namespace
}  // namespace op::controller
