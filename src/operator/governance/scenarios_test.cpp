// Runs the scenarios of tests/scenarios/governance. These scenarios have extra keywords for slurmdbd: see
// tests/scenarios/README.md.
#include <gtest/gtest.h>

#include "operator/governance/testing/world.hpp"
#include "operator/testing/scenario_runner.hpp"

namespace op::governance::testing {
namespace {

using namespace op::testing;

class GovernanceRunner final : public ScenarioRunner {
 public:
  using ScenarioRunner::ScenarioRunner;

 private:
  testing::World world_;

  op::testing::World& world() override { return world_; }
  plan::Plan make_plan() override { return world_.plan<GovernanceController>(key_); }

  void act(const std::string& verb, const Json& value) override {
    if (verb == "slurmdbd") {
      const std::map<std::string, Slurmdbd> words{
          {"answers", Slurmdbd::kAnswers}, {"away", Slurmdbd::kAway}, {"unjoined", Slurmdbd::kUnjoined}};
      world_.slurmdbd = words.at(value);
    } else if (verb == "associations") {
      world_.lists_associations = value == "listed";
    } else if (verb == "qos") {
      check_keys(value, {"name", "set"});
      slurm::accounting::Settings settings;
      const Json set = value.value("set", Json::object());
      for (const auto& [setting, to] : set.items()) settings[setting] = to;
      world_.write_qos(value.at("name"), settings);
    } else if (verb == "empty_preempt") {
      world_.qos.at(value.get<std::string>())["preempt"]["list"] = Json::array();
    } else if (verb == "forget_qos") {
      world_.qos.erase(value.get<std::string>());
    } else if (verb == "account" || verb == "user") {
      check_keys(value, {"name", "set"});
      slurm::accounting::Settings settings;
      const Json set = value.value("set", Json::object());
      for (const auto& [setting, to] : set.items()) settings[setting] = to;
      world_.write_entity({kind_of(verb), value.at("name")}, settings);
    } else if (verb == "forget_account" || verb == "forget_user") {
      world_.entities.erase({kind_of(verb.substr(7)), value.get<std::string>()});
    } else if (verb == "clusters") {
      world_.clusters = value.get<std::vector<std::string>>();
    } else if (verb == "tres") {
      world_.tres = value.get<std::vector<std::string>>();
    } else {
      ScenarioRunner::act(verb, value);
    }
  }

  static slurm::accounting::EntityKind kind_of(const std::string& word) {
    return word == "account" ? slurm::accounting::EntityKind::kAccount : slurm::accounting::EntityKind::kUser;
  }

  void expect(const std::string& what, const Json& want) override {
    if (what == "accounts" || what == "users") {
      std::map<std::string, Json> all;
      for (const auto& [key, settings] : world_.entities) {
        if (key.first == kind_of(what.substr(0, what.size() - 1)) && key.second != "root") all[key.second] = text_of(settings);
      }
      return expect_each(want, all, [](const Json& text) { return text.get<std::string>(); });
    }
    if (what != "qos") return ScenarioRunner::expect(what, want);
    expect_each(want, world_.qos, [&](const Json& row) { return text_of_qos(row.at("name")); });
  }

  std::string text_of_qos(const std::string& name) { return text_of(slurm::accounting::settings_of(*world_.qos_of(name))); }

  /// Returns the settings that differ from Slurm's defaults: "Flags=NoDecay GrpJobs=4".
  static std::string text_of(const slurm::accounting::Settings& settings) {
    std::string out;
    for (const auto& [setting, value] : settings) {
      if (value == slurm::accounting::default_of(setting)) continue;
      std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      if (value.is_array()) {
        text.clear();
        for (const Json& item : value) text += (text.empty() ? "" : ",") + item.get<std::string>();
      }
      out += (out.empty() ? "" : " ") + setting + "=" + text;
    }
    return out;
  }
};

RUN_SCENARIOS_WITH(governance, Governance, GovernanceRunner);

}  // namespace
}  // namespace op::governance::testing
