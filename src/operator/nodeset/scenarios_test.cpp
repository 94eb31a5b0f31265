// Runs the scenarios of tests/scenarios/nodeset: a small world, what happens in it, and what the NodeSet's plans do about it.
// tests/scenarios/README.md describes them. After each step, no violation may have happened: a deletion under a job, or a
// foreign drain undone.
#include <gtest/gtest.h>

#include "api/well_known.hpp"
#include "operator/nodeset/parts.hpp"
#include "operator/nodeset/plan.hpp"
#include "operator/nodeset/testing/world.hpp"
#include "operator/testing/scenario.hpp"

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

class NodeSetScenario : public ::testing::TestWithParam<std::string> {
 protected:
  World world_;
  plan::Plan last_;
  int by_hand_ = 0;

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

  /// {labels: {a: b}, taints: [key=value:Effect], hostname: h}.
  void put_host(const Json& want) {
    kube::NodeRecord& host = world_.add_host(want["name"], want.value("labels", kube::StringMap()));
    host.taints.clear();
    for (const std::string text : want.value("taints", Json::array())) {
      const std::size_t equals = text.find('='), colon = text.rfind(':');
      host.taints.push_back({text.substr(0, equals), text.substr(equals + 1, colon - equals - 1), text.substr(colon + 1)});
    }
    host.meta.annotations.clear();
    if (want.contains("hostname")) host.meta.annotations[std::string(api::kAnnotationNodeHostnameOverride)] = want["hostname"];
  }

  void put_job(const Json& want) {
    slurm::Job job = read_job(want, world_.now);
    job.id = world_.add_job(job.nodes, job.state);
    world_.jobs[job.id] = std::move(job);
  }

  /// NAME of "Kind/NAME", which must be of that kind.
  static std::string named(const Json& what, std::string_view kind) {
    const auto [its, name] = split(what.get<std::string>());
    if (its != kind) unknown(what.dump());
    return name;
  }

  /// The time that the status asks users to confirm for a loss of Slurm's state.
  std::string told_state_loss() const {
    for (const Json& condition : world_.nodeset["status"]["conditions"]) {
      const std::string text = condition["message"], before = fmt::format("{}=", api::kAnnotationConfirmStateLoss);
      if (const auto at = text.find(before); at != std::string::npos) return text.substr(at + before.size(), 20);
    }
    return "";
  }

  void remove(const Json& what, bool orphan) {
    if (!orphan && what.get<std::string>().starts_with("Pod/")) return world_.user_deletes(named(what, "Pod"));
    if (named(what, "NodeSet") != "cpu") unknown(what.dump());
    world_.nodeset["metadata"]["deletionTimestamp"] = core::format_rfc3339(world_.now);
    if (orphan) world_.nodeset["metadata"]["finalizers"].push_back("orphan");
  }

  void act(const std::string& verb, const Json& value) {
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
    } else if (verb == "forget") {
      world_.nodes.erase(value.get<std::string>());
    } else if (verb == "pod") {
      put_pod(value);
    } else if (verb == "delete" || verb == "orphan") {
      remove(value, verb == "orphan");
    } else if (verb == "delete_without_pre_stop") {
      world_.deleted_without_pre_stop(named(value, "Pod"));
    } else if (verb == "vanish") {
      world_.pods.erase(value.get<std::string>());
    } else if (verb == "claim") {
      put_claim(value);
    } else if (verb == "claim_goes") {
      world_.claims.erase(value.get<std::string>());
    } else if (verb == "claim_event") {
      world_.claim_event = value;
    } else if (verb == "kube_node_goes") {
      world_.remove_host(value.get<std::string>());
    } else if (verb == "kube_node") {
      check_keys(value, {"name", "unschedulable", "reason", "ready", "goes", "troubles", "features", "topology", "place",
                         "lacks", "labels", "taints", "hostname"});
      put_host(value);
      KubeNode& node = world_.kube_nodes[value["name"]];
      node = {value.value("unschedulable", false), value.value("reason", ""), value.value("ready", true)};
      node.goes = value.value("goes", "");
      node.troubles = value.value("troubles", "");
      node.topology = value.value("topology", "");
      node.place = value.value("place", "");
      node.lacks = value.value("lacks", "");
      node.features = value.value("features", std::set<std::string, std::less<>>{});
    } else if (verb == "confirm_node_loss") {
      const auto now = api::from_json<api::NodeSet>(world_.nodeset);
      const std::string since = value == "told" ? told_loss(now->status.conditions).since : value.get<std::string>();
      world_.nodeset["metadata"]["annotations"][std::string(api::kAnnotationConfirmNodeLoss)] = since;
    } else if (verb == "confirm_state_loss") {
      world_.nodeset["metadata"]["annotations"][std::string(api::kAnnotationConfirmStateLoss)] =
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
      world_.partition_refusal = value;
    } else if (verb == "host_keys") {
      if (value != "absent") unknown(value.dump());
      world_.host_keys = false;
    } else if (verb == "newer") {
      world_.newer =
          value ? std::optional(Problem{"NewerThanSlurmctld", "slurmd is newer", Problem::Kind::kComing}) : std::nullopt;
    } else if (verb == "topology_loaded") {
      ControllerView& view = *world_.controller;
      view.topology = api::Topology{api::TopologyType::kTree, {"zone", "leaf"}, {}};
      view.loaded_units = {{std::string(kTopologyRoot), ""}};
      for (const Json& one : value) add_units(view.loaded_units, view.topology->type, one.get<std::string>(), {});
    } else if (verb == "topology_goes") {
      world_.controller->topology.reset();
      world_.controller->topology_goes = value;
    } else if (verb == "places") {
      if (value == "due") {
        world_.controller->places = Places{{}, core::whole_seconds(world_.now)};
      } else {
        world_.controller->places = Places{core::parse_rfc3339(value.get<std::string>()).value(), {}};
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
      world_.stopped = value;
    } else if (verb == "fail") {
      check_keys(value, {"step", "code", "message"});
      world_.refuse[value["step"]] = {code_of(value["code"]), value["message"], 0, {}, {}};
    } else if (verb == "mend") {
      world_.refuse.clear();
    } else if (verb == "advance") {
      world_.advance(core::Duration{value.get<long long>()});
    } else if (verb == "restart") {
      world_.restart();
    } else if (verb == "slurmctld_restarts") {
      world_.controller->ready_since = world_.now;
    } else {
      unknown(verb);
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
    Json claim = world_.claims.contains(name) ? world_.claims[name]
                                              : Json{{"metadata", {{"namespace", "default"}, {"uid", "claim-" + name}}},
                                                     {"status", {{"phase", "Bound"}}}};
    claim.merge_patch(want);
    claim["metadata"]["resourceVersion"] = "by hand " + std::to_string(++by_hand_);
    world_.claims[name] = std::move(claim);
  }

  static std::string claim_text(const Json& claim) {
    const bool given_up = !core::get_string(claim, {"metadata", "annotations", api::kAnnotationScaledIn}).empty();
    const bool owned =
        core::find(claim, {"metadata", "ownerReferences"}) != nullptr && !claim["metadata"]["ownerReferences"].empty();
    return core::get_string(claim, {"status", "phase"}) + (owned ? ", owned" : "") + (given_up ? ", given up" : "");
  }

  void put_controller(const std::string& how) {
    const ControllerView view = world_.controller.value_or(*World().controller);
    world_.controller = view;
    world_.controller_error.clear();
    world_.controller->contains_jobs = how != "without Contain";
    if (how == "absent") {
      world_.controller.reset();
    } else if (how == "unreadable") {
      world_.controller.reset();
      world_.controller_error = "Controller demo cannot be read: spec.x";
    } else if (how == "deleting" || how == "draining" || how == "external") {
      world_.controller->meta.deletion_timestamp = world_.now;
      world_.controller->drain_on_deletion = how != "deleting";
      world_.controller->external = how == "external";
    } else if (how == "ephemeral") {
      world_.controller->state_since = world_.now;
    } else if (how != "present" && how != "without Contain") {
      unknown(how);
    }
  }

  void run(const op::testing::Run& how) {
    world_.done.clear();
    world_.events.clear();
    for (int i = 0; i < how.passes; ++i) {
      last_ = plan_nodeset(world_.observe());
      const bool nothing = world_.run(last_) == 0;
      if (nothing) return;
      if (i + 1 < how.passes) world_.advance(core::Duration{300});
    }
    if (how.must_rest) FAIL() << "it does not come to rest:\n" << lines(world_.done) << last_.describe().dump(1);
  }

  std::optional<std::string> condition_text(const std::string& type) const {
    const std::string told = world_.condition(type), message = world_.message(type);
    if (told.empty()) return {};
    return message.empty() ? told : told + " " + message;
  }

  void expect(const std::string& what, const Json& want) {
    if (what == "did") {
      expect_did(want, world_.done);
    } else if (what == "did_not") {
      expect_did_not(want, world_.done);
    } else if (what == "conditions") {
      expect_conditions(want, [&](const std::string& type) { return condition_text(type); });
    } else if (what == "status") {
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
      expect_each(want, world_.claims, claim_text);
    } else if (what == "images") {
      std::map<std::string, std::string> found;
      for (const auto& [name, pod] : world_.pods) found[name] = world_.images[name];
      expect_each(want, found, [](const std::string& image) { return image; });
    } else if (what == "nodes") {
      expect_each(want, world_.nodes, text_of);
    } else if (what == "reservations") {
      expect_each(want, world_.reservations, reservation_text);
    } else if (what == "finalizers") {
      EXPECT_EQ(world_.nodeset["metadata"].value("finalizers", Json::array()), want);
    } else if (what == "protected") {
      Json found = Json::array();
      for (const auto& [name, pod] : world_.pods) {
        if (is_protected(pod)) found.push_back(name);
      }
      EXPECT_EQ(found, want);
    } else if (what == "events") {
      expect_events(want, world_.events);
    } else if (what == "wake") {
      expect_wake(want, last_);
    } else {
      unknown(what);
    }
  }
};

TEST_P(NodeSetScenario, Runs) {
  const Json scenario = from_yaml(YAML::LoadFile(GetParam()));
  check_keys(scenario, {"spec", "workers", "steps"});
  world_ = World(scenario.value("spec", Json::object()));
  for (const Json& ordinal : scenario.value("workers", Json::array())) world_.add_pod(ordinal);
  for (const Json& step : scenario.at("steps")) {
    SCOPED_TRACE(step.value("say", "a step"));
    check_keys(step, {"say", "do", "run", "expect"});
    for (const Json& action : step.value("do", Json::array())) {
      const auto [verb, value] = only_item(action);
      act(verb, value);
    }
    run(run_of(step));
    const Json wanted = step.value("expect", Json::object());
    for (const auto& [what, want] : wanted.items()) expect(what, want);
    EXPECT_TRUE(world_.violations.empty()) << lines(world_.violations);
    if (HasFatalFailure()) return;
  }
}

// Outside of the repository's root, no scenario would be found.
TEST(NodeSetScenarios, AreFound) {
  EXPECT_GE(scenario_files({"nodeset"}).size(), 10U);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, NodeSetScenario, ::testing::ValuesIn(scenario_files({"nodeset"})), scenario_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NodeSetScenario);

}  // namespace
}  // namespace op::nodeset::testing
