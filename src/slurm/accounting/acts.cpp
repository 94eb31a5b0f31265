#include "slurm/accounting/acts.hpp"

#include <algorithm>
#include <memory>

namespace slurm {
namespace {

/// How long a list is good as evidence. It is polled every second.
constexpr core::Duration kGoodFor{15000};

/// The number of users in a message.
constexpr std::size_t kNamed = 5;

std::string association_text(const accounting::Association& row) {
  std::string out = "account " + row.account;
  if (!row.user.empty()) out += ", user " + row.user;
  if (!row.partition.empty()) out += ", partition " + row.partition;
  return out + ", cluster " + row.cluster;
}

}  // namespace

std::string some_users(const std::vector<std::string>& users) {
  std::string out;
  for (std::size_t i = 0; i < std::min(users.size(), kNamed); ++i) out += (i == 0 ? "" : "; ") + users[i];
  if (users.size() > kNamed) out += " and " + std::to_string(users.size() - kNamed) + " more";
  return out;
}

std::string use_of_qos(std::string_view qos, const accounting::View& view) {
  const std::string name = accounting::folded(qos);
  std::vector<std::string> associations, limited, preemptors;
  for (const auto& [key, row] : *view.associations.rows) {
    if (accounting::folded(row->default_qos) == name) associations.push_back(association_text(*row));
    if (row->qos.size() == 1 && accounting::folded(row->qos.front()) == name) limited.push_back(association_text(*row));
  }
  for (const auto& [key, row] : *view.qos.rows) {
    const bool preempts =
        std::ranges::any_of(row->preempts, [&](const std::string& preempted) { return accounting::folded(preempted) == name; });
    if (preempts && accounting::folded(row->name) != name) preemptors.push_back("QOS " + row->name);
  }
  if (!associations.empty()) return "it is the default of " + some_users(associations);
  if (!preemptors.empty()) return "it is preempted by " + some_users(preemptors);
  // slurmdbd would leave an empty list, and an association with an empty list may use all that the account above it may.
  return limited.empty() ? "" : "it is the only QOS that may be used by " + some_users(limited);
}

std::optional<UnusedQos> UnusedQos::of(const plan::Observing& observing, AccountingKey database, const accounting::Qos& qos,
                                       const accounting::View& view) {
  const core::MonoTime until = std::min(view.associations.requested_at, view.qos.requested_at) + kGoodFor;
  if (!view.associations.complete() || !view.qos.complete() || observing.now() > until) return {};
  if (accounting::folded(qos.name) == accounting::kNormalQos || !use_of_qos(qos.name, view).empty()) return {};
  return UnusedQos(observing, std::move(database), qos, until);
}

core::Json WriteQos::describe() const {
  core::Json values = core::Json::object();
  for (const auto& [setting, value] : settings) values[setting] = value;
  core::Json out{{"act", "slurm.WriteQos"}, {"database", database}, {"qos", name}, {"settings", std::move(values)}};
  if (id != 0) out["id"] = id;
  return out;
}

core::Json DeleteQos::describe() const {
  return {
      {"act", "slurm.DeleteQos"}, {"database", evidence.database()}, {"qos", evidence.name()}, {"evidence", evidence.kind()}};
}

plan::ActPtr write_qos(AccountingKey database, std::string name, std::int64_t id, accounting::Settings settings) {
  auto act = std::make_shared<WriteQos>();
  act->database = std::move(database);
  act->name = std::move(name);
  act->id = id;
  act->settings = std::move(settings);
  return act;
}

plan::ActPtr delete_qos(UnusedQos evidence) {
  return std::make_shared<DeleteQos>(std::move(evidence));
}

}  // namespace slurm
