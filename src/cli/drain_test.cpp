#include "cli/drain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/objects.hpp"
#include "cli/testing/objects.hpp"
#include "slinky/workers.hpp"

namespace cli {
namespace {

using core::Json;
using testing::ElementsAre;
using testing::HasSubstr;

const core::WallTime kNow = *core::parse_rfc3339("2026-01-02T03:00:00Z");
constexpr const char* kCordon = "nodeset.slinky.slurm.net/pod-cordon";

kube::PodPtr record(const Json& pod) {
  return pod_records({pod}).at(0);
}

DrainState state_of(const Json& pod) {
  return drain_state(said_of(*record(pod), nullptr));
}

std::string text_of(const Json& pod) {
  return drain_text(said_of(*record(pod), nullptr), kNow);
}

std::vector<std::string> selected(const std::vector<std::string>& words) {
  Json other = worker_object("gpu-0", {"Idle"});
  other["spec"]["nodeName"] = "kube-2";
  other["metadata"]["annotations"]["nodeset.slinky.slurm.net/registered"] = "g0";
  const auto found =
      select_workers(words, pod_records({worker_object("cpu-0", {"Idle"}), worker_object("cpu-1", {"Idle"}), other}));
  if (!found) return {found.error().message};
  std::vector<std::string> out;
  for (const kube::PodPtr& pod : *found) out.push_back(pod->meta.name);
  return out;
}

TEST(Drain, WorkersAreNamedByPodSlurmNodeHostlistOrKubernetesNode) {
  EXPECT_THAT(selected({"cpu-1"}), ElementsAre("cpu-1"));
  EXPECT_THAT(selected({"g0"}), ElementsAre("gpu-0"));
  EXPECT_THAT(selected({"cpu-[0-1]", "cpu-0"}), ElementsAre("cpu-0", "cpu-1"));
  EXPECT_THAT(selected({"node/kube-1"}), ElementsAre("cpu-0", "cpu-1"));
  EXPECT_THAT(selected({"kube-2"}), ElementsAre("gpu-0"));
  EXPECT_THAT(selected({"cpu-0", "cpu-7"}), ElementsAre(HasSubstr("cpu-7 is neither a worker")));
  EXPECT_THAT(selected({"node/none"}), ElementsAre(HasSubstr("no worker is on Kubernetes node none")));
}

TEST(Drain, APodsNameComesBeforeASlurmNodes) {
  const auto named = [](const char* pod, const char* slurm) {
    Json out = worker_object(pod, {"Idle"});
    out["metadata"]["annotations"]["nodeset.slinky.slurm.net/registered"] = slurm;
    return out;
  };
  const auto workers = pod_records({named("gpu-0", "a"), named("big-0", "gpu-0"), named("x-0", "same"), named("y-0", "same")});
  const auto one = select_workers({"gpu-0"}, workers);
  ASSERT_TRUE(one && one->size() == 1);
  EXPECT_EQ(one->front()->meta.name, "gpu-0");
  const auto two = select_workers({"same"}, workers);
  ASSERT_FALSE(two);
  EXPECT_THAT(two.error().message, HasSubstr("same is the Slurm node of several workers: x-0,y-0"));
}

TEST(Drain, IsOverWhenSlurmDrainsAndNothingRuns) {
  EXPECT_EQ(state_of(worker_object("a", {"Idle"})), DrainState::kAsked);
  EXPECT_EQ(state_of(worker_object("a", {})), DrainState::kNoNode);
  EXPECT_EQ(state_of(worker_object("a", {"Idle", "Drain", "Undrain"})), DrainState::kAsked);
  EXPECT_EQ(state_of(worker_object("a", {"Mixed", "Drain"})), DrainState::kDraining);
  EXPECT_EQ(state_of(worker_object("a", {"Idle", "Drain", "Completing"})), DrainState::kDraining);
  EXPECT_EQ(state_of(worker_object("a", {"Idle", "Drain"})), DrainState::kDrained);
  Json busy = worker_object("a", {"Idle", "Drain"});
  busy["metadata"]["labels"]["nodeset.slinky.slurm.net/pod-busy"] = "true";
  EXPECT_EQ(state_of(busy), DrainState::kDraining) << "a suspended job leaves the node idle";
}

TEST(Drain, AWorkerThatIsDownOrFailsIsNeverDrainedBySlurmAndRunsNothing) {
  EXPECT_EQ(state_of(worker_object("a", {"Down"})), DrainState::kOut);
  EXPECT_EQ(state_of(worker_object("a", {"Idle", "Fail"})), DrainState::kOut);
  EXPECT_EQ(state_of(worker_object("a", {"Mixed", "Fail"})), DrainState::kDraining);
  EXPECT_EQ(state_of(worker_object("a", {"Down", "Completing"})), DrainState::kDraining);
  EXPECT_EQ(text_of(worker_object("a", {"Down", "NotResponding"})),
            "is DOWN+NOT_RESPONDING in Slurm and runs nothing, which counts as drained");
}

TEST(Drain, AWorkerMayHaveNoNode) {
  EXPECT_EQ(state_of(worker_object("a", {"Unknown"}, slinky::missing_text(kNow))), DrainState::kNoNode);
  EXPECT_EQ(state_of(worker_object("a", {"Unknown"})), DrainState::kAsked) << "that is a state of Slurm, too";
  EXPECT_EQ(text_of(worker_object("a", {})), "has no node in Slurm");
}

using Verdict = DrainJudgement::Verdict;

/// Returns Slurm's answer about the node cpu-0. `job`: whether job 7 runs on the node.
SlurmFacts slurm_says(const char* base, std::set<std::string, std::less<>> flags, bool job = false) {
  SlurmFacts out;
  auto node = std::make_shared<slurm::Node>();
  node->name = "cpu-0";
  node->state = {base, std::move(flags)};
  out.nodes.push_back(node);
  if (!job) return out;
  auto runs = std::make_shared<slurm::Job>();
  runs->id = 7;
  runs->state = "RUNNING";
  runs->nodes = {"cpu-0"};
  out.jobs.push_back(runs);
  return out;
}

TEST(Drain, SlurmsOwnWordDecidesWhetherItIsOver) {
  const auto pod = record(worker_object("cpu-0", {"Idle", "Drain"}, "slurm-operator: drained by alice"));
  EXPECT_EQ(judge_drain(*pod, slurm_says("IDLE", {}), kNow).verdict, Verdict::kOpen) << "the pod shows an earlier drain";
  EXPECT_EQ(judge_drain(*pod, slurm_says("IDLE", {"DRAIN"}, true), kNow).verdict, Verdict::kOpen);
  EXPECT_EQ(judge_drain(*pod, slurm_says("IDLE", {"DRAIN"}), kNow).verdict, Verdict::kOver);
  EXPECT_EQ(judge_drain(*pod, slurm_says("DOWN", {}), kNow).verdict, Verdict::kOver);
  EXPECT_EQ(judge_drain(*pod, SlurmFacts{}, kNow).verdict, Verdict::kNoNode);
}

TEST(Drain, WithoutSlurmOnlyThisDrainsReasonIsBelieved) {
  SlurmFacts silent;
  silent.why_not = "no RestApi belongs to this cluster";
  const auto judged = [&](std::initializer_list<const char*> states, const char* reason) {
    Json pod = worker_object("cpu-0", states, reason);
    pod["metadata"]["annotations"]["nodeset.slinky.slurm.net/pod-cordon-reason"] = "drained by alice\nbad";
    return judge_drain(*record(pod), silent, kNow);
  };
  EXPECT_EQ(judged({"Idle", "Drain"}, "slurm-operator: drained by alice bad").verdict, Verdict::kOver);
  EXPECT_EQ(judged({"Idle", "Drain"}, "slurm-operator: Pod (hpc/cpu-0) was cordoned").verdict, Verdict::kOver);
  for (const char* other :
       {"slurm-operator: drained by bob", "slurm-operator: NodeSet hpc/cpu is being updated", "bad disk", ""}) {
    const auto judgement = judged({"Idle", "Drain"}, other);
    EXPECT_EQ(judgement.verdict, Verdict::kUnsure) << other;
    EXPECT_THAT(judgement.message, HasSubstr("Slurm cannot be queried: no RestApi"));
  }
  EXPECT_EQ(judged({"Down"}, "bad disk").verdict, Verdict::kUnsure);
  EXPECT_EQ(judged({}, "").verdict, Verdict::kNoNode);
}

TEST(Drain, ProgressTellsWhenTheLastJobEnds) {
  Json busy = worker_object("cpu-0", {"Mixed", "Drain"});
  busy["metadata"]["annotations"]["nodeset.slinky.slurm.net/pod-deadline"] = "2026-01-02T04:05:00Z";
  EXPECT_EQ(text_of(busy), "draining, its last job ends at the latest in 1h5m");
  busy["metadata"]["annotations"]["nodeset.slinky.slurm.net/pod-deadline"] = "9999-12-31T23:59:59Z";
  EXPECT_EQ(text_of(busy), "draining, a job without time limit runs there");
  EXPECT_EQ(text_of(worker_object("cpu-0", {"Idle", "Drain"})), "drained");
}

TEST(Drain, TheReasonNamesWhoDrained) {
  EXPECT_EQ(cordon_reason("alice", "bad disk"), "drained by alice: bad disk");
  EXPECT_EQ(cordon_reason("alice", ""), "drained by alice");
  EXPECT_EQ(cordon_reason("", "bad disk"), "drained with kubectl slurm: bad disk");
}

TEST(Drain, PatchesTouchTheSamePodAlone) {
  const kube::PodPtr pod = record(worker_object("cpu-0", {"Idle"}));
  const Json patch = drain_patch(*pod, "drained by alice");
  EXPECT_EQ(patch["metadata"]["uid"], "uid-cpu-0");
  EXPECT_EQ(patch["metadata"]["annotations"][kCordon], "true");
  EXPECT_EQ(patch["metadata"]["annotations"]["nodeset.slinky.slurm.net/pod-cordon-reason"], "drained by alice");
  EXPECT_TRUE(resume_patch(*pod)["metadata"]["annotations"][kCordon].is_null());
}

std::shared_ptr<kube::NodeRecord> host(bool cordoned = false, const char* taint = nullptr) {
  auto out = std::make_shared<kube::NodeRecord>();
  out->meta.name = "kube-1";
  out->unschedulable = cordoned;
  if (taint != nullptr) out->taints.push_back({taint, "", "NoSchedule"});
  return out;
}

ResumeJudgement judged(Json pod, bool cordoned, std::shared_ptr<kube::NodeRecord> on = host()) {
  if (cordoned) {
    pod["metadata"]["annotations"][kCordon] = "true";
    pod["metadata"]["annotations"]["nodeset.slinky.slurm.net/pod-cordon-reason"] = "drained by alice";
  }
  ResumeFacts facts;
  facts.host = std::move(on);
  facts.scontrol = "kubectl -n hpc exec slurm-controller-0 -c slurmctld -- scontrol";
  return judge_resume(*record(pod), facts);
}

TEST(Resume, TakesBackItsOwnDrain) {
  const auto judgement = judged(worker_object("cpu-0", {"Idle", "Drain"}, "slurm-operator: drained by alice"), true);
  EXPECT_TRUE(judgement.remove);
  EXPECT_FALSE(judgement.refused);
  EXPECT_EQ(judgement.message, "resumed");
  EXPECT_FALSE(judged(worker_object("cpu-0", {"Idle", "Drain"}, "slurm-operator: drained by alice"), false).refused)
      << "a second one, before the operator has seen the first";
}

TEST(Resume, LeavesSomebodyElsesDrainAndSaysWhoseItIs) {
  for (const bool cordoned : {false, true}) {
    const auto judgement = judged(worker_object("cpu-0", {"Idle", "Drain"}, "bad disk"), cordoned);
    EXPECT_EQ(judgement.remove, cordoned);
    EXPECT_TRUE(judgement.refused);
    EXPECT_THAT(judgement.message, HasSubstr("somebody else (bad disk)"));
    EXPECT_THAT(
        judgement.message,
        HasSubstr("kubectl -n hpc exec slurm-controller-0 -c slurmctld -- scontrol update nodename=cpu-0 state=resume"));
  }
  EXPECT_THAT(judged(worker_object("cpu-0", {"Idle", "Drain"}, "slurm-bridge: pods run there"), false).message,
              HasSubstr("by slurm-bridge"));
}

TEST(Resume, LeavesTheOperatorsOwnDrain) {
  const auto judgement =
      judged(worker_object("cpu-0", {"Mixed", "Drain"}, "slurm-operator: NodeSet hpc/cpu is being updated"), false);
  EXPECT_FALSE(judgement.remove);
  EXPECT_TRUE(judgement.refused);
  EXPECT_THAT(judgement.message, HasSubstr("NodeSet hpc/cpu is being updated"));
}

TEST(Resume, ACordonedKubernetesNodeKeepsItDrained) {
  const auto judgement =
      judged(worker_object("cpu-0", {"Idle", "Drain"}, "slurm-operator: Node (kube-1) was cordoned"), true, host(true));
  EXPECT_TRUE(judgement.remove);
  EXPECT_TRUE(judgement.refused);
  EXPECT_THAT(judgement.message, HasSubstr("kubectl uncordon kube-1"));
}

TEST(Resume, ATaintedKubernetesNodeKeepsItDrained) {
  const Json pod = worker_object("cpu-0", {"Idle", "Drain"}, "slurm-operator: drained by alice");
  const auto known = judged(pod, true, host(false, "karpenter.sh/disrupted"));
  EXPECT_TRUE(known.remove && known.refused);
  EXPECT_THAT(known.message, HasSubstr("has the taint karpenter.sh/disrupted"));
  EXPECT_FALSE(judged(pod, true, host(false, "nvidia.com/gpu")).refused);
  // example.com/goes is a taint for which the operator was configured to drain workers.
  const Json other = worker_object("cpu-0", {"Idle", "Drain"}, "slurm-operator: Node (kube-1) has the taint example.com/goes");
  EXPECT_TRUE(judged(other, true, host(false, "example.com/goes")).refused);
  EXPECT_FALSE(judged(other, true, host()).refused) << "that is over";
}

TEST(Resume, AnotherRequestForACordonIsNamed) {
  Json pod = worker_object("cpu-0", {"Idle", "Drain"}, "slurm-operator: drained by alice");
  pod["metadata"]["annotations"]["nodeset.slinky.slurm.net/pod-cordon-requested"] = "true";
  for (const bool cordoned : {true, false}) {
    const auto judgement = judged(pod, cordoned);
    EXPECT_EQ(judgement.remove, cordoned);
    EXPECT_TRUE(judgement.refused);
    EXPECT_THAT(judgement.message, HasSubstr("annotate pod cpu-0 nodeset.slinky.slurm.net/pod-cordon-requested-"));
  }
}

TEST(Resume, AWorkerThatGoesStaysDrained) {
  for (const char* why : {"NodeSet hpc/cpu is being updated", "NodeSet hpc/cpu was scaled in"}) {
    const auto judgement = judged(worker_object("cpu-0", {"Idle", "Drain"}, std::string("slurm-operator: ") + why), true);
    EXPECT_TRUE(judgement.remove && judgement.refused);
    EXPECT_THAT(judgement.message, HasSubstr(why));
  }
  Json ends = worker_object("cpu-0", {"Idle"});
  ends["metadata"]["deletionTimestamp"] = "2026-01-02T03:00:00Z";
  EXPECT_THAT(judged(ends, true).message, HasSubstr("its pod is being deleted"));
}

TEST(Resume, WhatIsNotKnownIsNotCalledResumed) {
  Json pod = worker_object("cpu-0", {"Idle", "Drain"}, "slurm-operator: drained by alice");
  pod["metadata"]["annotations"][kCordon] = "true";
  pod["metadata"]["annotations"]["nodeset.slinky.slurm.net/pod-cordon-reason"] = "drained by alice";
  ResumeFacts facts;
  facts.host_unread = "nodes is forbidden";
  EXPECT_THAT(judge_resume(*record(pod), facts).message,
              HasSubstr("whether Kubernetes node kube-1 is cordoned, which would keep it drained, cannot be read"));
  facts = {};
  facts.scales_in = "cpu";
  EXPECT_THAT(judge_resume(*record(pod), facts).message, HasSubstr("NodeSet cpu is being scaled in"));
}

TEST(Resume, OfAWorkerThatServesIsNothing) {
  const auto judgement = judged(worker_object("cpu-0", {"Idle"}), false);
  EXPECT_FALSE(judgement.remove || judgement.refused);
  EXPECT_EQ(judgement.message, "is not drained");
}

}  // namespace
}  // namespace cli
