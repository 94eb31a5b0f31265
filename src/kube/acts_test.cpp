#include "kube/acts.hpp"

#include <gtest/gtest.h>

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

TEST(PodWitnessTest, NeverStarted) {
  PodRecord pod = pending();
  ASSERT_TRUE(PodWitness::never_started(pod));
  EXPECT_EQ(PodWitness::never_started(pod)->subject(), "u");
  for (const char* phase : {"Running", "Unknown", "Failed", ""}) {
    pod.phase = phase;
    EXPECT_FALSE(PodWitness::never_started(pod)) << phase;
  }
  pod.phase = "Pending";
  pod.node_name = "node";
  EXPECT_FALSE(PodWitness::never_started(pod)) << "a kubelet may have started it and not said so yet";
  pod.containers.push_back({"init", true, false, true, 0, "", ""});
  pod.containers.push_back({"slurmd", false, false, false, 0, "PodInitializing", ""});
  EXPECT_FALSE(PodWitness::never_started(pod)) << "slurmd may be past its init container";
}

TEST(PodWitnessTest, Ended) {
  PodRecord pod = pending();
  for (const char* phase : {"Pending", "Running", "Unknown", ""}) {
    pod.phase = phase;
    EXPECT_FALSE(PodWitness::ended(pod)) << phase;
  }
  for (const char* phase : {"Failed", "Succeeded"}) {
    pod.phase = phase;
    EXPECT_TRUE(PodWitness::ended(pod)) << phase;
  }
}

TEST(OwnerWitnessTest, TheUserEndedTheCluster) {
  const PodRecord pod = pending();
  ObjectMeta controller;
  controller.ns = "ns";
  controller.name = "c";
  EXPECT_FALSE(OwnerWitness::owner_ends(controller, pod));
  controller.deletion_timestamp = core::WallTime{};
  EXPECT_TRUE(OwnerWitness::owner_ends(controller, pod));
  controller.ns = "other";
  EXPECT_FALSE(OwnerWitness::owner_ends(controller, pod)) << "another namespace's";
}

TEST(ActsTest, DeletingAWorkerCarriesItsEvidence) {
  const PodRecord pod = pending();
  const Json never = delete_pod(pod, *PodWitness::never_started(pod))->describe();
  EXPECT_EQ(never["act"], "kube.Delete");
  EXPECT_EQ(never["uid"], "u");
  EXPECT_EQ(never["resourceVersion"], "3") << "true of this version only";
  EXPECT_EQ(never["evidence"]["subject"], "u");
  PodRecord failed = pod;
  failed.phase = "Failed";
  EXPECT_FALSE(delete_pod(failed, *PodWitness::ended(failed))->describe().contains("resourceVersion"));
  EXPECT_EQ(delete_pod(failed, *PodWitness::ended(failed), PodVersion::kAsSeen)->describe()["resourceVersion"], "3");
}

TEST(ActsTest, FinalizersAreChangedOneByOne) {
  ObjectMeta meta = pending().meta;
  auto act = std::dynamic_pointer_cast<const Patch>(add_finalizer(resources::kPod, meta, "a/b"));
  ASSERT_TRUE(act);
  EXPECT_EQ(act->resource_version, "3") << "a list that somebody else begins meanwhile is not replaced";
  EXPECT_EQ(act->patch, Json::parse(R"([{"op":"add","path":"/metadata/finalizers","value":["a/b"]}])"));
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

}  // namespace
}  // namespace kube
