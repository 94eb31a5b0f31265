// Objects of Kubernetes and Slurm for tests of the controllers of jobs and groups, which read them with their real caches and
// observers. No step of a plan is carried out.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bridge/common/names.hpp"
#include "bridge/common/observer.hpp"
#include "bridge/common/states.hpp"
#include "slinky/local_wiring.hpp"

namespace bridge::testing {

using core::Json;

inline constexpr const char* kInstallation = "cluster-a";

template <class Controller>
class World {
 public:
  World() {
    node("node-1");
    node("node-2");
    slurm_node("node-1");
    slurm_node("node-2");
  }

  core::MonoTime mono{core::Duration{1000000}};
  core::WallTime now = core::parse_rfc3339("2026-01-01T10:00:00Z").value();
  slurm::Snapshot::Health health = slurm::Snapshot::Health::kComplete;
  core::Duration age{0};                        ///< The age of Slurm's last answer.
  std::optional<core::WallTime> slurm_clock{};  ///< slurmctld's clock, if it is not `now`.
  slurm::Capabilities capabilities{.release = "26.05.5", .data_parser = "v0.0.45", .external_jobs = true};
  std::map<std::string, slurm::Node> nodes;
  std::map<std::int64_t, slurm::Job> jobs;
  plan::Outcomes outcomes;
  plan::Facts facts;
  kube::StringMap namespace_annotations;
  bool namespaces_known = true;

  /// Creates or replaces pod ns/p with UID u. `more` is merged over it.
  void pod(const Json& more = Json::object()) {
    Json document = Json::parse(R"({"kind": "Pod", "metadata": {"name": "p", "uid": "u"},
      "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m", "memory": "100Mi"}}}],
               "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]},
      "status": {"phase": "Pending"}})");
    document.merge_patch(more);
    wiring_.put(caches_.pods, document);
  }
  void waiting_pod(Json more = Json::object()) {
    more["spec"]["schedulingGates"] = Json::array({{{"name", kGate}}});
    pod(more);
  }
  /// Returns when a job was submitted, in seconds since 1970.
  static constexpr std::int64_t submitted(std::int64_t job) { return 1767200000 + job; }
  /// Creates pod ns/p, placed for this job. `bound_to`: the node that Kubernetes has bound the pod to; "": none.
  void placed_pod(std::int64_t job, const std::string& bound_to = "", Json more = Json::object()) {
    more["metadata"]["labels"][std::string(kLabelJobId)] = std::to_string(job);
    more["metadata"]["annotations"][std::string(kAnnotationNode)] = "node-2";
    bare_placed_pod(job, bound_to, std::move(more));
  }
  /// Creates the pod of placed_pod(), without the label and the annotation that users can change.
  void bare_placed_pod(std::int64_t job, const std::string& bound_to = "", Json more = Json::object()) {
    more["spec"]["tolerations"].push_back(
        {{"key", kTolerationPlacedFor}, {"operator", "Equal"}, {"value", placed_for_value({job, submitted(job)})}});
    more["spec"]["affinity"] = Json::parse(R"({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
      {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}]}}})");
    if (!bound_to.empty()) more["spec"]["nodeName"] = bound_to;
    pod(more);
  }
  void delete_pod(const std::string& name = "p") { caches_.pods.erase({"ns", name}); }

  static Json ready(const char* status) { return Json::array({{{"type", "Ready"}, {"status", status}}}); }
  void node(const std::string& name, const Json& more = Json::object()) {
    Json document{{"kind", "Node"},
                  {"metadata", {{"name", name}, {"uid", name}}},
                  {"status", {{"allocatable", {{"cpu", "8"}, {"memory", "16Gi"}}}, {"conditions", ready("True")}}}};
    document.merge_patch(more);
    document["metadata"]["resourceVersion"] = std::to_string(++version_);
    caches_.nodes.upsert(kube::record_from_json<kube::SchedulingNodeRecord>(document).value());
  }
  void slurm_node(const std::string& name, std::vector<std::string> partitions = {"batch"}) {
    slurm::Node& out = nodes[name];
    out.name = name;
    out.partitions = std::move(partitions);
  }

  /// Adds a job of the bridge for pod ns/p with this UID. `state`: for example "RUNNING+CONFIGURING".
  slurm::Job& job(std::int64_t id, const std::string& state, const std::string& uid = "u",
                  const std::string& installation = kInstallation) {
    slurm::Job& out = jobs[id];
    out = {};
    out.id = id;
    out.state = state.substr(0, state.find('+'));
    if (state.contains('+')) out.flags.insert(state.substr(state.find('+') + 1));
    out.partition = "batch";
    if (out.holds_nodes()) out.nodes = {"node-2"};
    slurm::JobDetails details;
    details.external = true;
    details.reason = "Resources";
    details.submitted = core::WallTime{std::chrono::seconds{submitted(id)}};
    const Json pods = Json::array({{{"ns", "ns"}, {"name", "p"}, {"uid", uid}}});
    details.admin_comment = slurm::admin_comment({slurm::Owner::kBridge, installation, key_of(uid, 1)}, {{"pods", pods}});
    out.details = slurm::JobDetailsPtr(std::make_shared<slurm::JobDetails>(details));
    return out;
  }
  void change_details(slurm::Job& of, const std::function<void(slurm::JobDetails&)>& change) {
    auto details = std::make_shared<slurm::JobDetails>(*of.details);
    change(*details);
    of.details = slurm::JobDetailsPtr(std::move(details));
  }

  /// Adds a fact that was read. Avoids braces, because g++ takes a Json in braces for a list with one entry.
  void fact(const std::string& name, Json value) {
    facts.insert_or_assign(name, plan::Fact{core::Result<Json>(std::move(value)), mono});
  }

  kube::Key key{"ns", "p"};  ///< The key that plan() plans.
  /// Observes the key, and returns the plan.
  plan::Plan plan() {
    plan::Context context;
    context.now = now;
    context.mono = mono;
    context.outcomes = outcomes;
    context.facts = facts;
    snapshot_ = snapshot();
    Reading reading(*this);
    const auto observed = controller().observe(key, reading, context);
    return controller().plan(observed.get());
  }

  /// Returns the snapshot that a poll of Slurm would give now.
  [[nodiscard]] slurm::SnapshotPtr snapshot() const {
    auto snapshot = std::make_shared<slurm::Snapshot>();
    snapshot->health = health;
    snapshot->error = "slurmctld is away";
    snapshot->requested_at = mono - age;
    snapshot->capabilities = capabilities;
    snapshot->clock = slurm_clock;
    snapshot->clock_at = mono;
    for (const auto& [name, one] : nodes) snapshot->nodes.emplace(name, std::make_shared<const slurm::Node>(one));
    for (const auto& [id, one] : jobs) snapshot->jobs.emplace(id, std::make_shared<const slurm::Job>(one));
    snapshot->partitions.emplace("batch", slurm::Partition{.name = "batch", .nodes = {}, .state = "UP"});
    return snapshot;
  }

  /// Plans, and returns the ids of the steps, in the order of lanes and groups.
  std::vector<std::string> steps() {
    std::vector<std::string> out;
    for (const plan::Step& step : steps_of(plan())) out.push_back(step.id.text());
    return out;
  }
  /// Returns the act of the step whose id begins like this, as data; null if there is none.
  Json act(const std::string& id) {
    for (const plan::Step& step : steps_of(plan())) {
      if (step.id.text().starts_with(id)) return step.act->describe();
    }
    return nullptr;
  }
  static std::vector<plan::Step> steps_of(const plan::Plan& plan) {
    std::vector<plan::Step> out;
    for (const auto& [name, lane] : plan.lanes()) {
      for (const auto& group : lane.groups()) out.insert(out.end(), group.begin(), group.end());
    }
    return out;
  }

  slinky::LocalWiring& wiring() { return wiring_; }
  Caches& caches() { return caches_; }
  Settings settings{.cluster = "slurm/demo", .managed_namespaces = {"ns"}};

  /// Makes the controller at first use, so that a test can change the settings before.
  Controller& controller() {
    if (!controller_) controller_.emplace(wiring_, settings);
    return *controller_;
  }

 private:
  class Reading final : public kube::Recorder {
   public:
    explicit Reading(const World& world) : world_(world) {}
    kube::Named<kube::SecretRecord> secret(const kube::Key&) override { return {}; }
    kube::Named<kube::Object> object(const kube::Resource&, const kube::Key&) override { return {}; }
    kube::Named<kube::MetadataRecord> metadata(const kube::Resource&, const kube::Key& of) override {
      auto record = std::make_shared<kube::MetadataRecord>();
      record->meta.name = of.name;
      record->meta.uid = kInstallation;
      if (of.name != "kube-system") {
        if (!world_.namespaces_known) return {};
        record->meta.annotations = world_.namespace_annotations;
      }
      return {kube::Presence::kPresent, std::move(record)};
    }

   private:
    const World& world_;
  };

  slurm::SnapshotPtr snapshot_;
  slinky::LocalWiring wiring_{[this](const slurm::ClusterKey&) { return snapshot_; }};
  Caches caches_{wiring_};
  std::optional<Controller> controller_;
  int version_ = 0;
};

}  // namespace bridge::testing
