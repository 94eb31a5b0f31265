// Runs the scenarios of tests/scenarios/{controller,restapi,token}: documents in, what the controller does about them out.
//
//   controller: controller            # or restapi, token
//   key: default/demo
//   objects: [...]                    # Kubernetes documents; namespace default unless given
//   steps:
//     - say: what happens
//       do:                           # any of these, in order
//         - put: {...}                # a document, merged over the one that is there
//         - delete: Kind/name         # as a user does
//         - slurmctld: obeys          # ignores, refuses, away, forbids (our token), babbles
//         - loaded: offered           # or any hash, or "": what it runs with
//         - advance: 600              # milliseconds
//         - fail: {object: Kind/name, code: Forbidden, message: ...}
//         - mend: Kind/name
//         - restart: true             # a new process: outcomes are forgotten
//         - refusal: the words of slurmctld
//         - bad_text: of which a slurm.conf is refused
//         - slurm_node: {name, state, reason, comment, features}
//         - forget_node: name          # slurmctld no longer has it
//         - cut: Kind/name           # its watch is cut: the cache shows it as it is now, until `mend: Kind/name`
//         - job: {id, partition, state, limited, licenses, gres}   # of state RUNNING, without a limit
//         - forget_job: 7              # it has ended
//         - poll: false                # what slurmctld says now is the last that is heard of it, until `poll: true`
//       run: settle                   # plan and act until nothing is left to do (default); once; none; or so many passes
//       expect:
//         did: [ids]                  # the steps tried but events, in order; "*" stands for anything; "!": it failed
//         did_not: [ids]
//         conditions: {Ready: "False SecretMissing *"}   # status, reason, message
//         objects: {Kind/name: {...}} # what is contained in it; null: it does not exist
//         text: {Kind/name path: "*part*"}   # or a list; "!*part*", (present), (absent)
//         events: ["Warning ConfigRefused*"]
//         slurm_nodes: [names]        # what slurmctld knows
//         wake: 500                   # milliseconds; 0: none
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base64.hpp"
#include "operator/controller/observe.hpp"
#include "operator/restapi/observe.hpp"
#include "operator/testing/scenario.hpp"
#include "operator/testing/world.hpp"
#include "operator/token/observe.hpp"

namespace op::testing {
namespace {

std::pair<std::string, std::string> split(const std::string& text, char at) {
  const std::size_t place = text.find(at);
  return place == std::string::npos ? std::pair(text, std::string()) : std::pair(text.substr(0, place), text.substr(place + 1));
}

class Scenario : public ::testing::TestWithParam<std::string> {
 protected:
  World world;
  std::string controller;
  kube::Key key;
  std::vector<std::string> did;
  plan::Plan last;

  plan::Plan plan() {
    if (controller == "controller") return world.plan<controller::ControllerController>(key);
    if (controller == "restapi") return world.plan<restapi::RestApiController>(key);
    if (controller == "token") return world.plan<token::TokenController>(key);
    unknown(controller);
  }

  kube::Key named(const std::string& name) const { return {key.ns, name}; }

  void act(const Json& action) {
    const auto [verb, value] = only_item(action);
    if (verb == "put") return world.put(value);
    if (verb == "delete") {
      const auto [kind, name] = split(value.get<std::string>(), '/');
      return world.remove(kind, named(name));
    }
    if (verb == "slurmctld") {
      const std::map<std::string, Slurmctld> words{{"obeys", Slurmctld::kObeys},     {"ignores", Slurmctld::kIgnores},
                                                   {"refuses", Slurmctld::kRefuses}, {"away", Slurmctld::kAway},
                                                   {"forbids", Slurmctld::kForbids}, {"babbles", Slurmctld::kBabbles}};
      world.slurmctld = words.at(value);
    } else if (verb == "loaded") {
      world.loaded = value == "offered" ? offered() : value.get<std::string>();
    } else if (verb == "advance") {
      world.advance(core::Duration{value.get<long long>()});
    } else if (verb == "fail") {
      check_keys(value, {"object", "code", "message"});
      world.faults[value["object"]] = {code_of(value["code"]), value["message"], 0, {}, {}};
    } else if (verb == "mend") {
      const auto [kind, name] = split(value.get<std::string>(), '/');
      world.faults.erase(value.get<std::string>());
      world.mend(kind, named(name));
    } else if (verb == "cut") {
      const auto [kind, name] = split(value.get<std::string>(), '/');
      world.cut(kind, named(name));
    } else if (verb == "restart") {
      world.outcomes.clear();
    } else if (verb == "refusal") {
      world.refusal = value;
    } else if (verb == "bad_text") {
      world.bad_text = value;
    } else if (verb == "poll") {
      world.poll(value);
    } else if (verb == "forget_node") {
      world.nodes.erase(value.get<std::string>());
    } else if (verb == "job") {
      check_keys(value, {"id", "partition", "state", "limited", "licenses", "gres"});
      slurm::Job& job = world.jobs[value["id"].get<std::int64_t>()];
      job.id = value["id"];
      job.partition = value.value("partition", "");
      job.state = value.value("state", "RUNNING");
      if (value.value("limited", false)) job.end = world.now + core::Duration{3600000};
      job.licenses = value.value("licenses", std::vector<std::string>{});
      job.gres = value.value("gres", std::vector<std::string>{});
    } else if (verb == "forget_job") {
      world.jobs.erase(value.get<std::int64_t>());
    } else if (verb == "slurm_node") {
      check_keys(value, {"name", "state", "reason", "comment", "features"});
      slurm::Node& node = world.nodes[value["name"]];
      node.name = value["name"];
      node.state.base = value.value("state", "IDLE");
      node.reason = value.value("reason", "");
      node.comment = value.value("comment", "");
      node.features = value.value("features", std::vector<std::string>{});
    } else {
      unknown(verb);
    }
  }

  std::string offered() const {
    const Json* map = world.find("ConfigMap", named(key.name + "-config"));
    return map == nullptr ? "" : core::get_string(*map, {"metadata", "annotations", "slinky.slurm.net/slurm-config-hash"});
  }

  void run(const op::testing::Run& how) {
    did.clear();
    world.events.clear();
    last = {};
    for (int pass = 0; pass < how.passes; ++pass) {
      last = plan();
      if (last.step_count() == 0) return;
      std::vector<std::string> tried = world.carry_out(last);
      std::erase_if(tried, [](const std::string& id) { return id.starts_with("event "); });
      did.insert(did.end(), tried.begin(), tried.end());
      const bool failed = std::any_of(tried.begin(), tried.end(), [](const std::string& id) { return id.starts_with("!"); });
      // A failed step comes back with the engine's backoff: here it is enough to see what its outcome changes, twice.
      if (how.must_rest && failed && pass >= 3) return;
    }
    if (how.must_rest) FAIL() << "it does not come to rest:\n" << lines(did) << last.describe().dump(1);
  }

  void expect_ids(const Json& want) {
    std::vector<std::string> missing;
    bool same = want.size() == did.size();
    for (std::size_t i = 0; same && i < did.size(); ++i) same = matches(want[i].get<std::string>(), did[i]);
    std::vector<std::string> patterns;
    for (const Json& item : want) patterns.push_back(item);
    EXPECT_TRUE(same) << "wanted:\n" << lines(patterns) << "did:\n" << lines(did);
  }

  void expect_condition(const std::string& type, const Json& want) {
    const std::map<std::string, std::string> kinds{{"controller", "Controller"}, {"restapi", "RestApi"}, {"token", "Token"}};
    const Json* object = world.find(kinds.at(controller), key);
    ASSERT_NE(object, nullptr) << "the object is gone";
    std::optional<std::string> text;
    if (const Json* conditions = core::find(*object, {"status", "conditions"})) {
      for (const Json& condition : *conditions) {
        if (condition["type"] != type) continue;
        text = condition["status"].get<std::string>() + " " + condition["reason"].get<std::string>();
        if (condition["message"] != "") *text += " " + condition["message"].get<std::string>();
      }
    }
    EXPECT_TRUE(holds(want.get<std::string>(), text)) << type << found_of(want, text);
  }

  void expect_object(const std::string& what, const Json& want) {
    const auto [kind, name] = split(what, '/');
    const Json* object = world.find(kind, named(name));
    if (want.is_null()) {
      EXPECT_EQ(object, nullptr) << what << " should not exist";
    } else if (object == nullptr) {
      ADD_FAILURE() << what << " does not exist";
    } else {
      EXPECT_TRUE(core::contains(*object, want)) << what << "\n  wanted: " << want.dump(1) << "\n  found: " << object->dump(1);
    }
  }

  /// "Kind/name a.b.c": the text at a path; keys with dots in them are written with "~" for each dot. A Secret's data are
  /// decoded.
  void expect_text(const std::string& where, const Json& want) {
    const auto [what, path] = split(where, ' ');
    const auto [kind, name] = split(what, '/');
    const Json* at = world.find(kind, named(name));
    std::istringstream keys(path);
    for (std::string part; at != nullptr && std::getline(keys, part, '.');) {
      std::replace(part.begin(), part.end(), '~', '.');
      at = core::find(*at, {part});
    }
    std::optional<std::string> text;
    if (at != nullptr) text = at->is_string() ? at->get<std::string>() : at->dump();
    if (at != nullptr && kind == "Secret" && path.starts_with("data.")) text = core::base64_decode(*text).value();
    const Json patterns = want.is_array() ? want : Json::array({want});
    for (const Json& pattern : patterns)
      EXPECT_TRUE(holds(pattern.get<std::string>(), text)) << where << found_of(pattern, text);
  }

  void expect(const Json& want) {
    for (const auto& [what, value] : want.items()) {
      if (what == "did") {
        expect_ids(value);
      } else if (what == "did_not") {
        for (const Json& pattern : value) {
          for (const std::string& id : did) EXPECT_FALSE(matches(pattern.get<std::string>(), id)) << "did: " << id;
        }
      } else if (what == "conditions") {
        for (const auto& [type, text] : value.items()) expect_condition(type, text);
      } else if (what == "objects") {
        for (const auto& [name, document] : value.items()) expect_object(name, document);
      } else if (what == "text") {
        for (const auto& [where, text] : value.items()) expect_text(where, text);
      } else if (what == "events") {
        ASSERT_EQ(world.events.size(), value.size()) << lines(world.events);
        for (std::size_t i = 0; i < value.size(); ++i) {
          EXPECT_TRUE(matches(value[i].get<std::string>(), world.events[i])) << world.events[i];
        }
      } else if (what == "slurm_nodes") {
        std::vector<std::string> names;
        for (const auto& [name, node] : world.nodes) names.push_back(name);
        EXPECT_EQ(names, value.get<std::vector<std::string>>());
      } else if (what == "wake") {
        EXPECT_EQ(last.wake() ? last.wake()->count() : 0, value.get<long long>());
      } else {
        unknown(what);
      }
    }
  }
};

TEST_P(Scenario, Runs) {
  const Json scenario = from_yaml(YAML::LoadFile(GetParam()));
  check_keys(scenario, {"controller", "key", "objects", "steps"});
  controller = scenario.at("controller");
  const auto [ns, name] = split(scenario.value("key", "default/demo"), '/');
  key = {ns, name};
  for (const Json& document : scenario.value("objects", Json::array())) world.put(document);
  for (const Json& step : scenario.at("steps")) {
    SCOPED_TRACE(step.value("say", "a step"));
    check_keys(step, {"say", "do", "run", "expect"});
    for (const Json& action : step.value("do", Json::array())) act(action);
    run(run_of(step));
    expect(step.value("expect", Json::object()));
    if (HasFatalFailure()) return;
  }
}

std::vector<std::string> scenario_files() {
  std::vector<std::string> out;
  for (const char* folder : {"controller", "restapi", "token"}) {
    const std::filesystem::path path = std::filesystem::path("tests/scenarios") / folder;
    if (!std::filesystem::exists(path)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() == ".yaml") out.push_back(entry.path().string());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  const std::filesystem::path path(info.param);
  std::string out = path.parent_path().filename().string() + "_" + path.stem().string();
  std::replace_if(
      out.begin(), out.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return out;
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Scenario, ::testing::ValuesIn(scenario_files()), test_name);

}  // namespace
}  // namespace op::testing
