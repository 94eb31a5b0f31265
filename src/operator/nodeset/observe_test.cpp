#include "operator/nodeset/observe.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kube/cache/record.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/parts.hpp"
#include "slinky/keys.hpp"
#include "slinky/local_wiring.hpp"

namespace op::nodeset {
namespace {

using core::Json;

class Reader final : public kube::Recorder {
 public:
  kube::Named<kube::SecretRecord> secret(const kube::Key& key) override {
    asked.push_back(key.str());
    return answer;
  }
  kube::Named<kube::Object> object(const kube::Resource&, const kube::Key&) override { return {}; }
  kube::Named<kube::MetadataRecord> metadata(const kube::Resource&, const kube::Key&) override { return {}; }
  kube::Named<kube::SecretRecord> answer;
  std::vector<std::string> asked;
};

Json document(const char* kind, const char* name, Json more = Json::object()) {
  Json out{
      {"kind", kind},
      {"metadata", {{"name", name}, {"namespace", "default"}, {"uid", std::string(name) + "-uid"}, {"resourceVersion", "1"}}}};
  out.merge_patch(more);
  return out;
}

Json worker(const char* name, const char* owner_uid) {
  Json out = document("Pod", name, {{"spec", {{"nodeName", "kube-1"}, {"hostname", name}}}});
  out["metadata"]["labels"] = {
      {"app.kubernetes.io/name", "slurmd"}, {"app.kubernetes.io/instance", "cpu"}, {"slinky.slurm.net/cluster", "demo"}};
  if (*owner_uid != '\0') {
    out["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "slinky.slurm.net/v1beta1"},
                                                       {"kind", "NodeSet"},
                                                       {"name", "cpu"},
                                                       {"uid", owner_uid},
                                                       {"controller", true}}});
  }
  return out;
}

class ObserveNodeSet : public ::testing::Test {
 protected:
  explicit ObserveNodeSet(bool nodes = true) : nodes_(nodes) {}

  template <class Record>
  static void fill(kube::Cache<Record>& cache, const std::vector<Json>& documents) {
    std::vector<std::shared_ptr<const Record>> records;
    for (const Json& item : documents) records.push_back(kube::record_from_json<Record>(item).value());
    cache.replace(std::move(records), "10");
  }

  void fill_all() {
    const Json spec{{"spec", {{"controllerRef", {{"name", "demo"}}}, {"replicas", 1}}}};
    fill(set_.nodesets, {document("NodeSet", "cpu", spec)});
    fill(set_.controllers,
         {document("Controller", "demo", {{"spec", {{"deletionPolicy", "Drain"}, {"persistence", {{"enabled", false}}}}}})});
    fill(set_.pods, {worker("cpu-0", "cpu-uid"), worker("cpu-1", "another"), worker("cpu-2", ""), worker("other", "")});
    fill(set_.controller_revisions, {});
    fill(set_.claims, {});
    fill(set_.config_maps, {});
    Json node{{"kind", "Node"}, {"metadata", {{"name", "kube-1"}}}, {"spec", {{"unschedulable", true}}}};
    node["metadata"]["annotations"][api::kAnnotationNodeCordonReason] = "fan";
    node["status"]["conditions"] = Json::array({{{"type", "Ready"}, {"status", "True"}}});
    fill(set_.nodes, {node});
  }

  std::shared_ptr<const Observed> observe(core::MonoTime mono = {}) {
    run::Controller& base = controller_;
    return std::static_pointer_cast<const Observed>(base.observe({"default", "cpu"}, reader_, {{}, mono, {}, {}}));
  }

  /// Returns the Slurm clusters that the plan waits on.
  std::set<slurm::ClusterKey> waits_on() {
    const auto observed = observe();
    const run::Controller& base = controller_;
    return base.plan(observed.get()).waits_on();
  }

  bool nodes_;
  Reader reader_;
  std::map<std::string, slurm::SnapshotPtr> snapshots_;
  LocalWiring wiring_{[this](const slurm::ClusterKey& cluster) { return snapshots_[cluster]; }, nodes_};
  Caches set_{wiring_};
  NodeSetController controller_{wiring_, {.cluster_domain = "example.org", .propagated_conditions = {"GPU", "CPU"}}};
};

class ObserveWithoutKubernetesNodes : public ObserveNodeSet {
 protected:
  ObserveWithoutKubernetesNodes() : ObserveNodeSet(false) {}
};

/// An unknown host does not count as lost: if the operator cannot read Kubernetes nodes, it has no evidence that a host is
/// silent or gone, and does not see cordons.
TEST_F(ObserveWithoutKubernetesNodes, ConcludesNothingOfHosts) {
  fill_all();
  set_.nodes = {};
  const auto seen = observe();
  ASSERT_NE(seen, nullptr) << "it does not wait for a cache that nothing feeds";
  ASSERT_EQ(seen->slots.size(), 1U);
  EXPECT_FALSE(seen->slots[0].host_lost());
  EXPECT_FALSE(seen->slots[0].unplaced());
  EXPECT_FALSE(seen->slots[0].kube_cordon());
  fill(set_.pods, {});
  EXPECT_FALSE(observe()->seen.gone.at("cpu-0").host_gone);
}

TEST_F(ObserveWithoutKubernetesNodes, BindsNoWorkersToThem) {
  fill_all();
  set_.nodes = {};
  Json bound = set_.nodesets.find({"default", "cpu"})->body;
  bound["spec"]["scalingMode"] = "DaemonSet";
  fill(set_.nodesets, {bound});
  const Aim aim = choose_goal(*observe());
  EXPECT_EQ(aim.goal, Goal::kHold);
  ASSERT_EQ(aim.problems.size(), 1U);
  EXPECT_EQ(aim.problems[0].reason, "KubernetesNodesNotReadable");
}

TEST_F(ObserveNodeSet, SeesTheKubernetesNodesAsPlacesForWorkers) {
  fill_all();
  EXPECT_TRUE(observe()->hosts.empty()) << "places have numbers";
  const Json spec{{"spec", {{"controllerRef", {{"name", "demo"}}}, {"scalingMode", "DaemonSet"}}}};
  fill(set_.nodesets, {document("NodeSet", "cpu", spec)});
  auto seen = observe();
  ASSERT_TRUE(seen->hosts.contains("kube-1"));
  EXPECT_TRUE(seen->hosts.at("kube-1").wanted);
  EXPECT_EQ(seen->hosts.at("kube-1").slurm_node, "kube-1");
  EXPECT_FALSE(seen->no_kube_nodes);
  EXPECT_TRUE(seen->rivals.empty());
  // Two NodeSets should have a worker on the same Kubernetes node. The NodeSet that already has workers takes precedence, even
  // if it has none on that node yet.
  Json other = document("NodeSet", "gpu", spec);
  Json theirs = worker("gpu-0", "gpu-uid");
  theirs["metadata"]["labels"][std::string(api::kLabelInstance)] = "gpu";
  fill(set_.nodesets, {document("NodeSet", "cpu", spec), other});
  fill(set_.pods, {theirs});
  seen = observe();
  ASSERT_EQ(seen->rivals.size(), 1U);
  EXPECT_TRUE(seen->rivals[0].takes("kube-1"));
  fill(set_.nodes, {});
  EXPECT_TRUE(observe()->no_kube_nodes);
}

TEST_F(ObserveNodeSet, HasNothingToDoForOneThatIsGone) {
  fill_all();
  fill(set_.nodesets, {});
  const auto seen = observe();
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen->object, nullptr);
  const plan::Plan plan = static_cast<const run::Controller&>(controller_).plan(seen.get());
  EXPECT_TRUE(plan.empty());
  EXPECT_FALSE(plan.wake());
}

TEST_F(ObserveNodeSet, SeesItsOwnAndTellsOrphans) {
  fill_all();
  const auto seen = observe();
  ASSERT_EQ(seen->pods.size(), 1U);
  EXPECT_EQ(seen->pods[0]->meta.name, "cpu-0");
  ASSERT_EQ(seen->orphans.size(), 2U);
  EXPECT_EQ(seen->orphans[0]->meta.name, "cpu-1") << "its owner has our name and another uid, so it is gone";
  EXPECT_EQ(seen->orphans[1]->meta.name, "cpu-2");
  EXPECT_EQ(seen->nodes.at("kube-1"), (KubeNode{true, "fan"}));
  EXPECT_EQ(seen->cluster_domain, "example.org");
  EXPECT_EQ(seen->nodeset.spec.replicas, 1);
}

TEST_F(ObserveNodeSet, SeesWhatIsSaidOfAKubernetesNode) {
  fill_all();
  const auto see = [&](Json taints, Json conditions) {
    Json node{{"kind", "Node"}, {"metadata", {{"name", "kube-1"}}}, {"spec", {{"taints", std::move(taints)}}}};
    node["status"]["conditions"] = std::move(conditions);
    fill(set_.nodes, {node});
    return observe()->nodes.at("kube-1");
  };
  const auto taint = [](const char* key) { return Json{{"key", key}, {"effect", "NoSchedule"}}; };
  EXPECT_EQ(see({taint("x"), taint("karpenter.sh/disrupted")}, {}).goes, "karpenter.sh/disrupted");
  EXPECT_EQ(see(Json::array({taint("ToBeDeletedByClusterAutoscaler")}), {}).goes, "ToBeDeletedByClusterAutoscaler");
  EXPECT_EQ(see({taint("DeletionCandidateOfClusterAutoscaler"), taint("node.kubernetes.io/unschedulable")}, {}).goes, "");
  const auto condition = [](const char* type, const char* status) {
    return Json{{"type", type}, {"status", status}, {"reason", std::string("Bad") + type}, {"message", "broken"}};
  };
  EXPECT_EQ(see(Json::array(),
                {condition("Ready", "True"), condition("CPU", "True"), condition("Fan", "True"), condition("GPU", "True")})
                .troubles,
            "(BadGPU: broken); (BadCPU: broken)");
  EXPECT_EQ(see(Json::array(), {condition("Ready", "True"), condition("CPU", "False")}).troubles, "");
}

TEST_F(ObserveNodeSet, SeesItsRevisionsAndThoseThatANodeSetOfItsNameLeft) {
  fill_all();
  const auto revision = [](const char* name, const char* owner_uid) {
    Json out = worker(name, owner_uid);
    out["kind"] = "ControllerRevision";
    return out;
  };
  fill(set_.controller_revisions, {revision("cpu-a", "cpu-uid"), revision("cpu-b", "another"), revision("cpu-c", "")});
  const auto seen = observe();
  ASSERT_EQ(seen->revisions.size(), 2U);
  EXPECT_EQ(seen->revisions[0]->meta.name, "cpu-a");
  EXPECT_EQ(seen->revisions[1]->meta.name, "cpu-c");
}

TEST_F(ObserveNodeSet, KnowsTheNamesOfTheOtherNodeSets) {
  fill_all();
  const auto nodeset = [](const char* name, const char* controller) {
    return document("NodeSet", name, {{"spec", {{"controllerRef", {{"name", controller}}}}}});
  };
  Json renamed = nodeset("b", "demo");
  renamed["spec"]["template"]["spec"]["hostname"] = "cpu-1-";
  fill(set_.nodesets, {nodeset("cpu", "demo"), nodeset("a", "demo"), renamed, nodeset("c", "other")});
  EXPECT_EQ(observe()->nodeset_names, (std::set<std::string, std::less<>>{"a", "cpu-1"}));
}

TEST_F(ObserveNodeSet, AnOrphanOfAnotherClusterIsLeftAlone) {
  fill_all();
  Json other = worker("cpu-3", ""), unlabelled = worker("cpu-4", "");
  other["metadata"]["labels"]["slinky.slurm.net/cluster"] = "another";
  unlabelled["metadata"]["labels"].erase("slinky.slurm.net/cluster");
  fill(set_.pods, {worker("cpu-2", ""), other, unlabelled});
  const auto seen = observe();
  ASSERT_EQ(seen->orphans.size(), 1U);
  EXPECT_EQ(seen->orphans[0]->meta.name, "cpu-2");
  ASSERT_EQ(seen->unmanaged.size(), 2U);
}

TEST_F(ObserveNodeSet, AWorkerThatSomebodyGaveAnotherInstanceIsLeftAlone) {
  fill_all();
  Json apart = worker("cpu-1", "cpu-uid");
  apart["metadata"]["labels"]["app.kubernetes.io/instance"] = "debug";
  fill(set_.pods, {worker("cpu-0", "cpu-uid"), apart});
  const auto seen = observe();
  EXPECT_EQ(seen->pods.size(), 1U);
  ASSERT_EQ(seen->unmanaged.size(), 1U);
  EXPECT_EQ(seen->unmanaged[0]->meta.name, "cpu-1");
}

TEST_F(ObserveNodeSet, KnowsItsStatusThoughItsSpecCannotBeRead) {
  fill_all();
  Json broken = document("NodeSet", "cpu", {{"spec", {{"controllerRef", {{"name", "demo"}}}, {"replicas", "many"}}}});
  broken["status"] = {{"observedGeneration", 7}};
  fill(set_.nodesets, {broken});
  const auto seen = observe();
  EXPECT_NE(seen->invalid, "");
  EXPECT_EQ(seen->nodeset.status.observed_generation, 7);
}

TEST_F(ObserveNodeSet, RemembersSinceWhenItsPodsAreGone) {
  const auto at = [](int ms) { return core::MonoTime{core::Duration{ms}}; };
  fill_all();
  fill(set_.pods, {});
  EXPECT_FALSE(observe(at(1))->seen.podless_since) << "it was not deleted: more may come";
  Json deleted = document("NodeSet", "cpu", {{"spec", {{"controllerRef", {{"name", "demo"}}}}}});
  deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  fill(set_.nodesets, {deleted});
  fill(set_.pods, {worker("cpu-0", "cpu-uid")});
  EXPECT_FALSE(observe(at(2))->seen.podless_since);
  fill(set_.pods, {worker("cpu-1", "another")});
  EXPECT_EQ(observe(at(3))->seen.podless_since, at(3));
  EXPECT_EQ(observe(at(4))->seen.podless_since, at(3));
  EXPECT_FALSE(waits_on().empty());
  fill(set_.nodesets, {});
  EXPECT_NE(observe(at(5)), nullptr);
  fill(set_.nodesets, {deleted});
  EXPECT_EQ(observe(at(6))->seen.podless_since, at(6)) << "another of that name";
}

TEST_F(ObserveNodeSet, KnowsItsControllerAndWhetherTheKeyIsThere) {
  fill_all();
  auto seen = observe();
  ASSERT_TRUE(seen->controller);
  EXPECT_EQ(seen->controller->endpoint.str(), "demo-controller.default:6817");
  EXPECT_TRUE(seen->controller->drain_on_deletion);
  EXPECT_TRUE(seen->controller->state_since);
  EXPECT_EQ(seen->controller->key, kube::Presence::kUnknown);
  EXPECT_EQ(reader_.asked, (std::vector<std::string>{"default/demo-keyring", "default/demo-slurm-key"}));

  auto secret = std::make_shared<kube::SecretRecord>();
  reader_.answer = {kube::Presence::kPresent, secret};
  EXPECT_EQ(observe()->controller->key, kube::Presence::kAbsent);
  secret->sizes["slurm.key"] = "3";
  EXPECT_EQ(observe()->controller->key, kube::Presence::kUnknown) << "there is something to copy";
  secret->meta.annotations[std::string(api::kAnnotationSlurmKeyHash)] = "abc";
  EXPECT_EQ(observe()->controller->key, kube::Presence::kPresent);
  secret->meta.owners = {{"slinky.slurm.net/v1beta1", "Controller", "demo", "u", true}};
  secret->contents["slurm.key"] = "content";
  secret->meta.annotations[std::string(api::kAnnotationDataHash)] = keyring_note("u", "content");
  EXPECT_EQ(observe()->controller->key, kube::Presence::kPresent);
  secret->contents["slurm.key"] = "edited";
  EXPECT_EQ(observe()->controller->key, kube::Presence::kUnknown) << "no worker starts with that";

  fill(set_.controllers, {});
  EXPECT_FALSE(observe()->controller);
}

TEST_F(ObserveNodeSet, KnowsHowLongSlurmctldRunsAndWaitsForWorkers) {
  fill_all();
  EXPECT_FALSE(observe()->controller->ready_since);
  EXPECT_EQ(observe()->controller->slurmd_timeout, core::Duration{300000});
  Json slurmctld = document("Pod", "demo-controller-0", Json::parse(R"({"status": {"conditions": [
      {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}})"));
  slurmctld["metadata"]["labels"] = {{"app.kubernetes.io/name", "slurmctld"}, {"app.kubernetes.io/instance", "demo"}};
  fill(set_.pods, {slurmctld});
  fill(set_.config_maps, {document("ConfigMap", "demo-config", {{"data", {{"slurm.conf", "SlurmdTimeout=60"}}}})});
  ASSERT_TRUE(observe()->controller->ready_since);
  EXPECT_EQ(core::format_rfc3339(*observe()->controller->ready_since), "2026-01-02T03:04:05Z");
  EXPECT_EQ(observe()->controller->slurmd_timeout, core::Duration{60000});
}

TEST_F(ObserveNodeSet, KnowsThatTheFileOfATopologyGoes) {
  fill_all();
  fill(set_.config_maps, {document("ConfigMap", "demo-config", {{"data", {{"slurm.conf", "x"}}}})});
  EXPECT_FALSE(observe()->controller->topology_goes) << "there is none";
  fill(set_.config_maps, {document("ConfigMap", "demo-config", {{"data", {{"slurm.conf", "x"}, {"topology.yaml", "x"}}}})});
  EXPECT_TRUE(observe()->controller->topology_goes);
  const Json topology{{"spec", {{"topology", {{"nodeLabels", {"zone", "rack"}}}}}}};
  fill(set_.controllers, {document("Controller", "demo", topology)});
  const auto observed = observe();
  EXPECT_FALSE(observed->controller->topology_goes) << "it is asked for";
  EXPECT_EQ(observed->nodes.at("kube-1").lacks, "zone");
}

/// A Controller may be deleted without its workers (`kubectl delete --cascade=orphan`). The finalizers of the Controller do not
/// reliably show whether its workers stay.
TEST_F(ObserveNodeSet, AControllerThatIsDeletedEndsNothingBeforeItHasToldSo) {
  fill_all();
  const auto deletes = [&](const Json& conditions) {
    Json controller = document("Controller", "demo", {{"spec", Json::object()}, {"status", {{"conditions", conditions}}}});
    controller["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    controller["metadata"]["finalizers"] = {"controller.slinky.slurm.net/teardown"};
    fill(set_.controllers, {controller});
    const auto seen = observe();
    const plan::Plan plan = static_cast<const run::Controller&>(controller_).plan(seen.get());
    return plan.describe().dump().find("kube.Delete") != std::string::npos;
  };
  const auto progressing = [](const char* reason) {
    return Json::array({{{"type", "Progressing"},
                         {"status", "True"},
                         {"reason", reason},
                         {"message", "m"},
                         {"lastTransitionTime", "2026-01-01T00:00:00Z"}}});
  };
  EXPECT_FALSE(deletes(Json::array()));
  EXPECT_FALSE(deletes(progressing("Waiting")));
  EXPECT_TRUE(deletes(progressing("Terminating")));
}

TEST_F(ObserveNodeSet, LooksForWhatTheWorkersName) {
  fill_all();
  Json nodeset = document("NodeSet", "cpu", {{"spec", {{"controllerRef", {{"name", "demo"}}}}}});
  nodeset["spec"]["template"]["spec"]["volumes"] = *core::parse_json(R"([{"name": "v", "secret": {"secretName": "a"}}])");
  nodeset["spec"]["slurmd"]["envFrom"] = *core::parse_json(R"([{"secretRef": {"name": "b"}}])");
  nodeset["spec"]["logfile"]["envFrom"] = *core::parse_json(R"([{"secretRef": {"name": "c"}}])");
  fill(set_.nodesets, {nodeset});
  EXPECT_TRUE(observe()->missing.empty()) << "not known yet";
  reader_.answer.presence = kube::Presence::kAbsent;
  std::vector<std::string> places;
  const auto seen = observe();
  for (const Problem& problem : seen->missing) places.push_back(problem.message.substr(0, problem.message.find(':')));
  EXPECT_EQ(places, (std::vector<std::string>{"spec.slurmd.envFrom[0].secretRef.name", "spec.logfile.envFrom[0].secretRef.name",
                                              "spec.template.spec.volumes[0].secret.secretName"}));
}

TEST_F(ObserveNodeSet, AControllerThatCannotBeReadIsNotOneThatIsNotThere) {
  fill_all();
  fill(set_.controllers, {document("Controller", "demo", {{"spec", {{"deletionPolicy", 7}}}})});
  EXPECT_FALSE(observe()->controller);
  EXPECT_NE(observe()->controller_error, "");
  EXPECT_EQ(observe()->invalid, "") << "the NodeSet can be";
  fill(set_.controllers, {});
  EXPECT_EQ(observe()->controller_error, "");
}

TEST_F(ObserveNodeSet, SeesAnOlderNodeSetWithTheSameNameInSlurm) {
  fill_all();
  fill(set_.pods, {});
  const Json spec{{"spec", {{"controllerRef", {{"name", "demo"}}}}}};
  Json twin = spec;
  // The workers of NodeSet zz are cpu0, cpu1 ..., but zz has our name in Slurm, so these workers would be in our partition.
  twin["spec"]["template"]["spec"]["hostname"] = "cpu";
  Json older = document("NodeSet", "zz", twin), own = document("NodeSet", "cpu", spec);
  own["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z";
  older["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
  fill(set_.nodesets, {own, older});
  EXPECT_EQ(observe()->namesake, "zz");
  older["metadata"]["creationTimestamp"] = "2026-01-03T00:00:00Z";
  fill(set_.nodesets, {own, older});
  EXPECT_EQ(observe()->namesake, "");
  older["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
  fill(set_.nodesets, {own, older});
  fill(set_.pods, {worker("cpu-0", "cpu-uid")});
  EXPECT_EQ(observe()->namesake, "") << "ours has a worker, and the older one, back from a backup, has none";
}

TEST_F(ObserveNodeSet, SeesNodeSetsWhoseWorkersMayHaveItsNames) {
  fill_all();
  const auto nodeset = [](const char* name, const char* created, const char* hostname, int replicas, int padding) {
    Json out = document("NodeSet", name,
                        {{"spec",
                          {{"controllerRef", {{"name", "demo"}}},
                           {"replicas", replicas},
                           {"ordinalPadding", padding},
                           {"template", {{"spec", {{"hostname", hostname}}}}}}}});
    out["metadata"]["creationTimestamp"] = created;
    return out;
  };
  const auto takes = [&](std::string_view node) -> std::string {
    const auto seen = observe();
    for (const Rival& rival : seen->rivals) {
      if (rival.takes(node)) return rival.nodeset;
    }
    return "";
  };
  Json other = worker("other-0", "other-uid");
  other["metadata"]["labels"]["app.kubernetes.io/instance"] = "later";
  other["spec"]["hostname"] = "gpu007";
  fill(set_.pods, {other});
  fill(set_.nodesets,
       {nodeset("cpu", "2026-01-02T00:00:00Z", "gpu0", 3, 0), nodeset("older", "2026-01-01T00:00:00Z", "gpu", 2, 2),
        nodeset("later", "2026-01-03T00:00:00Z", "gpu00", 5, 0), nodeset("far", "2026-01-01T00:00:00Z", "gpux", 5, 0)});
  EXPECT_EQ(takes("gpu00"), "older");
  EXPECT_EQ(takes("gpu01"), "older");
  EXPECT_EQ(takes("gpu02"), "") << "it has two workers";
  EXPECT_EQ(takes("gpu0"), "") << "it writes two digits";
  EXPECT_EQ(takes("gpu007"), "later") << "it has that worker";
  EXPECT_EQ(takes("gpu000"), "later") << "it has workers, and we have none";
}

TEST_F(ObserveNodeSet, KnowsWhySlurmctldRunsWithoutItsPartition) {
  fill_all();
  const auto refusal = [&](const Json& partition) {
    fill(set_.nodesets,
         {document("NodeSet", "cpu", {{"spec", {{"controllerRef", {{"name", "demo"}}}, {"partition", partition}}}})});
    return observe()->partition_refusal;
  };
  const Json bad{{"enabled", true}, {"config", "Bad=1"}};
  EXPECT_EQ(refusal(bad), "") << "there is no ConfigMap yet";
  Json map = document("ConfigMap", "demo-config");
  map["metadata"]["annotations"]["slinky.slurm.net/left-out-partitions"] =
      R"({"cpu":{"config":"Bad=1","refusal":"error: Bad"},"gpu":{"config":"Bad=2","refusal":"error: gpu"}})";
  fill(set_.config_maps, {map});
  EXPECT_EQ(refusal(bad), "error: Bad");
  EXPECT_EQ(refusal({{"enabled", true}, {"config", "Bad=2"}}), "") << "it was said of another text";
  EXPECT_EQ(refusal({{"enabled", false}, {"config", "Bad=1"}}), "") << "it wants none";
}

TEST_F(ObserveNodeSet, WithHostNetworkingKnowsTheNodesOfOtherWorkers) {
  fill_all();
  Json other = worker("gpu-0", "another");
  other["spec"] = {{"nodeName", "kube-2"}, {"hostNetwork", true}};
  other["metadata"]["labels"]["app.kubernetes.io/instance"] = "gpu";
  std::vector<Json> pods{worker("cpu-0", "cpu-uid"), other};
  for (Json& pod : pods) pod["metadata"]["labels"]["slinky.slurm.net/cluster"] = "demo";
  fill(set_.pods, pods);
  EXPECT_TRUE(observe()->other_workers.empty());
  Json spec{{"spec", {{"controllerRef", {{"name", "demo"}}}}}};
  spec["spec"]["template"]["spec"]["hostNetwork"] = true;
  fill(set_.nodesets, {document("NodeSet", "cpu", spec)});
  EXPECT_EQ(observe()->other_workers, (std::set<std::string, std::less<>>{"kube-2"}));
}

TEST_F(ObserveNodeSet, DoesNotWaitForSlurmWhileJobsHoldWhatIsScaledIn) {
  fill_all();
  fill(set_.pods, {worker("cpu-0", "cpu-uid"), worker("cpu-1", "cpu-uid")});
  const auto waits = [&](std::set<std::string, std::less<>> flags, const std::string& reason, bool job) {
    auto snapshot = std::make_shared<slurm::Snapshot>();
    snapshot->health = slurm::Snapshot::Health::kComplete;
    for (const char* name : {"cpu-0", "cpu-1"}) {
      slurm::Node node;
      node.name = name;
      node.state.base = "ALLOCATED";
      if (node.name == "cpu-1") node.state.flags = flags;
      node.reason = reason;
      snapshot->nodes.insert_or_assign(node.name, std::make_shared<slurm::Node>(node));
    }
    slurm::Job running;
    running.id = 1;
    running.state = "RUNNING";
    running.nodes = {"cpu-1"};
    if (job) snapshot->jobs.insert_or_assign(running.id, std::make_shared<slurm::Job>(running));
    snapshots_["default/demo"] = snapshot;
    return !waits_on().empty();
  };
  EXPECT_FALSE(waits({"DRAIN"}, "slurm-operator: NodeSet default/cpu was scaled in", true));
  EXPECT_TRUE(waits({"DRAIN"}, "slurm-operator: NodeSet default/cpu was scaled in", false)) << "it is about to go";
  EXPECT_TRUE(waits({}, "", true)) << "it is about to be drained";
}

TEST_F(ObserveNodeSet, SaysThatItWaitsForSlurm) {
  fill_all();
  EXPECT_TRUE(waits_on().empty());
  fill(set_.pods, {worker("cpu-0", "cpu-uid"), worker("cpu-1", "cpu-uid")});
  EXPECT_EQ(waits_on(), std::set<slurm::ClusterKey>{"default/demo"});
}

TEST_F(ObserveNodeSet, HearsAKubeletThatDeletesAPodAsSoonAsItHasEnded) {
  fill_all();
  fill(set_.pods, {worker("cpu-0", "cpu-uid"), worker("cpu-1", "cpu-uid")});
  observe();
  Json ended = worker("cpu-0", "cpu-uid");
  ended["metadata"]["resourceVersion"] = "11";
  ended["status"] = {{"phase", "Failed"}};
  set_.pods.upsert(kube::record_from_json<kube::PodRecord>(ended).value());
  set_.pods.erase({"default", "cpu-0"}, "12");
  set_.pods.erase({"default", "cpu-1"}, "13");
  const auto seen = observe();
  ASSERT_TRUE(seen->seen.gone.contains("cpu-0"));
  EXPECT_TRUE(seen->seen.gone.at("cpu-0").ended);
  EXPECT_FALSE(seen->seen.gone.at("cpu-0").host_gone);
  EXPECT_FALSE(seen->seen.gone.at("cpu-1").ended) << "its slurmd may run";
}

/// The record may belong to a slurmd that still runs. The jobs of that slurmd are not the jobs of the ended pod.
TEST_F(ObserveNodeSet, KnowsOnlyTheSlurmdThatAPodItselfBegan) {
  fill_all();
  const auto began = core::parse_rfc3339("2026-10-31T06:00:00Z").value();
  auto snapshot = std::make_shared<slurm::Snapshot>();
  slurm::Node record;
  record.name = "cpu-0";
  record.slurmd_start_time = began;
  snapshot->nodes.insert_or_assign(record.name, std::make_shared<slurm::Node>(record));
  snapshots_["default/demo"] = snapshot;
  const auto knows = [&](const char* uid, const char* created, bool started) {
    Json pod = worker("cpu-0", "cpu-uid");
    pod["metadata"]["uid"] = uid;
    pod["metadata"]["creationTimestamp"] = created;
    Json container{{"name", "slurmd"}};
    if (started) container["state"]["running"]["startedAt"] = "2026-10-31T06:00:00Z";
    pod["status"]["containerStatuses"] = Json::array({container});
    fill(set_.pods, {pod});
    return observe()->seen.workers.at(uid).slurmd.has_value();
  };
  EXPECT_FALSE(knows("never-started", "2026-10-31T05:59:50Z", false));
  EXPECT_FALSE(knows("came-later", "2026-10-31T06:00:10Z", true));
  EXPECT_TRUE(knows("its-own", "2026-10-31T05:59:50Z", true));
}

TEST_F(ObserveNodeSet, KnowsAPodWhoseKubernetesNodeWentFirst) {
  fill_all();
  observe();
  fill(set_.nodes, {});
  EXPECT_TRUE(observe()->seen.gone.empty());
  set_.pods.erase({"default", "cpu-0"}, "11");
  EXPECT_TRUE(observe()->seen.gone.at("cpu-0").host_gone);
  EXPECT_FALSE(observe()->seen.gone.at("cpu-0").ended);
}

TEST_F(ObserveNodeSet, KeepsThePodsOfASpecThatCannotBeRead) {
  fill_all();
  fill(set_.nodesets, {document("NodeSet", "cpu", {{"spec", {{"controllerRef", {{"name", "demo"}}}, {"replicas", "many"}}}})});
  const auto seen = observe();
  EXPECT_NE(seen->invalid, "");
  EXPECT_EQ(seen->pods.size(), 1U);
  EXPECT_EQ(seen->nodeset.spec.controller_ref.name, "demo");
  EXPECT_TRUE(seen->controller);
}

}  // namespace
}  // namespace op::nodeset
