// A simulated slurmdbd in addition to the Kubernetes of op::testing::World, for tests of governance plans. The slurmdbd has
// QOS, TRES, clusters, accounts and users.
//
//   World world;
//   world.put({{"kind", "SlurmQos"}, ...});
//   world.carry_out(world.plan<GovernanceController>({"default", "demo"}));
//
// Folder src/operator/governance/testing: what tests of governance share. Uses the folder above and operator/testing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "operator/governance/observe.hpp"
#include "operator/testing/world.hpp"
#include "slurm/accounting/acts.hpp"
#include "slurm/rest/decode_accounting.hpp"

namespace op::governance::testing {

using core::Json;

/// Whether slurmdbd can be asked. kUnjoined: no cluster has joined its Accounting.
enum class Slurmdbd { kAnswers, kAway, kUnjoined };

class World : public op::testing::World {
 public:
  using EntityKind = slurm::accounting::EntityKind;
  using EntityKey = std::pair<EntityKind, std::string>;
  using Settings = slurm::accounting::Settings;
  Slurmdbd slurmdbd = Slurmdbd::kAnswers;
  std::map<std::string, Json> qos{{"normal", {{"id", 1}, {"name", "normal"}}}};  ///< By name, as slurmrestd shows them.
  /// Accounts and users, with the settings that differ from Slurm's defaults.
  std::map<EntityKey, Settings> entities{{{EntityKind::kAccount, "root"}, {{"site: Association", true}}},
                                         {{EntityKind::kUser, "root"}, {}}};
  std::vector<std::string> clusters{"site"};
  bool lists_associations = true;  ///< Whether slurmrestd can list the associations.
  std::vector<std::string> tres{"cpu", "mem", "node", "billing"};

  /// Returns a QOS of slurmdbd, or nullopt.
  [[nodiscard]] std::optional<slurm::accounting::Qos> qos_of(const std::string& name) const {
    const auto it = qos.find(name);
    if (it == qos.end()) return {};
    const Json list{{"qos", Json::array({it->second})}, {"errors", Json::array()}};
    return *slurm::decode_qos(list.dump()).value().rows.at(0);
  }

  /// Creates or changes a QOS, as slurmdbd does.
  void write_qos(const std::string& name, const Settings& settings) {
    const auto before = qos_of(name);
    const auto found = before ? slurm::accounting::settings_of(*before) : Settings{};
    Json row = slurm::accounting::qos_body(name, found, settings, "v0.0.45").value();
    remove_infinite(row);
    row["id"] = before ? before->id : ++last_qos_;
    qos[name] = std::move(row);
  }

  /// Creates or changes an account or a user, as slurmdbd does.
  void write_entity(const EntityKey& key, const Settings& settings) {
    Settings& all = entities[key];
    if (key.first == EntityKind::kAccount && all.empty()) all["Description"] = all["Organization"] = key.second;
    for (const auto& [setting, value] : settings) {
      all[setting] = value;
      const auto place = slurm::accounting::place_of(setting);
      const std::string_view field = slurm::accounting::without_place(setting);
      if (place && field == slurm::accounting::kDefaultAccount && value == true) keep_one_default(*place, all);
    }
    for (const auto& [setting, value] : settings) {
      const auto place = slurm::accounting::place_of(setting);
      if (!place || slurm::accounting::without_place(setting) != slurm::accounting::kAssociation || value == true) continue;
      std::erase_if(all, [&](const auto& each) { return slurm::accounting::place_of(each.first) == place; });
    }
    std::erase_if(all, [](const auto& each) { return each.second == slurm::accounting::default_of(each.first); });
  }

 private:
  using View = slurm::accounting::View;

  static void keep_one_default(const slurm::accounting::Place& place, Settings& all) {
    for (auto& [setting, value] : all) {
      const auto other = slurm::accounting::place_of(setting);
      if (other && *other != place && other->cluster == place.cluster &&
          slurm::accounting::without_place(setting) == slurm::accounting::kDefaultAccount)
        value = false;
    }
  }

  /// Reports whether a change deletes the default account of a user who has others in the cluster. slurmdbd refuses that.
  [[nodiscard]] bool deletes_default(const EntityKey& key, const Settings& changes) const {
    const auto entity = entities.find(key);
    if (entity == entities.end()) return false;
    Settings all = entity->second;
    for (const auto& [setting, value] : changes) {
      all[setting] = value;
      const auto place = slurm::accounting::place_of(setting);
      if (place && slurm::accounting::without_place(setting) == slurm::accounting::kDefaultAccount && value == true)
        keep_one_default(*place, all);
    }
    for (const auto& [setting, value] : changes) {
      const auto gone = slurm::accounting::place_of(setting);
      if (!gone || slurm::accounting::without_place(setting) != slurm::accounting::kAssociation || value == true) continue;
      if (slurm::accounting::value_of(all, gone->setting(slurm::accounting::kDefaultAccount)) != true) continue;
      for (const auto& [other, there] : all) {
        const auto place = slurm::accounting::place_of(other);
        if (place && place->cluster == gone->cluster &&
            slurm::accounting::without_place(other) == slurm::accounting::kAssociation && there == true)
          return true;
      }
    }
    return false;
  }

  /// Adds an account or a user to `accounts` or `users` of `to`, and its associations to `associations`.
  static void add_rows(const EntityKey& key, const Settings& settings, View& to) {
    const auto& [kind, name] = key;
    const auto text = [&](const char* setting) { return slurm::accounting::value_of(settings, setting).get<std::string>(); };
    if (kind == EntityKind::kAccount) {
      auto row = std::make_shared<slurm::accounting::Account>();
      row->name = name;
      row->description = text("Description");
      row->organization = text("Organization");
      for (const Json& each : slurm::accounting::value_of(settings, "Coordinators")) row->coordinators.insert(each);
      add(to.accounts, name, row);
    } else {
      auto row = std::make_shared<slurm::accounting::User>();
      row->name = name;
      row->admin_levels = {text("AdminLevel")};
      add(to.users, name, row);
    }
    std::map<slurm::accounting::Place, std::shared_ptr<slurm::accounting::Association>> rows;
    for (const auto& [setting, value] : settings) {
      const auto place = slurm::accounting::place_of(setting);
      if (!place) continue;
      auto& row = rows[*place];
      if (!row) row = std::make_shared<slurm::accounting::Association>();
      row->cluster = place->cluster;
      row->partition = place->partition;
      row->account = kind == EntityKind::kAccount ? name : place->account;
      row->user = kind == EntityKind::kAccount ? "" : name;
      row->shares = row->shares == 0 ? 1 : row->shares;
      set_field(*row, std::string(slurm::accounting::without_place(setting)), value);
    }
    for (auto& [place, row] : rows) add(to.associations, row->key(), std::move(row));
  }

  static void set_field(slurm::accounting::Association& row, const std::string& field, const Json& value) {
    const std::size_t slash = field.find('/');
    if (slash != std::string::npos) {
      if (value.is_number()) row.limits.tres[field.substr(0, slash)][field.substr(slash + 1)] = value;
    } else if (field == "Parent") {
      row.parent_account = value;
    } else if (field == "Default") {
      row.is_default = value;
    } else if (field == "DefaultQOS") {
      row.default_qos = value;
    } else if (field == "QOS") {
      row.qos = value.get<std::vector<std::string>>();
    } else if (field == "FairShare") {
      row.shares = value == "parent" ? 2147483647 : value.get<std::int64_t>();
    } else if (field == "Priority") {
      if (value.is_number()) row.priority = value.get<std::int64_t>();
    } else if (field != "Association" && value.is_number()) {
      row.limits.counts[field] = value.get<std::int64_t>();
    }
  }

  template <class Rows, class Row>
  static void add(Rows& rows, const std::string& key, const std::shared_ptr<Row>& row) {
    auto all = *rows.rows;
    all[key] = row;
    rows.rows = std::make_shared<const decltype(all)>(std::move(all));
  }

  /// Removes entries with the count -1 from lists, as slurmdbd does.
  static void remove_infinite(Json& at) {
    if (!at.is_structured()) return;
    if (at.is_array()) {
      for (auto it = at.begin(); it != at.end();)
        it = it->is_object() && it->value("count", Json()) == -1 ? at.erase(it) : std::next(it);
    }
    for (Json& below : at) remove_infinite(below);
  }

  std::optional<View> accounting() override {
    if (slurmdbd == Slurmdbd::kUnjoined) return {};
    if (slurmdbd == Slurmdbd::kAway) {
      using Health = decltype(said_.qos)::Health;
      said_.qos.health = said_.qos.health == Health::kNone ? Health::kNone : Health::kStale;
      said_.qos.error = "slurmdbd is away";
      said_.associations.health = decltype(said_.associations)::Health::kNone;
      return said_;
    }
    const auto answered = [this](auto& rows, auto all) {
      rows.health = std::decay_t<decltype(rows)>::Health::kComplete;
      rows.requested_at = mono;
      rows.rows = std::make_shared<const decltype(all)>(std::move(all));
    };
    said_ = {};
    std::map<std::string, std::shared_ptr<const slurm::accounting::Qos>> all_qos;
    for (const auto& [name, row] : qos) all_qos[name] = std::make_shared<slurm::accounting::Qos>(*qos_of(name));
    answered(said_.qos, std::move(all_qos));
    std::map<std::int64_t, std::shared_ptr<const slurm::accounting::Tres>> all_tres;
    for (const std::string& name : tres) {
      const auto id = static_cast<std::int64_t>(all_tres.size() + 1);
      all_tres[id] = std::make_shared<slurm::accounting::Tres>(slurm::accounting::Tres{id, name});
    }
    answered(said_.tres, std::move(all_tres));
    std::map<std::string, std::shared_ptr<const slurm::accounting::Cluster>> all_clusters;
    for (const std::string& name : clusters) {
      all_clusters[name] = std::make_shared<slurm::accounting::Cluster>(slurm::accounting::Cluster{name, "10.0.0.1", 6817});
    }
    answered(said_.clusters, std::move(all_clusters));
    answered(said_.accounts, std::map<std::string, std::shared_ptr<const slurm::accounting::Account>>{});
    answered(said_.users, std::map<std::string, std::shared_ptr<const slurm::accounting::User>>{});
    answered(said_.associations, std::map<std::string, std::shared_ptr<const slurm::accounting::Association>>{});
    for (const auto& [entity, settings] : entities) add_rows(entity, settings, said_);
    if (!lists_associations) {
      said_.associations.health = decltype(said_.associations)::Health::kStale;
      said_.associations.error = "the list is too long";
    }
    return said_;
  }

  /// Carries out the act as slurm::AccountingTarget does: refuses it if the live QOS is not the one that the act expects.
  core::Result<void> run(const slurm::WriteQos& act) {
    if (auto broken = fault({"Slurm", {"", "qos"}}); !broken) return broken;
    const auto live = qos_of(act.name);
    if ((act.id == 0) == live.has_value() || (live && live->id != act.id))
      return core::fail(core::ErrorCode::kConflict, "another one has replaced it");
    write_qos(act.name, act.settings);
    return {};
  }
  core::Result<void> run(const slurm::DeleteQos& act) {
    if (auto broken = fault({"Slurm", {"", "qos"}}); !broken) return broken;
    const auto live = qos_of(act.evidence.name());
    if (live && live->id != act.evidence.id()) return core::fail(core::ErrorCode::kConflict, "another one has replaced it");
    qos.erase(act.evidence.name());
    return {};
  }

  core::Result<void> run(const slurm::WriteEntity& act) {
    if (auto broken = fault({"Slurm", {"", "entities"}}); !broken) return broken;
    if (act.create == entities.contains({act.kind, act.name}))
      return core::fail(core::ErrorCode::kConflict, "it is another one");
    if (deletes_default({act.kind, act.name}, act.settings))
      return core::fail(core::ErrorCode::kBusy, "it is the default account of the user");
    write_entity({act.kind, act.name}, act.settings);
    return {};
  }
  core::Result<void> run(const slurm::DeleteEntity& act) {
    if (auto broken = fault({"Slurm", {"", "entities"}}); !broken) return broken;
    const View live = *accounting();
    const slurm::UnusedEntity& evidence = act.evidence;
    if (const std::string use = slurm::use_of_entity(evidence.entity(), evidence.name(), evidence.known(), live); !use.empty())
      return core::fail(core::ErrorCode::kBusy, use);
    entities.erase({evidence.entity(), evidence.name()});
    return {};
  }

  core::Result<void> execute(const plan::Act& act) override {
    if (const auto* write = dynamic_cast<const slurm::WriteEntity*>(&act)) return run(*write);
    if (const auto* gone = dynamic_cast<const slurm::DeleteEntity*>(&act)) return run(*gone);
    if (const auto* write = dynamic_cast<const slurm::WriteQos*>(&act)) return run(*write);
    if (const auto* gone = dynamic_cast<const slurm::DeleteQos*>(&act)) return run(*gone);
    return op::testing::World::execute(act);
  }

  std::int64_t last_qos_ = 1;
  View said_;  ///< The last answers of slurmdbd.
};

}  // namespace op::governance::testing
