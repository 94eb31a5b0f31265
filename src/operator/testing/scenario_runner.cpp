#include "operator/testing/scenario_runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base64.hpp"

namespace op::testing {

void ScenarioRunner::run_file(const std::string& file) {
  Json scenario = from_yaml(YAML::LoadFile(file));
  const Json steps = scenario.at("steps");
  scenario.erase("steps");
  begin(scenario);
  for (const Json& step : steps) {
    SCOPED_TRACE(step.value("say", "a step"));
    check_keys(step, {"say", "do", "run", "expect"});
    for (const Json& action : step.value("do", Json::array())) {
      const auto [verb, value] = only_item(action);
      act(verb, value);
    }
    run(run_of(step));
    const Json wanted = step.value("expect", Json::object());
    for (const auto& [what, want] : wanted.items()) expect(what, want);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void ScenarioRunner::begin(const Json& scenario) {
  check_keys(scenario, {"key", "objects"});
  std::tie(key_.ns, key_.name) = split(scenario.value("key", "default/demo"));
  for (const Json& document : scenario.value("objects", Json::array())) world().put(document);
}

void ScenarioRunner::act(const std::string& verb, const Json& value) {
  World& world = this->world();
  if (verb == "put") return world.put(value);
  if (verb == "delete") {
    const auto [kind, name] = split(value.get<std::string>());
    return world.remove(kind, named(name));
  }
  if (verb == "slurmctld") {
    const std::map<std::string, Slurmctld> words{{"obeys", Slurmctld::kObeys},         {"ignores", Slurmctld::kIgnores},
                                                 {"refuses", Slurmctld::kRefuses},     {"away", Slurmctld::kAway},
                                                 {"forbids", Slurmctld::kForbids},     {"babbles", Slurmctld::kBabbles},
                                                 {"elsewhere", Slurmctld::kElsewhere}, {"silent", Slurmctld::kSilent}};
    world.slurmctld = words.at(value);
  } else if (verb == "loaded") {
    world.loaded = value == "offered" ? offered() : value.get<std::string>();
  } else if (verb == "advance") {
    world.advance(core::Duration{value.get<long long>()});
  } else if (verb == "fail") {
    check_keys(value, {"object", "code", "message", "status"});
    world.faults[value["object"]] = {code_of(value["code"]), value["message"], value.value("status", 0), {}, {}};
  } else if (verb == "mend") {
    world.faults.clear();
    world.mend();
  } else if (verb == "cut") {
    const auto [kind, name] = split(value.get<std::string>());
    world.cut(kind, named(name));
  } else if (verb == "restart") {
    world.restart();
  } else if (verb == "refusal") {
    world.refusal = value;
  } else if (verb == "bad_text") {
    world.bad_text = value;
  } else if (verb == "slurm") {
    if (value != "answers" && value != "stale") unknown(value.dump());
    world.poll(value == "answers");
  } else if (verb == "release") {
    world.capabilities.release = value.dump();
    world.capabilities.topology_update = value.get<double>() > 25;
  } else if (verb == "forget") {
    world.nodes.erase(value.get<std::string>());
  } else if (verb == "job") {
    slurm::Job job = read_job(value, world.now);
    world.jobs[job.id] = std::move(job);
  } else if (verb == "end") {
    world.jobs.erase(value.get<std::int64_t>());
  } else if (verb == "registered") {
    world.registered.clear();
    for (const auto& [name, host] : value.items())
      world.registered.push_back({name, host.get<std::string>(), host == "" ? 0 : 6817});
  } else if (verb == "node") {
    slurm::Node& node = world.nodes[value.at("name")];
    node.name = value["name"];
    if (node.state.base.empty()) node.state.base = "IDLE";
    read_node(node, value);
  } else {
    unknown(verb);
  }
}

std::string ScenarioRunner::offered() {
  const Json* map = world().find("ConfigMap", named(key_.name + "-config"));
  return map == nullptr ? "" : core::get_string(*map, {"metadata", "annotations", "slinky.slurm.net/slurm-config-hash"});
}

void ScenarioRunner::run(const Run& how) {
  did_.clear();
  world().events.clear();
  last_ = {};
  for (int pass = 0; pass < how.passes; ++pass) {
    last_ = make_plan();
    if (last_.step_count() == 0) return;
    const std::vector<std::string> tried = world().carry_out(last_);
    did_.insert(did_.end(), tried.begin(), tried.end());
    const bool failed = std::any_of(tried.begin(), tried.end(), [](const std::string& id) { return id.starts_with("!"); });
    // The engine retries a failed step with a backoff. In a scenario, it is enough that a few more passes see the outcome of
    // the step.
    if (how.must_rest && failed && pass >= 3) return;
  }
  if (how.must_rest) FAIL() << "it does not come to rest:\n" << lines(did_) << last_.describe().dump(1);
}

std::optional<std::string> ScenarioRunner::condition_text(const std::string& what) {
  const std::size_t space = what.find(' ');
  const bool named_object = space != std::string::npos;
  const std::string type = named_object ? what.substr(space + 1) : what;
  const auto [kind, name] = split(what.substr(0, space));
  const Json* object = named_object ? world().find(kind, named(name)) : world().find(kind_, key_);
  const Json* conditions = object == nullptr ? nullptr : core::find(*object, {"status", "conditions"});
  if (conditions == nullptr) return {};
  for (const Json& condition : *conditions) {
    if (condition["type"] != type) continue;
    const std::string text = condition["status"].get<std::string>() + " " + condition["reason"].get<std::string>();
    const std::string message = condition["message"];
    return message.empty() ? text : text + " " + message;
  }
  return {};
}

void ScenarioRunner::expect_object(const std::string& what, const Json& want) {
  const auto [kind, name] = split(what);
  const Json* object = world().find(kind, named(name));
  if (want.is_null()) {
    EXPECT_EQ(object, nullptr) << what << " should not exist";
  } else if (object == nullptr) {
    ADD_FAILURE() << what << " does not exist";
  } else {
    EXPECT_TRUE(core::contains(*object, want)) << what << "\n  wanted: " << want.dump(1) << "\n  found: " << object->dump(1);
  }
}

/// Expects a text at a path of an object: "Kind/name a.b.c". "~" stands for a dot within a key. Data of Secrets are
/// base64-decoded before the comparison.
void ScenarioRunner::expect_text(const std::string& where, const Json& want) {
  const auto [what, path] = split(where, ' ');
  const auto [kind, name] = split(what);
  const Json* at = world().find(kind, named(name));
  std::istringstream keys(path);
  for (std::string part; at != nullptr && std::getline(keys, part, '.');) {
    std::replace(part.begin(), part.end(), '~', '.');
    at = core::find(*at, {part});
  }
  std::optional<std::string> text;
  if (at != nullptr) text = at->is_string() ? at->get<std::string>() : at->dump();
  if (at != nullptr && kind == "Secret" && path.starts_with("data.")) text = core::base64_decode(*text).value();
  const Json patterns = want.is_array() ? want : Json::array({want});
  for (const Json& pattern : patterns) EXPECT_TRUE(holds(pattern.get<std::string>(), text)) << where << found_of(pattern, text);
}

void ScenarioRunner::expect(const std::string& what, const Json& value) {
  if (what == "did") {
    expect_did(value, did_);
  } else if (what == "did_not") {
    expect_did_not(value, did_);
  } else if (what == "conditions") {
    expect_conditions(value, [&](const std::string& type) { return condition_text(type); });
  } else if (what == "objects") {
    for (const auto& [name, document] : value.items()) expect_object(name, document);
  } else if (what == "text") {
    for (const auto& [where, text] : value.items()) expect_text(where, text);
  } else if (what == "events") {
    expect_events(value, world().events);
  } else if (what == "nodes") {
    expect_each(value, world().nodes, text_of);
  } else if (what == "wake") {
    expect_wake(value, last_);
  } else {
    unknown(what);
  }
}

}  // namespace op::testing
