#include "slinky/workers.hpp"

#include <gtest/gtest.h>

#include "api/well_known.hpp"

namespace slinky {
namespace {

constexpr core::WallTime kStart{core::Duration{1'767'323'045'000}};

/// Ready and registered workers, and Slurm's answer about these workers.
class Doubt : public ::testing::Test {
 protected:
  void add(int count, core::WallTime ready_since = kStart) {
    for (int i = 0; i < count; ++i) {
      kube::PodRecord pod;
      pod.meta.name = pod.hostname = "cpu-" + std::to_string(pods_.size());
      pod.meta.annotations[std::string(api::kAnnotationRegistered)] = pod.hostname;
      pod.phase = "Running";
      pod.conditions.push_back({"Ready", "True", "", ""});
      pod.ready_since = ready_since;
      kube::ContainerState slurmd;
      slurmd.name = "slurmd";
      slurmd.started_once = true;
      pod.containers = {slurmd};
      auto node = std::make_shared<slurm::Node>();
      node->name = pod.hostname;
      node->state.base = "IDLE";
      snapshot_.nodes.insert_or_assign(node->name, node);
      pods_.push_back(std::make_shared<kube::PodRecord>(pod));
    }
  }

  kube::PodRecord& pod(int index) { return const_cast<kube::PodRecord&>(*pods_[static_cast<std::size_t>(index)]); }

  void lose(int from, int to) {
    for (int i = from; i < to; ++i) {
      snapshot_.nodes.erase(pod(i).hostname);
      pod(i).conditions.push_back({"SlurmNodeStateUnknown", "True", "", missing_text(kStart + core::Duration{60000})});
    }
  }

  [[nodiscard]] std::string doubt(std::optional<core::WallTime> state_since = {}) const {
    return doubt_of(pods_, snapshot_, state_since);
  }

  std::vector<kube::PodPtr> pods_;
  slurm::Snapshot snapshot_ = [] {
    slurm::Snapshot out;
    out.health = slurm::Snapshot::Health::kComplete;
    return out;
  }();
};

TEST_F(Doubt, NoneWhereSlurmKnowsAllOrAFewWereDeleted) {
  EXPECT_EQ(doubt(), "");
  add(100);
  EXPECT_EQ(doubt(), "");
  lose(0, 5);
  EXPECT_EQ(doubt(), "");
  lose(5, 6);
  EXPECT_EQ(doubt(), "Slurm does not know 6 of 100 workers that were registered");
}

TEST_F(Doubt, OfFewWorkersMostMustBeKnown) {
  add(3);
  lose(0, 1);
  EXPECT_EQ(doubt(), "");
  lose(1, 2);
  EXPECT_EQ(doubt(), "Slurm does not know 2 of 3 workers that were registered");
}

TEST_F(Doubt, WhoComesAfterTheLossDoesNotMakeItSmaller) {
  add(2);
  lose(0, 2);
  EXPECT_NE(doubt(), "");
  add(8, kStart + core::Duration{120000});
  EXPECT_EQ(doubt(), "Slurm does not know 2 of 10 workers that were registered");
}

TEST_F(Doubt, NorAFewOfMany) {
  add(100);
  lose(0, 40);
  add(900, kStart + core::Duration{120000});
  EXPECT_EQ(doubt(), "Slurm does not know 40 of 1000 workers that were registered");
}

TEST_F(Doubt, OnlyOfThoseThatWereRegisteredAndStay) {
  add(4);
  snapshot_.nodes.clear();
  pod(0).meta.annotations.clear();
  pod(1).meta.deletion_timestamp = kStart;
  pod(2).meta.annotations[std::string(api::kAnnotationDeletionEvidence)] = "Drained: x";
  pod(3).host_network = true;
  pod(3).meta.annotations[std::string(api::kAnnotationRegistered)] = "true";
  EXPECT_EQ(doubt(), "");
  pod(3).host_network = false;
  EXPECT_NE(doubt(), "");
  EXPECT_EQ(doubt(kStart + core::Duration{1000}), "") << "slurmctld's pod is younger, and its state went with the one before";
  EXPECT_NE(doubt(kStart - core::Duration{1000}), "");
  snapshot_.health = slurm::Snapshot::Health::kStale;
  EXPECT_EQ(doubt(), "") << "there is no word to doubt";
}

TEST(RegisteredSince, IsWhatItsConditionSays) {
  const core::WallTime at{core::Duration{1767225600000}};
  kube::PodRecord pod;
  EXPECT_EQ(registered_since(pod), std::nullopt);
  pod.conditions.push_back({std::string(api::kPodConditionRegistered), "True", "", registered_text(at)});
  EXPECT_EQ(registered_since(pod), at);
  EXPECT_FALSE(seen_in_slurm(pod)) << "that others tell";
  pod.conditions.back().message = "somebody else's words";
  EXPECT_EQ(registered_since(pod), std::nullopt);
}

TEST(StopSwitch, IsOnUnlessSomebodySaysNo) {
  const auto stops = [](const char* value) {
    kube::ObjectMeta controller;
    if (value != nullptr) controller.annotations[std::string(api::kAnnotationStopDeletions)] = value;
    return stops_deletions(controller);
  };
  for (const char* on : {"true", "True", "1", "yes", "on", "please"}) EXPECT_TRUE(stops(on)) << on;
  for (const char* off : {"", "false", "False", "0", "no", "off"}) EXPECT_FALSE(stops(off)) << off;
  EXPECT_FALSE(stops(nullptr));
}

TEST_F(Doubt, MostMustBeReached) {
  add(4);
  const auto silence = [&](int index) {
    auto node = std::make_shared<slurm::Node>(*snapshot_.node(pod(index).hostname));
    node->state = {"DOWN", {"NOT_RESPONDING"}};
    snapshot_.nodes.insert_or_assign(node->name, node);
  };
  silence(0);
  silence(1);
  EXPECT_EQ(doubt(), "");
  silence(2);
  EXPECT_EQ(doubt(), "Slurm cannot reach 3 of 4 workers");
  pod(2).containers.clear();
  EXPECT_EQ(doubt(), "") << "its slurmd has not been started yet, and the record is an earlier one's";
}

}  // namespace
}  // namespace slinky
