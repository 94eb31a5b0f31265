// Runs the scenarios of tests/scenarios/nodeset. In addition to the keywords of all scenarios, these scenarios have keywords
// for workers, their hosts and their Slurm nodes: see tests/scenarios/README.md. After each step, the runner checks that no
// worker was deleted under a job and that no drain of others was undone.
#include <gtest/gtest.h>

#include "api/well_known.hpp"
#include "operator/common/topology.hpp"
#include "operator/nodeset/parts.hpp"
#include "operator/nodeset/plan.hpp"
#include "operator/nodeset/testing/world.hpp"
#include "operator/testing/scenario_runner.hpp"
#include "slinky/config_map.hpp"

namespace op::nodeset::testing {
namespace {

using core::Json;
using namespace op::testing;

slurm::Snapshot::Health health_of(const std::string& word) {
  if (word == "answers") return slurm::Snapshot::Health::kComplete;
  if (word == "stale") return slurm::Snapshot::Health::kStale;
  if (word == "away") return slurm::Snapshot::Health::kNone;
  unknown(word);
}

class NodeSetRunner final : public ScenarioRunner {
 public:
  explicit NodeSetRunner(std::string_view kind) : ScenarioRunner(kind) { key_.name = "cpu"; }

 private:
  World world_;
  int by_hand_ = 0;

  World& world() override { return world_; }
  plan::Plan make_plan() override { return plan_nodeset(world_.observe()); }
  void begin(const Json& scenario) override {
    check_keys(scenario, {"spec", "workers"});
    world_ = World(scenario.value("spec", Json::object()));
    for (const Json& ordinal : scenario.value("workers", Json::array())) world_.add_pod(ordinal);
  }

  void put_pod(const Json& want) {
    check_keys(want, {"name", "phase", "node", "waiting", "init", "slurmd", "ready", "annotations", "finalizers", "restarts"});
    kube::PodRecord& pod = world_.pod(want["name"]);
    if (want.contains("phase")) pod.phase = want["phase"];
    if (want.contains("node")) pod.node_name = want["node"];
    if (want.contains("finalizers")) pod.meta.finalizers = want["finalizers"];
    if (want.contains("waiting")) {
      kube::ContainerState& slurmd = pod.containers.emplace_back();
      slurmd.name = "slurmd";
      slurmd.waiting_reason = want["waiting"];
    }
    if (want.contains("init")) {
      if (want["init"] != "started") unknown(want["init"].dump());
      kube::ContainerState& init = pod.containers.emplace_back();
      init.name = "wait";
      init.init = init.started_once = true;
    }
    if (want.contains("restarts")) {
      kube::ContainerState& slurmd = pod.containers.emplace_back();
      slurmd.name = "slurmd";
      slurmd.ready = slurmd.started_once = true;
      slurmd.restarts = want["restarts"];
    }
    if (want.contains("slurmd")) {
      if (want["slurmd"] != "started") unknown(want["slurmd"].dump());
      kube::ContainerState& slurmd = pod.containers.emplace_back();
      slurmd.name = "slurmd";
      slurmd.started_once = true;
    }
    if (want.contains("ready")) {
      for (kube::PodCondition& condition : pod.conditions) {
        if (condition.type == "Ready") condition.status = want["ready"].get<bool>() ? "True" : "False";
      }
    }
    const Json annotations = want.value("annotations", Json::object());
    for (const auto& [key, value] : annotations.items()) {
      if (value.is_null()) {
        pod.meta.annotations.erase(key);
      } else {
        pod.meta.annotations[key] = value.is_string() ? value.get<std::string>() : value.dump();
      }
    }
  }

  void put_host(const Json& want) {
    check_keys(want,
               {"name", "unschedulable", "reason", "ready", "trouble", "features", "topology", "labels", "taints", "hostname"});
    kube::NodeRecord& host = world_.add_host(want["name"], want.value("labels", kube::StringMap()));
    host.unschedulable = want.value("unschedulable", false);
    host.ready = want.value("ready", true);
    for (const std::string text : want.value("taints", Json::array())) {
      const std::size_t equals = text.find('='), colon = text.rfind(':');
      host.taints.push_back({text.substr(0, equals), text.substr(equals + 1, colon - equals - 1), text.substr(colon + 1)});
    }
    if (want.contains("trouble")) host.troubles = {{"Trouble", "True", want["trouble"]["reason"], want["trouble"]["message"]}};
    for (const auto& [word, annotation] : {std::pair("reason", api::kAnnotationNodeCordonReason),
                                           {"features", api::kAnnotationFeaturesSpec},
                                           {"topology", api::kAnnotationTopologySpec},
                                           {"hostname", api::kAnnotationNodeHostnameOverride}}) {
      if (want.contains(word)) host.meta.annotations[std::string(annotation)] = want[word];
    }
  }

  void put_job(const Json& want) {
    slurm::Job job = read_job(want, world_.now);
    job.id = world_.add_job(job.nodes, job.state);
    world_.jobs[job.id] = std::move(job);
  }

  /// Returns NAME of "Kind/NAME". The kind must be `kind`.
  static std::string name_in(const Json& what, std::string_view kind) {
    const auto [its, name] = split(what.get<std::string>());
    if (its != kind) unknown(what.dump());
    return name;
  }

  /// Returns the time with which the status asks users to confirm a loss of Slurm's state.
  std::string told_state_loss() const {
    for (const Json& condition : world_.nodeset()["status"]["conditions"]) {
      const std::string text = condition["message"], before = fmt::format("{}=", api::kAnnotationConfirmStateLoss);
      if (const auto at = text.find(before); at != std::string::npos) return text.substr(at + before.size(), 20);
    }
    return "";
  }

  void remove(const Json& what, bool orphan) {
    if (!orphan && what.get<std::string>().starts_with("Pod/")) return world_.user_deletes(name_in(what, "Pod"));
    if (name_in(what, "NodeSet") != "cpu") unknown(what.dump());
    world_.nodeset()["metadata"]["deletionTimestamp"] = core::format_rfc3339(world_.now);
    if (orphan) world_.nodeset()["metadata"]["finalizers"].push_back("orphan");
  }

  /// True if this keyword of a scenario has no effect in this world.
  static bool is_without_effect(const std::string& verb, const Json& value) {
    const std::set<std::string> words{"slurmctld", "loaded", "registered", "refusal", "bad_text"};
    return words.contains(verb) || (verb == "put" && (value["kind"] == "Pod" || value["kind"] == "Node"));
  }

  void act(const std::string& verb, const Json& value) override {
    if (is_without_effect(verb, value)) unknown(verb);
    if (verb == "set") {
      for (const auto& [field, to] : value.items()) world_.edit(field, to);
    } else if (verb == "start") {
      world_.start_pods();
    } else if (verb == "registers") {
      world_.registers = value.get<std::map<std::string, std::string>>();
    } else if (verb == "finish") {
      world_.finish_pods();
    } else if (verb == "job") {
      put_job(value);
    } else if (verb == "end") {
      world_.end_job(value);
    } else if (verb == "node") {
      read_node(world_.add_node(value.at("name")), value);
    } else if (verb == "pod") {
      put_pod(value);
    } else if (verb == "delete" || verb == "orphan") {
      remove(value, verb == "orphan");
    } else if (verb == "delete_without_pre_stop") {
      world_.deleted_without_pre_stop(name_in(value, "Pod"));
    } else if (verb == "vanish") {
      world_.pods.erase(value.get<std::string>());
    } else if (verb == "claim") {
      put_claim(value);
    } else if (verb == "claim_goes") {
      world_.remove("PersistentVolumeClaim", named(value));
    } else if (verb == "claim_event") {
      world_.claim_event = value;
    } else if (verb == "kube_node_goes") {
      world_.remove_host(value.get<std::string>());
    } else if (verb == "kube_node") {
      put_host(value);
    } else if (verb == "confirm_node_loss") {
      const auto now = api::from_json<api::NodeSet>(world_.nodeset());
      const std::string since = value == "told" ? told_loss(now->status.conditions).since : value.get<std::string>();
      world_.nodeset()["metadata"]["annotations"][std::string(api::kAnnotationConfirmNodeLoss)] = since;
    } else if (verb == "confirm_state_loss") {
      world_.nodeset()["metadata"]["annotations"][std::string(api::kAnnotationConfirmStateLoss)] =
          value == "told" ? told_state_loss() : value.get<std::string>();
    } else if (verb == "slurm") {
      world_.slurm_readable = value != "babbles";
      world_.slurm_is_ours = value != "elsewhere";
      world_.health = world_.slurm_readable && world_.slurm_is_ours ? health_of(value) : slurm::Snapshot::Health::kStale;
    } else if (verb == "release") {
      world_.capabilities.release = value.dump();
      world_.capabilities.requeue = value.get<double>() > 26;
      world_.capabilities.topology_update = world_.capabilities.reservations = value.get<double>() > 25;
    } else if (verb == "partitions") {
      world_.partitions = value.get<std::set<std::string>>();
    } else if (verb == "partition_refusal") {
      const std::string refusal = value, config = core::get_string(world_.spec(), {"partition", "config"});
      annotate_conf(api::kAnnotationLeftOut, refusal.empty() ? "" : write_left_out({{"cpu", LeftOut{config, refusal}}}));
    } else if (verb == "host_keys") {
      if (value != "absent") unknown(value.dump());
      world_.remove_host_keys();
    } else if (verb == "newer") {
      annotate_conf(api::kAnnotationSlurmctldRelease, value ? "25.11" : "26.05");
    } else if (verb == "topology_loaded") {
      load_topology(value);
    } else if (verb == "topology_goes") {
      world_.controller()["spec"].erase("topology");
      if (!value.get<bool>()) world_.config_map()["data"].erase("topology.yaml");
    } else if (verb == "places") {
      for (const std::string_view key : {api::kAnnotationPlacesGiven, api::kAnnotationPlacesDue}) annotate_conf(key, "");
      if (value == "due") {
        annotate_conf(api::kAnnotationPlacesDue, core::format_rfc3339(world_.now));
      } else {
        annotate_conf(api::kAnnotationPlacesGiven, value);
      }
    } else if (verb == "controller") {
      put_controller(value);
    } else if (verb == "reservation") {
      put_reservation(value);
    } else if (verb == "reservation_goes") {
      world_.reservations.erase(value.get<std::string>());
    } else if (verb == "old_definitions") {
      world_.old_definitions = value;
    } else if (verb == "stopped") {
      world_.stop_deletions(value);
    } else if (verb == "fail") {
      if (value.contains("object")) return ScenarioRunner::act(verb, value);
      check_keys(value, {"step", "code", "message"});
      world_.refuse[value["step"]] = {code_of(value["code"]), value["message"], 0, {}, {}};
    } else if (verb == "slurmctld_restarts") {
      world_.slurmctld_pod.ready_since = world_.now;
    } else {
      if (verb == "mend") world_.refuse.clear();
      ScenarioRunner::act(verb, value);
    }
  }

  void put_reservation(const Json& want) {
    check_keys(want, {"name", "users", "nodes", "flags", "start", "end"});
    slurm::Reservation& one = world_.reservations[want.at("name")];
    one.name = want["name"];
    one.users = want.value("users", "slurm");
    one.nodes = want.at("nodes").get<std::vector<std::string>>();
    one.flags = want.value("flags", std::set<std::string, std::less<>>{"MAINT", "IGNORE_JOBS", "SPEC_NODES"});
    one.start = core::parse_rfc3339(want.at("start").get<std::string>()).value();
    one.end = core::parse_rfc3339(want.at("end").get<std::string>()).value();
  }

  static std::string reservation_text(const slurm::Reservation& one) {
    std::string out;
    for (const std::string& node : one.nodes) out += (out.empty() ? "" : ",") + node;
    for (const std::string& flag : one.flags) {
      if (flag != "MAINT" && flag != "IGNORE_JOBS" && flag != "SPEC_NODES") out += " " + flag;
    }
    return out + " " + core::format_rfc3339(*one.start) + " " + core::format_rfc3339(*one.end);
  }

  void put_claim(const Json& want) {
    const std::string name = want.at("metadata").at("name");
    if (world_.find("PersistentVolumeClaim", named(name)) == nullptr) {
      world_.put({{"kind", "PersistentVolumeClaim"},
                  {"metadata", {{"name", name}, {"uid", "claim-" + name}}},
                  {"status", {{"phase", "Bound"}}}});
    }
    Json& claim = world_.document("PersistentVolumeClaim", name);
    claim.merge_patch(want);
    claim["metadata"]["resourceVersion"] = "by hand " + std::to_string(++by_hand_);
  }

  static std::string claim_text(const Json& claim) {
    const bool given_up = !core::get_string(claim, {"metadata", "annotations", api::kAnnotationScaledIn}).empty();
    const bool owned =
        core::find(claim, {"metadata", "ownerReferences"}) != nullptr && !claim["metadata"]["ownerReferences"].empty();
    return core::get_string(claim, {"status", "phase"}) + (owned ? ", owned" : "") + (given_up ? ", given up" : "");
  }

  void put_controller(const std::string& how) {
    if (world_.find("Controller", named("demo")) == nullptr) world_.put(*World().find("Controller", named("demo")));
    world_.controller()["spec"].erase("extraConf");
    world_.add_to_conf("");
    if (how == "absent") {
      world_.remove_controller();
    } else if (how == "unreadable") {
      world_.controller()["spec"]["extraConf"] = 7;
    } else if (how == "deleting" || how == "draining" || how == "external") {
      world_.end_cluster(how != "deleting");
      if (how == "external")
        world_.controller()["spec"].update(
            {{"external", true}, {"externalConfig", {{"host", "slurmctld.site"}, {"port", 6817}}}});
    } else if (how == "ephemeral") {
      world_.controller()["spec"]["persistence"]["enabled"] = false;
      world_.slurmctld_pod.meta.created = world_.now;
    } else if (how == "without Contain") {
      world_.config_map()["data"]["slurm.conf"] = "";
    } else if (how != "present") {
      unknown(how);
    }
  }

  /// Gives the Controller a tree topology from the node labels zone and leaf. Puts into the ConfigMap a topology.yaml that has
  /// the switches named by the topology strings in `ways`.
  void load_topology(const Json& ways) {
    const api::Topology spec{api::TopologyType::kTree, {"zone", "leaf"}, {}};
    TopologyUnits units{{std::string(kTopologyRoot), ""}};
    for (const Json& way : ways) add_units(units, spec.type, way.get<std::string>(), {});
    world_.controller()["spec"]["topology"] = {{"type", "Tree"}, {"nodeLabels", spec.node_labels}};
    world_.config_map()["data"]["topology.yaml"] = render_topology(spec, units);
  }

  void annotate_conf(std::string_view key, const Json& value) {
    world_.config_map()["metadata"]["annotations"][std::string(key)] = value;
  }

  void run(const op::testing::Run& how) override {
    world_.done.clear();
    world_.events.clear();
    for (int i = 0; i < how.passes; ++i) {
      last_ = make_plan();
      const bool nothing = world_.run(last_) == 0;
      did_ = world_.done;
      if (nothing) break;
      if (i + 1 < how.passes) world_.advance(core::Duration{300});
      if (how.must_rest && i + 1 == how.passes)
        ADD_FAILURE() << "it does not come to rest:\n" << lines(did_) << last_.describe().dump(1);
    }
    did_ = world_.done;
    // No worker was deleted under a job, and no drain of others was undone.
    EXPECT_TRUE(world_.violations.empty()) << lines(world_.violations);
  }

  void expect(const std::string& what, const Json& want) override {
    if (what == "status") {
      for (const auto& [field, value] : want.items()) EXPECT_EQ(world_.status().value(field, Json()), value) << field;
    } else if (what == "pods") {
      expect_each(want, world_.pods,
                  [](const kube::PodRecord& pod) { return pod.meta.terminating() ? "Terminating" : pod.phase; });
    } else if (what == "attributes") {
      expect_each(want, world_.nodes, [](const slurm::Node& node) {
        std::string text;
        for (const std::string& feature : node.features) text += (text.empty() ? "" : ",") + feature;
        return text + (node.topology.empty() ? "" : " " + node.topology);
      });
    } else if (what == "registered") {
      std::map<std::string, std::string> found;
      for (const auto& [name, pod] : world_.pods) {
        if (const auto since = registered_since(pod)) found[name] = core::format_rfc3339(*since);
      }
      expect_each(want, found, [](const std::string& since) { return since; });
    } else if (what == "weights") {
      expect_each(want, world_.nodes, [](const slurm::Node& node) { return std::to_string(node.weight); });
    } else if (what == "claims") {
      expect_each(want, world_.documents("PersistentVolumeClaim"), claim_text);
    } else if (what == "images") {
      std::map<std::string, std::string> found;
      for (const auto& [name, pod] : world_.pods) found[name] = world_.images[name];
      expect_each(want, found, [](const std::string& image) { return image; });
    } else if (what == "reservations") {
      expect_each(want, world_.reservations, reservation_text);
    } else if (what == "finalizers") {
      EXPECT_EQ(world_.nodeset()["metadata"].value("finalizers", Json::array()), want);
    } else if (what == "protected") {
      Json found = Json::array();
      for (const auto& [name, pod] : world_.pods) {
        if (is_protected(pod)) found.push_back(name);
      }
      EXPECT_EQ(found, want);
    } else {
      ScenarioRunner::expect(what, want);
    }
  }
};

// A test that does not run in the root of the repository would find no scenario.
TEST(NodeSetScenarios, AreFound) {
  EXPECT_GE(scenario_files({"nodeset"}).size(), 10U);
}

RUN_SCENARIOS_WITH(nodeset, NodeSet, NodeSetRunner);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NodeSetScenario);

}  // namespace
}  // namespace op::nodeset::testing
