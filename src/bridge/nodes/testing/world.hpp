// Objects of Kubernetes and Slurm for tests of the nodes controller, which reads them with its real caches and observers. No
// step of a plan is carried out.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bridge/common/names.hpp"
#include "bridge/common/states.hpp"
#include "bridge/nodes/observe.hpp"
#include "slinky/local_wiring.hpp"
#include "slurm/own_job.hpp"

namespace bridge::nodes::testing {

using core::Json;

inline constexpr const char* kInstallation = "cluster-a";

class World {
 public:
  /// `retires`: the bridge is being removed.
  explicit World(bool retires = false)
      : controller_(wiring_, Settings{.cluster = "slurm/demo",
                                      .retires = retires,
                                      .pods = {.cluster = "slurm/demo", .managed_namespaces = {"ns"}}}) {}

  core::MonoTime mono{core::Duration{1000000}};
  core::WallTime now = core::parse_rfc3339("2026-01-01T10:00:00Z").value();
  slurm::Snapshot::Health health = slurm::Snapshot::Health::kComplete;
  core::Duration age{0};  ///< The age of Slurm's last answer.
  slurm::Capabilities capabilities{.release = "26.05.5", .data_parser = "v0.0.45", .external_jobs = true};
  std::map<std::string, slurm::Node> nodes;
  std::map<std::int64_t, slurm::Job> jobs;
  plan::Outcomes outcomes;
  plan::Facts facts;

  /// Creates or replaces a Kubernetes node that is ready. `more` is merged over it.
  void host(const std::string& name, const Json& more = Json::object()) {
    Json document =
        Json::parse(R"({"kind": "Node", "metadata": {}, "status": {"allocatable": {"cpu": "7900m", "memory": "16Gi"},
      "addresses": [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.7"}],
      "conditions": [{"type": "Ready", "status": "True"}]}})");
    document["metadata"]["name"] = document["metadata"]["uid"] = name;
    document.merge_patch(more);
    document["metadata"]["resourceVersion"] = std::to_string(++version_);
    caches_.nodes.upsert(kube::record_from_json<kube::SchedulingNodeRecord>(document).value());
  }
  void external_host(const std::string& name, Json more = Json::object(), const std::string& partitions = "") {
    more["metadata"]["labels"][std::string(kLabelExternalNode)] = "true";
    if (!partitions.empty()) more["metadata"]["annotations"][std::string(kAnnotationPartitions)] = partitions;
    host(name, more);
  }
  /// Simulates a relist of unchanged nodes: the cache gets new records, and calls no listener.
  void relist_hosts() {
    std::vector<std::shared_ptr<const kube::SchedulingNodeRecord>> again;
    for (const auto& one : caches_.nodes.all()) again.push_back(std::make_shared<const kube::SchedulingNodeRecord>(*one));
    caches_.nodes.replace(std::move(again), std::to_string(version_));
  }
  void delete_host(const std::string& name) { caches_.nodes.erase({"", name}); }

  /// Creates or replaces a Slurm node. `state`: for example "IDLE+DRAIN".
  slurm::Node& slurm_node(const std::string& name, const std::string& state = "IDLE", const std::string& reason = "") {
    slurm::Node& out = nodes[name];
    out = {};
    out.name = name;
    out.reason = reason;
    std::string_view words = state;
    out.state.base = words.substr(0, words.find('+'));
    while (words.contains('+')) {
      words.remove_prefix(words.find('+') + 1);
      out.state.flags.emplace(words.substr(0, words.find('+')));
    }
    return out;
  }
  /// Creates an external Slurm node of the bridge of this installation. `made`: the digest of the resources that it was created
  /// with; "": those of the Kubernetes node.
  slurm::Node& own_node(const std::string& name, const std::string& state = "IDLE", const std::string& reason = "",
                        std::string made = "", const std::string& installation = kInstallation) {
    slurm::Node& out = slurm_node(name, state + "+EXTERNAL", reason);
    const auto host = caches_.nodes.find({"", name});
    if (made.empty() && host != nullptr) made = slurm::made_of(wish_of(*host, *snapshot()).value());
    out.features =
        out.active_features = {slurm::NodeMark{slurm::Owner::kBridge, installation, made.empty() ? "old" : made}.feature()};
    return out;
  }
  /// Adds job 7, which runs on the node and is not the bridge's.
  void job_on(const std::string& node) {
    slurm::Job& out = jobs[7];
    out.id = 7;
    out.state = "RUNNING";
    out.nodes = {node};
  }
  /// Adds a job of the bridge that runs on the node, for the pod with this name and UID.
  void bridge_job(std::int64_t id, const std::string& node, const std::string& installation = kInstallation,
                  const std::string& pod = "p") {
    slurm::Job& out = jobs[id];
    out.id = id;
    out.state = "RUNNING";
    out.nodes = {node};
    slurm::JobDetails details;
    details.external = true;
    const Json pods = Json::array({{{"ns", "ns"}, {"name", pod}, {"uid", pod}}});
    details.admin_comment = slurm::admin_comment({slurm::Owner::kBridge, installation, pod + "/1"}, {{"pods", pods}});
    out.details = slurm::JobDetailsPtr(std::make_shared<slurm::JobDetails>(details));
  }
  /// Adds a pod that was placed on the node for this job. The bridge manages the pod only in namespace "ns".
  void placed_pod(const std::string& name, std::int64_t job, const std::string& node, const std::string& ns = "ns") {
    Json document{
        {"kind", "Pod"}, {"spec", {{"nodeName", node}, {"containers", Json::array()}}}, {"status", {{"phase", "Running"}}}};
    document["metadata"] = {{"namespace", ns}, {"name", name}, {"uid", name}};
    document["spec"]["tolerations"] =
        Json::array({{{"key", kTolerationPlacedFor}, {"operator", "Equal"}, {"value", placed_for_value({job, 1})}}});
    document["spec"]["affinity"] = Json::parse(R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [")" +
                                               node + R"("]}]}]}}})");
    if (ns == "ns") return void(wiring_.put(caches_.pods, document));
    document["metadata"]["resourceVersion"] = std::to_string(++version_);
    caches_.pods.upsert(kube::record_from_json<kube::SchedulingPodRecord>(document).value());
  }
  /// Adds a pod with the gate. `more` is merged over it.
  void waiting_pod(const std::string& name, const Json& more = Json::object()) {
    Json document{{"kind", "Pod"}, {"spec", {{"containers", Json::array()}}}, {"status", {{"phase", "Pending"}}}};
    document["metadata"] = {{"namespace", "ns"}, {"name", name}, {"uid", name}};
    document["spec"]["schedulingGates"] = Json::array({{{"name", kGate}}});
    document.merge_patch(more);
    wiring_.put(caches_.pods, document);
  }
  void delete_pod(const std::string& name) { caches_.pods.erase({"ns", name}); }
  void pod_on(const std::string& node, const std::string& app) {
    Json document{
        {"kind", "Pod"}, {"spec", {{"nodeName", node}, {"containers", Json::array()}}}, {"status", {{"phase", "Running"}}}};
    document["metadata"] = {{"name", app}, {"uid", app}, {"labels", {{"app.kubernetes.io/name", app}}}};
    wiring_.put(caches_.pods, document);
  }

  /// Observes the node of this name, and returns the plan.
  plan::Plan plan(const std::string& name = "a") {
    plan::Context context;
    context.now = now;
    context.mono = mono;
    context.outcomes = outcomes;
    context.facts = facts;
    snapshot_ = snapshot();
    Reading reading;
    const auto observed = controller_.observe({"", name}, reading, context);
    return controller_.plan(observed.get());
  }

  /// Returns the snapshot that a poll of Slurm would give now.
  [[nodiscard]] slurm::SnapshotPtr snapshot() const {
    auto snapshot = std::make_shared<slurm::Snapshot>();
    snapshot->health = health;
    snapshot->error = "slurmctld is away";
    snapshot->requested_at = mono - age;
    snapshot->capabilities = capabilities;
    for (const auto& [name, one] : nodes) snapshot->nodes.emplace(name, std::make_shared<const slurm::Node>(one));
    for (const auto& [id, one] : jobs) snapshot->jobs.emplace(id, std::make_shared<const slurm::Job>(one));
    for (const char* name : {"batch", "gpu"})
      snapshot->partitions.emplace(name, slurm::Partition{.name = name, .nodes = {}, .state = "UP"});
    return snapshot;
  }

  /// Plans, and returns the ids of the steps, in the order of lanes and groups.
  std::vector<std::string> steps(const std::string& name = "a") {
    std::vector<std::string> out;
    for (const plan::Step& step : steps_of(plan(name))) out.push_back(step.id.text());
    return out;
  }
  /// Returns the act of the step whose id begins like this, as data; null if there is none.
  Json act(const std::string& id, const std::string& name = "a") {
    for (const plan::Step& step : steps_of(plan(name))) {
      if (step.id.text().starts_with(id)) return step.act->describe();
    }
    return nullptr;
  }
  /// Returns "True REASON: MESSAGE" of the condition that the plan writes; "" if it writes none.
  std::string condition(const std::string& name = "a") {
    const Json act = this->act("report Node", name);
    if (act.is_null()) return {};
    const Json entry = act["patch"]["status"]["conditions"][0];
    return entry["status"].get<std::string>() + " " + entry["reason"].get<std::string>() + ": " +
           entry["message"].get<std::string>();
  }

  NodesController& controller() { return controller_; }
  slinky::LocalWiring& wiring() { return wiring_; }

 private:
  class Reading final : public kube::Recorder {
   public:
    kube::Named<kube::SecretRecord> secret(const kube::Key&) override { return {}; }
    kube::Named<kube::Object> object(const kube::Resource&, const kube::Key&) override { return {}; }
    kube::Named<kube::MetadataRecord> metadata(const kube::Resource&, const kube::Key& key) override {
      auto record = std::make_shared<kube::MetadataRecord>();
      record->meta.name = key.name;
      record->meta.uid = kInstallation;
      return {kube::Presence::kPresent, std::move(record)};
    }
  };

  static std::vector<plan::Step> steps_of(const plan::Plan& plan) {
    std::vector<plan::Step> out;
    for (const auto& [name, lane] : plan.lanes()) {
      for (const auto& group : lane.groups()) out.insert(out.end(), group.begin(), group.end());
    }
    return out;
  }

  slurm::SnapshotPtr snapshot_;
  slinky::LocalWiring wiring_{[this](const slurm::ClusterKey&) { return snapshot_; }};
  Caches caches_{wiring_};
  NodesController controller_;
  int version_ = 0;
};

}  // namespace bridge::nodes::testing
