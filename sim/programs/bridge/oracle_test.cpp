#include "sim/programs/bridge/oracle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bridge/common/names.hpp"
#include "sim/base/loop.hpp"
#include "sim/kube/sim_kube.hpp"
#include "sim/programs/bridge/program.hpp"

namespace sim {
namespace {

using core::Json;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace res = kube::resources;

constexpr const char* kConf =
    "ClusterName=c\nSlurmctldHost=ctld(127.0.0.1)\nMaxNodeCount=4\nSlurmUser=slurm\nPartitionName=all Nodes=ALL Default=YES\n";

/// The tests do by hand what the bridge would do.
struct BridgeOracleTest : testing::Test {
  SimLoop loop{1};
  SimKube kube{loop, loop.random().fork()};
  SimSlurm slurm{loop, loop.random(), [] { return std::string(kConf); }};
  Oracles all{loop, kube.api()};
  BridgeOracle oracle{all, loop, kube.api(), slurm, "here"};

  BridgeOracleTest() {
    kube.add_namespace("default");
    EXPECT_TRUE(slurm.start());
    for (const char* name : {"n1", "n2"}) {
      kube.nodes().add_node(name);
      taint(name);
      EXPECT_EQ(slurm.create_nodes(std::string("NodeName=") + name + " CPUs=4 RealMemory=8000 State=External"),
                SlurmErrno::kSuccess);
    }
  }

  /// Adds the bridge's taint to a node. The oracle reads only the key of the taint.
  void taint(const std::string& node) {
    kube.api().modify(res::kNode, {"", node}, [](Json& one) {
      one["spec"]["taints"] = Json::array({{{"key", bridge::kTaintManagedNode}, {"effect", "PreferNoSchedule"}}});
    });
  }
  void label(const std::string& node, const Json& value) {
    kube.api().modify(res::kNode, {"", node},
                      [&](Json& one) { one["metadata"]["labels"][std::string(bridge::kLabelExternalNode)] = value; });
  }
  std::string make_pod(const std::string& name) {
    Json pod = bridge_pod(name, "1", "100Mi");
    pod["metadata"]["namespace"] = "default";
    const auto made = kube.api().create(res::kPod, pod);
    EXPECT_TRUE(made);
    return core::get_string(*made, {"metadata", "uid"});
  }
  SimSlurm::Submission submit(const std::string& pods, const std::string& instance = "here", std::int64_t memory = 100) {
    JobRequest request;
    request.memory = memory;
    request.admin_comment =
        R"({"owner": "slurm-bridge", "instance": ")" + instance + R"(", "key": "k", "pods": [)" + pods + "]}";
    const auto made = slurm.submit_external(request);
    loop.run_for(2s);
    return made;
  }
  std::int64_t job_for(const std::string& uid) { return submit(R"({"uid": ")" + uid + "\"}").id; }
  std::string node_of(std::int64_t job) { return slurm.jobs().at(job).nodes.at(0); }
  void place(const std::string& name, std::int64_t job, const std::string& node) {
    kube.api().modify(res::kPod, {"default", name}, [&](Json& pod) {
      pod["spec"].erase("schedulingGates");
      const auto found = slurm.jobs().find(job);
      const std::int64_t submitted = found == slurm.jobs().end() ? 1 : found->second.submitted_at;
      pod["spec"]["tolerations"].push_back(
          {{"key", bridge::kTolerationPlacedFor}, {"value", std::to_string(job) + "." + std::to_string(submitted)}});
      Json term;
      term["matchFields"].push_back({{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({node})}});
      pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"].push_back(
          term);
    });
    loop.run_for(10s);
  }
  void end(const std::string& name, const char* reason) {
    kube.api().modify(
        res::kPod, {"default", name},
        [&](Json& pod) {
          pod["status"]["conditions"].push_back({{"type", bridge::kConditionEnded}, {"status", "True"}, {"reason", reason}});
        },
        {}, "status");
  }
  void look_for(core::Duration time, bool fair) {
    for (core::Duration passed{0}; passed < time; passed += core::Duration{1000}) {
      loop.run_for(1s);
      oracle.look(fair);
    }
  }
  void request(const char* method, const std::string& path, const Json& body = nullptr) {
    net::HttpRequest out;
    out.method = method;
    out.target = "/slurm/v0.0.45/" + path;
    if (!body.is_null()) out.body = body.dump();
    oracle.request(out);
  }
};

TEST_F(BridgeOracleTest, APodPlacedAsItsJobSaysIsFine) {
  const std::int64_t job = job_for(make_pod("p"));
  EXPECT_THAT(oracle.unmet(), ElementsAre(HasSubstr("waits, though")));
  place("p", job, node_of(job));
  EXPECT_THAT(oracle.unmet(), IsEmpty());
  look_for(10min, true);
  EXPECT_THAT(all.violations(), IsEmpty());
}

TEST_F(BridgeOracleTest, JobsOfOthersAreNotTouched) {
  const std::int64_t own = job_for(make_pod("p"));
  const std::int64_t other = submit("", "elsewhere").id;
  const std::int64_t users = slurm.submit({.user = "u"});
  request("DELETE", "job/" + std::to_string(own));
  request("POST", "job/" + std::to_string(own), {{"comment", "x"}});
  request("GET", "job/" + std::to_string(users));
  EXPECT_THAT(all.violations(), IsEmpty());
  request("DELETE", "job/" + std::to_string(other));
  request("POST", "job/" + std::to_string(users), {{"comment", "x"}});
  request("DELETE", "jobs/", {{"jobs", {std::to_string(own), std::to_string(users)}}});
  EXPECT_THAT(all.violations(), ElementsAre(HasSubstr("cancels"), HasSubstr("changes"), HasSubstr("ends")));
}

TEST_F(BridgeOracleTest, DrainsOfOthersAreNotTouched) {
  const auto update = [&](const char* state, const char* reason, const char* user) {
    SimNodeUpdate out;
    out.state = state;
    if (*reason != 0) out.reason = reason;
    (void)slurm.update_node("n1", out, user);
  };
  update("DRAIN", "slurm-bridge: cordoned", "slurm");
  update("UNDRAIN", "", "slurm");
  update("DRAIN", "maintenance", "admin");
  update("DRAIN", "slurm-bridge: cordoned; maintenance", "slurm");
  EXPECT_THAT(all.violations(), IsEmpty());
  update("DRAIN", "maintenance", "admin");
  update("DRAIN", "slurm-bridge: cordoned", "slurm");
  update("DRAIN", "maintenance", "admin");
  update("UNDRAIN", "", "slurm");
  update("DOWN", "slurm-bridge: gone", "slurm");
  EXPECT_THAT(all.violations(), ElementsAre(HasSubstr("replaces the reason"), HasSubstr("frees n1"), HasSubstr("DOWN")));
}

TEST_F(BridgeOracleTest, APodIsPlacedOnlyForItsOwnRunningJob) {
  const std::int64_t job = job_for(make_pod("p")), other = submit("", "elsewhere").id;
  const std::string node = node_of(job);
  make_pod("q");
  place("q", job, node);
  make_pod("r");
  place("r", other, node);
  place("p", job, node == "n1" ? "n2" : "n1");
  const std::string uid = make_pod("s");
  const std::int64_t ended = job_for(uid);
  slurm.cancel(ended);
  loop.run_for(30s);
  place("s", ended, node_of(ended));
  place("s", 99, "n1");
  EXPECT_THAT(all.violations(), ElementsAre(HasSubstr("not its own"), HasSubstr("not its own"), HasSubstr("does not hold"),
                                            HasSubstr("which is CANCELLED")));
}

TEST_F(BridgeOracleTest, APodIsNotPlacedBesideOneWithoutItsJob) {
  const std::int64_t first = job_for(make_pod("p"));
  const std::string node = node_of(first);
  place("p", first, node);
  slurm.cancel(first);
  loop.run_for(30s);
  SimNodeUpdate drain;
  drain.state = "DRAIN";
  (void)slurm.update_node(node == "n1" ? "n2" : "n1", drain, "admin");
  const std::int64_t second = job_for(make_pod("q"));
  ASSERT_EQ(node_of(second), node);
  place("q", second, node);
  EXPECT_THAT(all.violations(), ElementsAre(HasSubstr("still runs without its job")));
}

TEST_F(BridgeOracleTest, WhatIsWrongForLongerThanTheLimitIsToldIfItWasFair) {
  const std::int64_t job = job_for(make_pod("p"));
  place("p", job, node_of(job));
  submit(R"({"uid": "nobody"})");
  slurm.cancel(job);
  EXPECT_THAT(oracle.unmet(), testing::UnorderedElementsAre(HasSubstr("without its job"), HasSubstr("without a pod")));
  look_for(BridgeOracle::kLimit * 2, false);
  EXPECT_THAT(all.violations(), IsEmpty());
  look_for(BridgeOracle::kLimit + 5s, true);
  EXPECT_THAT(all.violations(), testing::UnorderedElementsAre(HasSubstr("without its job"), HasSubstr("without a pod")));
}

TEST_F(BridgeOracleTest, OnePodHasOneJob) {
  const std::string uid = make_pod("p");
  job_for(uid);
  job_for(uid);
  EXPECT_THAT(oracle.unmet(), testing::Contains(HasSubstr("are for one pod")));
}

TEST_F(BridgeOracleTest, AGangIsPlacedAsAWhole) {
  const std::string p = make_pod("p"), q = make_pod("q");
  const std::int64_t job = submit(R"({"uid": ")" + p + R"("}, {"uid": ")" + q + "\"}").id;
  place("p", job, node_of(job));
  EXPECT_THAT(oracle.unmet(), testing::Contains(HasSubstr("are placed, and 1 wait")));
  place("q", job, node_of(job));
  EXPECT_THAT(oracle.unmet(), IsEmpty());
  EXPECT_THAT(all.violations(), ElementsAre(HasSubstr("has in their job"))) << "each has a node of its own";
}

TEST_F(BridgeOracleTest, APodThatTookThePlaceOfAnotherIsOneOfTheJob) {
  for (const char* name : {"p", "q", "r"}) {
    make_pod(name);
    const Json label{{std::string(bridge::kLabelPodGroup), *name == 'r' ? "other" : "g"}};
    kube.api().modify(res::kPod, {"default", name}, [&](Json& pod) { pod["metadata"]["labels"] = label; });
  }
  const std::int64_t job = submit(R"({"uid": "gone"}], "group": {"ns": "default", "name": "podgroup/g"}, "more": [)").id;
  place("p", job, node_of(job));
  EXPECT_THAT(all.violations(), IsEmpty());
  EXPECT_THAT(oracle.unmet(), IsEmpty()) << "the job has a pod";
  place("r", job, node_of(job));
  EXPECT_THAT(all.violations(), ElementsAre(HasSubstr("not its own")));
}

TEST_F(BridgeOracleTest, APodWhoseJobIsRefusedIsNotEnded) {
  const std::string uid = make_pod("p");
  ASSERT_EQ(submit(R"({"uid": ")" + uid + "\"}", "here", 99999).error, SlurmErrno::kNodeConfiguration);
  end("p", "Cancelled");
  EXPECT_THAT(all.violations(), ElementsAre(HasSubstr("Slurm only refused its job")));
}

TEST_F(BridgeOracleTest, APodWhoseJobIsLostWithTheStateOfSlurmctldStays) {
  const std::int64_t job = job_for(make_pod("p"));
  const std::string node = node_of(job);
  place("p", job, node);
  slurm.stop();
  oracle.state_lost();
  slurm.lose_state();
  EXPECT_TRUE(slurm.start());
  EXPECT_EQ(slurm.create_nodes("NodeName=" + node + " CPUs=4 RealMemory=8000 State=External"), SlurmErrno::kSuccess);
  kube.nodes().delete_node(node == "n1" ? "n2" : "n1");
  EXPECT_THAT(oracle.stranded(), ElementsAre("p"));
  EXPECT_EQ(job_for(make_pod("q")), job) << "numbers begin anew";
  EXPECT_THAT(oracle.unmet(), IsEmpty()) << "q waits for p";
  end("p", "Gone");
  EXPECT_THAT(all.violations(), ElementsAre(HasSubstr("only lost its job")));
  place("q", job, node);
  EXPECT_THAT(all.violations(), testing::Contains(HasSubstr("still runs without its job")));
}

/// The bridge possibly does not know yet that slurmctld has lost the job.
TEST_F(BridgeOracleTest, APodLeavesBeforeItsJobEndsThoughTheJobIsLost) {
  const std::int64_t job = job_for(make_pod("p"));
  place("p", job, node_of(job));
  oracle.state_lost();
  end("p", "TimedOut");
  EXPECT_THAT(all.violations(), IsEmpty());
}

TEST_F(BridgeOracleTest, APodThatSomebodyElseFreedIsTheirs) {
  oracle.freed(make_pod("p"));
  kube.api().modify(res::kPod, {"default", "p"}, [](Json& pod) { pod["spec"].erase("schedulingGates"); });
  loop.run_for(10s);
  EXPECT_THAT(all.violations(), IsEmpty());
  EXPECT_THAT(oracle.unmet(), IsEmpty());
}

TEST_F(BridgeOracleTest, NodesOfOthersAreNotTouched) {
  const std::string line = "NodeName=n3 CPUs=4 RealMemory=8000 State=External Features=";
  request("POST", "new/node/", {{"node_conf", line + "slurm-bridge/here/1"}});
  EXPECT_THAT(all.violations(), IsEmpty());
  ASSERT_EQ(slurm.create_nodes(line + "slurm-bridge/here/1"), SlurmErrno::kSuccess);
  ASSERT_EQ(slurm.create_nodes("NodeName=n4 State=External Features=slurm-bridge/elsewhere/1"), SlurmErrno::kSuccess);
  loop.run_for(1min);
  request("POST", "new/node/", {{"node_conf", line + "slurm-bridge/here/1"}});
  SimNodeUpdate update;
  update.features = {"slurm-bridge/here/1", "blue"};
  (void)slurm.update_node("n3", update, "slurm");
  (void)slurm.update_node("n1", update, "slurm");
  update.features = update.active_features = {"blue"};
  (void)slurm.update_node("n3", update, "slurm");
  EXPECT_THAT(all.violations(), ElementsAre(HasSubstr("creates node n3"), HasSubstr("changes the features of n1"),
                                            HasSubstr("removes its own mark")));
}

TEST_F(BridgeOracleTest, OnlyNodesOfTheBridgeThatItDrainedAloneAreDeleted) {
  const auto make = [&](const char* name, const char* mark, const char* state, const char* reason) {
    EXPECT_EQ(slurm.create_nodes(std::string("NodeName=") + name + " State=External Features=" + mark), SlurmErrno::kSuccess);
    SimNodeUpdate update;
    update.state = state;
    update.reason = reason;
    (void)slurm.update_node(name, update, "admin");
    (void)slurm.delete_node(name, "slurm");
  };
  make("n3", "slurm-bridge/here/1", "DRAIN", "slurm-bridge: gone");
  EXPECT_THAT(all.violations(), IsEmpty());
  make("n3", "slurm-bridge/elsewhere/1", "DRAIN", "slurm-bridge: gone");
  make("n3", "slurm-bridge/here/1", "DRAIN", "maintenance");
  make("n3", "slurm-bridge/here/1", "UNDRAIN", "");
  EXPECT_THAT(all.violations(), ElementsAre(HasSubstr("which it has not created"),
                                            HasSubstr("somebody else holds: maintenance"), HasSubstr("somebody else holds: ")));
}

TEST_F(BridgeOracleTest, NodesAreToBeAsTheyAreDeclared) {
  const auto set = [&](const char* state, const char* reason) {
    SimNodeUpdate update;
    update.state = state;
    if (*reason != 0) update.reason = reason;
    (void)slurm.update_node("n1", update, "admin");
  };
  const auto cordon = [&](bool cordoned) {
    kube.api().modify(res::kNode, {"", "n1"}, [&](Json& node) { node["spec"]["unschedulable"] = cordoned; });
  };
  EXPECT_THAT(oracle.unmet(), IsEmpty());
  set("DRAIN", "slurm-bridge: cordoned");
  EXPECT_THAT(oracle.unmet(), ElementsAre(HasSubstr("takes pods, and is drained")));
  set("DRAIN", "maintenance");
  cordon(true);
  EXPECT_THAT(oracle.unmet(), IsEmpty());
  set("RESUME", "");
  EXPECT_THAT(oracle.unmet(), ElementsAre(HasSubstr("takes no pods")));
  cordon(false);
  label("n1", "true");
  EXPECT_THAT(oracle.unmet(), IsEmpty());
  (void)slurm.delete_node("n1", "admin");
  EXPECT_THAT(oracle.unmet(), ElementsAre(HasSubstr("Slurm does not have it")));
  label("n1", "false");
  EXPECT_THAT(oracle.unmet(), ElementsAre(HasSubstr("has the taint, and Slurm does not have it")));
  kube.nodes().add_node("n3");
  ASSERT_EQ(slurm.create_nodes("NodeName=n3 State=External Features=slurm-bridge/here/1"), SlurmErrno::kSuccess);
  taint("n1");
  kube.nodes().delete_node("n1");
  EXPECT_THAT(oracle.unmet(), ElementsAre(HasSubstr("n3 is not wanted in Slurm any more, and takes jobs")));
  label("n3", "true");
  EXPECT_THAT(oracle.unmet(), ElementsAre(HasSubstr("n3 is Slurm's, and has no taint")));
  taint("n3");
  EXPECT_THAT(oracle.unmet(), IsEmpty());
  JobRequest request;
  request.constraints = "slurm-bridge/here/1";
  const std::int64_t job = slurm.submit_external(request).id;
  loop.run_for(2s);
  EXPECT_TRUE(slurm.suspend(job));
  EXPECT_TRUE(slurm.cancel(job));
  EXPECT_THAT(oracle.unmet(), ElementsAre(HasSubstr("n3 gets no jobs, because Slurm waits")));
}

}  // namespace
}  // namespace sim
