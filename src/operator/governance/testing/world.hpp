// A small slurmdbd beside the small Kubernetes of op::testing::World, for tests of governance plans. It has QOS, TRES and the
// associations that have a default QOS.
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
  Slurmdbd slurmdbd = Slurmdbd::kAnswers;
  std::map<std::string, Json> qos{{"normal", {{"id", 1}, {"name", "normal"}}}};  ///< As slurmrestd shows them.
  std::vector<slurm::accounting::Association> associations;
  std::vector<std::string> tres{"cpu", "mem", "node", "billing"};

  /// Returns a QOS of slurmdbd, or nullopt.
  [[nodiscard]] std::optional<slurm::accounting::Qos> qos_of(const std::string& name) const {
    const auto it = qos.find(name);
    if (it == qos.end()) return {};
    const Json list{{"qos", Json::array({it->second})}, {"errors", Json::array()}};
    return *slurm::decode_qos(list.dump()).value().rows.at(0);
  }

  /// Creates or changes a QOS, as slurmdbd does.
  void write_qos(const std::string& name, const slurm::accounting::Settings& settings) {
    const auto before = qos_of(name);
    const auto found = before ? slurm::accounting::settings_of(*before) : slurm::accounting::Settings{};
    Json row = slurm::accounting::qos_body(name, found, settings, "v0.0.45").value();
    remove_infinite(row);
    row["id"] = before ? before->id : ++last_qos_;
    qos[name] = std::move(row);
  }

 private:
  using View = slurm::accounting::View;

  /// slurmdbd drops entries with the count -1 from the lists.
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
    std::map<std::string, std::shared_ptr<const slurm::accounting::Association>> all;
    for (const auto& row : associations) all[row.key()] = std::make_shared<slurm::accounting::Association>(row);
    answered(said_.associations, std::move(all));
    return said_;
  }

  /// Like slurm::AccountingTarget, which reads the QOS live first.
  core::Result<void> run(const slurm::WriteQos& act) {
    if (auto broken = fault({"Slurm", {"", "qos"}}); !broken) return broken;
    const auto live = qos_of(act.name);
    if ((act.id == 0) == live.has_value() || (live && live->id != act.id))
      return core::fail(core::ErrorCode::kConflict, "it is another one by now");
    write_qos(act.name, act.settings);
    return {};
  }
  core::Result<void> run(const slurm::DeleteQos& act) {
    if (auto broken = fault({"Slurm", {"", "qos"}}); !broken) return broken;
    const auto live = qos_of(act.evidence.name());
    if (live && live->id != act.evidence.id()) return core::fail(core::ErrorCode::kConflict, "it is another one by now");
    qos.erase(act.evidence.name());
    return {};
  }

  core::Result<void> execute(const plan::Act& act) override {
    if (const auto* write = dynamic_cast<const slurm::WriteQos*>(&act)) return run(*write);
    if (const auto* gone = dynamic_cast<const slurm::DeleteQos*>(&act)) return run(*gone);
    return op::testing::World::execute(act);
  }

  std::int64_t last_qos_ = 1;
  View said_;  ///< The last answers of slurmdbd.
};

}  // namespace op::governance::testing
