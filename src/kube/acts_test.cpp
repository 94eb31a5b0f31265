#include "kube/acts.hpp"

#include <gtest/gtest.h>

#include <concepts>

#include "plan/testing/observing.hpp"

namespace kube {
namespace {

using core::Json;

PodRecord pending() {
  PodRecord pod;
  pod.meta.ns = "ns";
  pod.meta.name = "p";
  pod.meta.uid = "u";
  pod.meta.resource_version = "3";
  pod.phase = "Pending";
  return pod;
}

std::optional<NeverStarted> never_started(const PodRecord& pod) {
  return NeverStarted::of(plan::testing::Observer::at({}), pod);
}

std::optional<Ended> ended(const PodRecord& pod) {
  return Ended::of(plan::testing::Observer::at({}), pod);
}

TEST(PodEvidenceTest, NeverStarted) {
  PodRecord pod = pending();
  ASSERT_TRUE(never_started(pod));
  EXPECT_EQ(never_started(pod)->uid(), "u");
  for (const char* phase : {"Running", "Unknown", "Failed", ""}) {
    pod.phase = phase;
    EXPECT_FALSE(never_started(pod)) << phase;
  }
  pod.phase = "Pending";
  pod.node_name = "node";
  EXPECT_FALSE(never_started(pod)) << "a kubelet may have started it and not said so yet";
  pod.containers.push_back({"init", true, false, true, 0, "", ""});
  pod.containers.push_back({"slurmd", false, false, false, 0, "PodInitializing", ""});
  EXPECT_FALSE(never_started(pod)) << "slurmd may be past its init container";
}

TEST(PodEvidenceTest, Ended) {
  PodRecord pod = pending();
  for (const char* phase : {"Pending", "Running", "Unknown", ""}) {
    pod.phase = phase;
    EXPECT_FALSE(ended(pod)) << phase;
  }
  for (const char* phase : {"Failed", "Succeeded"}) {
    pod.phase = phase;
    EXPECT_TRUE(ended(pod)) << phase;
  }
}

template <class Evidence>
concept Deletes = requires(const PodRecord& pod, Evidence evidence) {
  delete_pod(pod, evidence);
};

TEST(ActsTest, APodIsDeletedWithEvidenceOnly) {
  static_assert(Deletes<PodEvidence> && Deletes<NeverStarted> && Deletes<Ended>);
  static_assert(!Deletes<std::string> && !Deletes<plan::Evidence> && !Deletes<std::nullopt_t>);
  static_assert(!std::invocable<decltype([](const auto& pod) -> decltype(delete_pod(pod)) { return {}; }), PodRecord>);
  static_assert(!std::is_constructible_v<NeverStarted, const plan::Observing&, const PodRecord&, std::string_view, std::string,
                                         std::nullopt_t>,
                "only its own look at the pod issues it");
}

TEST(ActsTest, DeletingAPodCarriesItsEvidence) {
  const PodRecord pod = pending();
  const Json never = delete_pod(pod, *never_started(pod))->describe();
  EXPECT_EQ(never["act"], "kube.Delete");
  EXPECT_EQ(never["uid"], "u");
  EXPECT_EQ(never["resourceVersion"], "3") << "true of this version only";
  EXPECT_EQ(never["evidence"]["subject"], "u");
  PodRecord failed = pod;
  failed.phase = "Failed";
  EXPECT_FALSE(delete_pod(failed, *ended(failed))->describe().contains("resourceVersion"));
  EXPECT_EQ(delete_pod(failed, *ended(failed), PodVersion::kAsSeen)->describe()["resourceVersion"], "3");
}

TEST(ActsTest, EvidenceOfAVersionCarriesItWhereverItIsTaken) {
  const PodRecord pod = pending();
  const std::optional<PodEvidence> any_kind = never_started(pod);
  EXPECT_EQ(delete_pod(pod, *any_kind)->describe()["resourceVersion"], "3");
  EXPECT_EQ(delete_fenced_pod(pod, *any_kind)->describe()["resourceVersion"], "3");
  PodRecord later = pod;
  later.meta.resource_version = "4";
  EXPECT_EQ(delete_pod(later, *any_kind, PodVersion::kAsSeen)->describe()["resourceVersion"], "3")
      << "of the later one nothing is known";
  Evict evict;
  evict.evidence = any_kind;
  EXPECT_EQ(evict.describe()["resourceVersion"], "3");
  PodRecord failed = pod;
  failed.phase = "Failed";
  evict.evidence = ended(failed);
  EXPECT_FALSE(evict.describe().contains("resourceVersion"));
}

TEST(ActsTest, FinalizersAreChangedOneByOne) {
  ObjectMeta meta = pending().meta;
  auto act = std::dynamic_pointer_cast<const Patch>(add_finalizer(resources::kPod, meta, "a/b"));
  ASSERT_TRUE(act);
  EXPECT_EQ(act->resource_version, "3") << "a list that somebody else begins meanwhile is not replaced";
  EXPECT_EQ(act->patch, Json::parse(R"([{"op":"add","path":"/metadata/finalizers","value":["a/b"]}])"));
  EXPECT_EQ(act->withhold(), plan::Act::Withhold::kNever) << "what they guard waits";
  EXPECT_EQ(merge_patch(resources::kPod, meta, {{"metadata", {{"finalizers", nullptr}}}})->withhold(),
            plan::Act::Withhold::kLong);
  meta.finalizers = {"x/y"};
  act = std::dynamic_pointer_cast<const Patch>(add_finalizer(resources::kPod, meta, "a/b"));
  EXPECT_EQ(act->patch, Json::parse(R"([{"op":"test","path":"/metadata/finalizers","value":["x/y"]},
      {"op":"add","path":"/metadata/finalizers/-","value":"a/b"}])"));
  EXPECT_EQ(add_finalizer(resources::kPod, meta, "x/y"), nullptr);
  EXPECT_EQ(remove_finalizer(resources::kPod, meta, "a/b"), nullptr);
  act = std::dynamic_pointer_cast<const Patch>(remove_finalizer(resources::kPod, meta, "x/y"));
  EXPECT_EQ(
      act->patch,
      Json::parse(
          R"([{"op":"test","path":"/metadata/finalizers/0","value":"x/y"},{"op":"remove","path":"/metadata/finalizers/0"}])"));
}

TEST(ActsTest, OwnerReferencesBlock) {
  const Json reference = owner_reference_json(resources::kStatefulSet, pending().meta);
  EXPECT_EQ(
      reference,
      Json::parse(
          R"({"apiVersion":"apps/v1","kind":"StatefulSet","name":"p","uid":"u","controller":true,"blockOwnerDeletion":true})"));
}

TEST(ActsTest, EvictionsSayWhatTheyDo) {
  Evict evict;
  evict.pod = {"ns", "p"};
  evict.uid = "u";
  evict.grace_seconds = 7;
  PodRecord ended = pending();
  ended.phase = "Failed";
  evict.evidence = Ended::of(plan::testing::Observer::at({}), ended);
  const Json shown = evict.describe();
  EXPECT_EQ(shown["act"], "kube.Evict");
  EXPECT_EQ(shown["graceSeconds"], 7);
  EXPECT_EQ(shown["evidence"]["subject"], "u");
  EXPECT_TRUE(evict.destructive());
}

TEST(Acts, APatchOfAnyVersionIsFencedByTheUidAlone) {
  ObjectMeta meta;
  meta.ns = "ns";
  meta.name = "a";
  meta.uid = "u";
  meta.resource_version = "7";
  const core::Json patch{{"status", {{"conditions", core::Json::array()}}}};
  const auto any =
      std::dynamic_pointer_cast<const Patch>(patch_any_version(resources::kPod, meta, patch, PatchType::kStrategic, "status"));
  ASSERT_NE(any, nullptr);
  EXPECT_EQ(any->uid, "u");
  EXPECT_EQ(any->resource_version, "");
  EXPECT_EQ(any->key.str(), "ns/a");
  EXPECT_EQ(any->type, PatchType::kStrategic);
  EXPECT_EQ(any->subresource, "status");
  EXPECT_EQ(any->patch, patch);
  EXPECT_EQ(std::dynamic_pointer_cast<const Patch>(merge_patch(resources::kPod, meta, patch))->resource_version, "7");
}

}  // namespace
}  // namespace kube
