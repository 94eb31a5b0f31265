// A model of Juju: applications with units, relations with databags, secrets with grants and revisions, and leaders. It sends
// the events of a change to each unit in Juju's documented order.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "enlist/juju/hook_tools.hpp"

namespace enlist::juju::testing {

class FakeJuju {
 public:
  using Environment = std::map<std::string, std::string>;

  struct Relation {
    std::map<std::string, std::string> endpoints;  ///< The endpoint of each application.
    std::map<std::string, Databag> databags;       ///< The databag of each application.
    std::set<std::string> members{};               ///< The units that have joined, and have not departed.
  };
  struct Secret {
    std::string label, owner;
    std::vector<SharedKey> revisions;
    std::set<std::string> grants;     ///< The numbers of the relations to which it is granted.
    std::set<std::string> observers;  ///< The units that follow its revisions.
  };

  /// Runs a hook of a unit. Returns its exit code.
  std::function<int(const std::string& unit, const Environment&, HookTools&)> dispatch;
  /// Reads a file on the machine of a unit, for secret-add.
  std::function<std::string(const std::string& unit, const std::filesystem::path&)> read_file;

  std::map<std::string, std::set<std::string>> units;  ///< The units of each application.
  std::map<std::string, std::string> leaders;          ///< The leading unit of each application.
  std::map<std::string, core::Json> configs;           ///< The options of each application.
  std::map<std::string, Relation> relations;           ///< The key is the number of the relation.
  std::map<std::string, Secret> secrets;               ///< The key is the id of the secret.
  std::map<std::string, Status> statuses;              ///< The status of each unit.
  std::vector<std::string> events;  ///< The events in the order in which they were sent: "slurmd/0 config-changed".
  std::vector<std::string> calls;   ///< The changes by hook tools: "slurmctld/0 publish slurmd:0".
  std::vector<std::string> logs;
  std::set<std::string> broken_tools;  ///< The functions of HookTools that fail: "key".

  // --- what administrators do ---

  void deploy(const std::string& app, int count = 1) {
    for (int i = 0; i < count; ++i) add_unit(app);
  }
  void add_unit(const std::string& app) {
    const std::string unit = app + "/" + std::to_string(numbers_[app]++);
    units[app].insert(unit);
    const bool first = !leaders.contains(app);
    if (first) leaders[app] = unit;
    send(unit, "install");
    for (const auto& [number, relation] : relations) {
      if (relation.endpoints.contains(app)) send_relation(unit, number, "created");
    }
    send(unit, first ? "leader-elected" : "leader-settings-changed");
    send(unit, "config-changed");
    send(unit, "start");
    for (const auto& [number, relation] : relations) {
      if (relation.endpoints.contains(app)) meet(number, app, unit);
    }
    settle();
  }
  /// Integrates two applications. Returns the number of the new relation.
  std::string integrate(const std::string& a, const std::string& a_endpoint, const std::string& b,
                        const std::string& b_endpoint) {
    const std::string number = std::to_string(next_relation_++);
    relations[number].endpoints = {{a, a_endpoint}, {b, b_endpoint}};
    for (const std::string& app : {a, b}) {
      for (const std::string& unit : units[app]) send_relation(unit, number, "created");
    }
    for (const std::string& unit : std::set(units[b])) meet(number, b, unit);
    settle();
    return number;
  }
  void configure(const std::string& app, const std::string& key, const std::string& value) {
    configs[app][key] = value;
    for (const std::string& unit : std::set(units[app])) send(unit, "config-changed");
    settle();
  }
  /// Sends relation-departed, then relation-broken, then stop to the unit. Sends only relation-departed to the units of the
  /// other side. `broken_first`: sends relation-broken before relation-departed.
  void remove_unit(const std::string& unit, bool broken_first = false) {
    const std::string app = app_of(unit);
    depart(unit, broken_first);
    send(unit, "stop");
    send(unit, "remove");
    units[app].erase(unit);
    if (leaders[app] == unit) {
      leaders.erase(app);
      if (!units[app].empty()) lead(*units[app].begin());
    }
    settle();
  }
  /// Removes a unit whose Juju agent is gone: no hook of this unit runs.
  void remove_unit_by_force(const std::string& unit) {
    const std::string app = app_of(unit);
    units[app].erase(unit);
    if (leaders[app] == unit) {
      leaders.erase(app);
      if (!units[app].empty()) lead(*units[app].begin());
    }
    for (auto& [number, relation] : relations) {
      if (!relation.members.contains(unit)) continue;
      for (const std::string& other : std::set(units[other_of(relation, app)]))
        send_relation(other, number, "departed", unit, unit);
      relation.members.erase(unit);
    }
    settle();
  }
  void remove_relation(const std::string& number, bool broken_first = false) {
    const Relation relation = relations.at(number);
    const auto depart_all = [&] {
      if (relations.contains(number)) relations.at(number).members.clear();
      for (const auto& [app, endpoint] : relation.endpoints) {
        for (const std::string& unit : std::set(units[app])) {
          for (const std::string& other : units[other_of(relation, app)]) send_relation(unit, number, "departed", other, other);
        }
      }
    };
    if (!broken_first) depart_all();
    for (const auto& [app, endpoint] : relation.endpoints) {
      for (const std::string& unit : std::set(units[app])) send_relation(unit, number, "broken");
    }
    if (broken_first) depart_all();
    forget_relation(number);
    settle();
  }
  /// Lets all units depart, then breaks the relations, and then stops the units.
  void remove_application(const std::string& app) {
    const std::set<std::string> all = units[app];
    for (const std::string& unit : all) depart(unit, false);
    for (const auto& [number, relation] : std::map(relations)) {
      if (!relation.endpoints.contains(app)) continue;
      for (const std::string& unit : std::set(units[other_of(relation, app)])) send_relation(unit, number, "broken");
      forget_relation(number);
    }
    for (const std::string& unit : all) {
      send(unit, "stop");
      send(unit, "remove");
    }
    units.erase(app);
    leaders.erase(app);
    settle();
  }
  void lead(const std::string& unit) {
    leaders[app_of(unit)] = unit;
    send(unit, "leader-elected");
    settle();
  }
  /// Sends an event to all units: update-status, upgrade-charm.
  void everywhere(const std::string& event) {
    for (const auto& [app, all] : units) {
      for (const std::string& unit : std::set(all)) send(unit, event);
    }
    settle();
  }

  struct Action {
    int code = 0;
    std::map<std::string, std::string> results{};
    std::string failure{};  ///< Why the action failed; "": it did not fail.
  };
  Action act(const std::string& unit, const std::string& action, const core::Json& parameters = core::Json::object()) {
    action_ = {};
    parameters_ = parameters;
    action_.code = send(unit, "", {{"JUJU_DISPATCH_PATH", "actions/" + action}});
    settle();
    return action_;
  }
  [[nodiscard]] int count(const std::string& beginning) const {
    int out = 0;
    for (const std::string& call : calls) out += call.starts_with(beginning) ? 1 : 0;
    return out;
  }

  /// Runs a hook, and commits its changes if it succeeds. Returns its exit code.
  int send(const std::string& unit, const std::string& event, Environment environment = {}) {
    if (!event.empty()) environment["JUJU_DISPATCH_PATH"] = "hooks/" + event;
    environment["JUJU_UNIT_NAME"] = unit;
    environment["JUJU_MODEL_UUID"] = "6f1e";
    events.push_back(unit + " " + event);
    Tools tools(*this, unit);
    const int code = dispatch(unit, environment, tools);
    if (code == 0) tools.commit();
    return code;
  }
  /// Sends the events that were caused by changes of databags and secrets.
  void settle() {
    while (!pending_.empty()) {
      const auto [unit, event, environment] = pending_.front();
      pending_.pop_front();
      if (units[app_of(unit)].contains(unit)) send(unit, event, environment);
    }
  }

 private:
  void depart(const std::string& unit, bool broken_first) {
    const std::string app = app_of(unit);
    for (auto& [number, relation] : relations) {
      if (!relation.endpoints.contains(app)) continue;
      if (broken_first) send_relation(unit, number, "broken");
      for (const std::string& other : std::set(units[other_of(relation, app)])) {
        send_relation(unit, number, "departed", other, unit);
        send_relation(other, number, "departed", unit, unit);
      }
      // Until now, relation-list has listed the unit.
      relation.members.erase(unit);
      if (!broken_first) send_relation(unit, number, "broken");
    }
  }
  void forget_relation(const std::string& number) {
    relations.erase(number);
    for (auto& [id, secret] : secrets) secret.grants.erase(number);
  }
  static std::string app_of(const std::string& unit) { return unit.substr(0, unit.find('/')); }
  static std::string other_of(const Relation& relation, const std::string& app) {
    for (const auto& [other, endpoint] : relation.endpoints) {
      if (other != app) return other;
    }
    return {};
  }
  Environment relation_environment(const std::string& number, const std::string& app) {
    const Relation& relation = relations.at(number);
    return {{"JUJU_RELATION", relation.endpoints.at(app)},
            {"JUJU_RELATION_ID", relation.endpoints.at(app) + ":" + number},
            {"JUJU_REMOTE_APP", other_of(relation, app)}};
  }
  void send_relation(const std::string& unit, const std::string& number, const std::string& what,
                     const std::string& remote = {}, const std::string& departing = {}) {
    Environment environment = relation_environment(number, app_of(unit));
    // When a relation is broken, Juju may no longer know the other application.
    if (what == "broken") environment.erase("JUJU_REMOTE_APP");
    if (!remote.empty()) environment["JUJU_REMOTE_UNIT"] = remote;
    if (!departing.empty()) environment["JUJU_DEPARTING_UNIT"] = departing;
    send(unit, environment["JUJU_RELATION"] + "-relation-" + what, environment);
  }
  /// Sends relation-joined and relation-changed to the unit and the units of the other side.
  void meet(const std::string& number, const std::string& app, const std::string& unit) {
    for (const std::string& other : std::set(units[other_of(relations.at(number), app)])) {
      relations.at(number).members.insert({unit, other});
      for (const char* what : {"joined", "changed"}) {
        send_relation(unit, number, what, other);
        send_relation(other, number, what, unit);
      }
    }
  }

  class Tools final : public HookTools {
   public:
    Tools(FakeJuju& juju, std::string unit) : juju_(juju), unit_(std::move(unit)), app_(app_of(unit_)) {}

    void commit() {
      for (const auto& change : changes_) change();
    }

    core::Result<bool> is_leader() override { return leads(); }
    core::Result<core::Json> config() override { return juju_.configs[app_]; }
    core::Result<std::optional<Status>> status() override {
      const auto found = juju_.statuses.find(unit_);
      return found == juju_.statuses.end() ? std::nullopt : std::optional(found->second);
    }
    core::Result<void> set_status(const Status& status) override {
      juju_.statuses[unit_] = status;
      return {};
    }
    void log(std::string_view level, const std::string& message) override {
      juju_.logs.push_back(std::string(level) + " " + message);
    }
    core::Result<core::Json> action_parameters() override { return juju_.parameters_; }
    core::Result<void> set_results(const std::map<std::string, std::string>& results) override {
      juju_.action_.results = results;
      return {};
    }
    core::Result<void> fail_action(const std::string& message) override {
      juju_.action_.failure = message;
      return {};
    }
    core::Result<std::vector<std::string>> relations(std::string_view endpoint) override {
      std::vector<std::string> out;
      for (const auto& [number, relation] : juju_.relations) {
        const auto own = relation.endpoints.find(app_);
        if (own != relation.endpoints.end() && own->second == endpoint) out.push_back(own->second + ":" + number);
      }
      return out;
    }
    core::Result<std::string> remote_app(const std::string& id) override { return other_of(relation(id), app_); }
    core::Result<std::vector<std::string>> remote_units(const std::string& id) override {
      std::vector<std::string> out;
      for (const std::string& unit : relation(id).members) {
        if (FakeJuju::app_of(unit) != app_) out.push_back(unit);
      }
      return out;
    }
    core::Result<Databag> databag(const std::string& id, const std::string& app) override {
      if (app == app_ && !leads()) return core::fail(core::ErrorCode::kForbidden, "relation-get: permission denied");
      const auto found = relation(id).databags.find(app);
      return found == relation(id).databags.end() ? Databag() : found->second;
    }
    core::Result<void> publish(const std::string& id, const Databag& databag) override {
      if (!leads()) return core::fail(core::ErrorCode::kForbidden, "relation-set: not the leader");
      note("publish " + id);
      changes_.emplace_back([this, id, databag] {
        Databag& there = relation(id).databags[app_];
        Databag then = there;
        for (const auto& [key, value] : databag) then[key] = value;
        if (then == there) return;
        there = then;
        const std::string other = other_of(relation(id), app_);
        for (const std::string& unit : juju_.units[other]) {
          Environment environment = juju_.relation_environment(number_of(id), other);
          const std::string event = environment["JUJU_RELATION"] + "-relation-changed";
          juju_.pending_.emplace_back(unit, event, environment);
        }
      });
      return {};
    }
    core::Result<std::vector<OwnedSecret>> owned_secrets() override {
      std::vector<OwnedSecret> out;
      for (const auto& [id, secret] : juju_.secrets) {
        if (secret.owner == app_) out.push_back({id, secret.label});
      }
      return out;
    }
    core::Result<std::string> add_key(const std::string& label, const std::filesystem::path& file) override {
      if (!leads()) return core::fail(core::ErrorCode::kForbidden, "secret-add: not the leader");
      const std::string id = "secret:s" + std::to_string(++juju_.next_secret_);
      note("add-secret " + label);
      changes_.emplace_back([this, id, label, key = read(file)] { juju_.secrets[id] = {label, app_, {key}, {}, {}}; });
      return id;
    }
    core::Result<void> set_key(const std::string& id, const std::filesystem::path& file) override {
      if (!leads()) return core::fail(core::ErrorCode::kForbidden, "secret-set: not the leader");
      note("set-secret " + id);
      changes_.emplace_back([this, id, key = read(file)] {
        Secret& secret = juju_.secrets.at(id);
        secret.revisions.push_back(key);
        for (const std::string& unit : secret.observers)
          juju_.pending_.emplace_back(unit, "secret-changed", Environment{{"JUJU_SECRET_ID", id}});
      });
      return {};
    }
    core::Result<void> grant_secret(const std::string& id, const std::string& relation) override {
      note("grant-secret " + id + " " + relation);
      changes_.emplace_back([this, id, relation] { juju_.secrets.at(id).grants.insert(number_of(relation)); });
      return {};
    }
    core::Result<void> remove_secret(const std::string& id) override {
      note("remove-secret " + id);
      changes_.emplace_back([this, id] { juju_.secrets.erase(id); });
      return {};
    }
    core::Result<SharedKey> key(const std::string& id, bool peek) override {
      if (juju_.broken_tools.contains("key")) return core::fail(core::ErrorCode::kUnavailable, "secret-get: no controller");
      const auto found = juju_.secrets.find(id);
      if (found == juju_.secrets.end()) return core::fail(core::ErrorCode::kNotFound, "secret-get: secret not found");
      Secret& secret = found->second;
      bool granted = secret.owner == app_;
      for (const std::string& number : secret.grants) granted |= juju_.relations.at(number).endpoints.contains(app_);
      if (!granted) return core::fail(core::ErrorCode::kForbidden, "secret-get: permission denied");
      if (!peek) secret.observers.insert(unit_);
      return secret.revisions.back();
    }

   private:
    static std::string number_of(const std::string& id) { return id.substr(id.find(':') + 1); }
    Relation& relation(const std::string& id) { return juju_.relations.at(number_of(id)); }
    bool leads() { return juju_.leaders[app_] == unit_; }
    void note(const std::string& call) { juju_.calls.push_back(unit_ + " " + call); }
    SharedKey read(const std::filesystem::path& file) { return {file.filename().string(), juju_.read_file(unit_, file)}; }

    FakeJuju& juju_;
    std::string unit_, app_;
    std::vector<std::function<void()>> changes_;
  };

  std::map<std::string, int> numbers_;
  int next_relation_ = 0, next_secret_ = 0;
  Action action_;
  core::Json parameters_;
  std::deque<std::tuple<std::string, std::string, Environment>> pending_;
};

}  // namespace enlist::juju::testing
