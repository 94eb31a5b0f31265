#include "slurm/accounting/acts.hpp"

#include <algorithm>
#include <map>
#include <memory>

namespace slurm {
namespace {

/// The age up to which a list counts as evidence. Each list is polled about every second, or less often if a poll takes long.
constexpr core::Duration kGoodFor{15000};

/// The largest number of users that a message names.
constexpr std::size_t kNamed = 5;

std::string association_text(const accounting::Association& row) {
  std::string out = "account " + row.account;
  if (!row.user.empty()) out += ", user " + row.user;
  if (!row.partition.empty()) out += ", partition " + row.partition;
  return out + ", cluster " + row.cluster;
}

/// Compares as SQL's LIKE: `_` stands for one character, and `%` for any number of them.
bool like(std::string_view text, std::string_view pattern) {
  std::size_t at = 0, in = 0, retry_at = 0, retry_in = std::string_view::npos;
  while (at < text.size()) {
    if (in < pattern.size() && pattern[in] == '%') {
      retry_at = at;
      retry_in = ++in;
    } else if (in < pattern.size() && (pattern[in] == '_' || pattern[in] == text[at])) {
      ++at;
      ++in;
    } else if (retry_in != std::string_view::npos) {
      at = ++retry_at;
      in = retry_in;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('%', in) == std::string_view::npos;
}

/// The lineages of associations, as slurmdbd's _set_lineage() makes them: "/science/physics/0-ann/debug/". The lineages are in
/// lower case, because slurmdbd ignores case when it compares them.
class Lineages {
 public:
  explicit Lineages(const accounting::View& view) {
    for (const auto& [key, row] : *view.associations.rows) {
      if (row->user.empty())
        parents_[{accounting::folded(row->cluster), accounting::folded(row->account)}] =
            accounting::folded(row->parent_account);
    }
  }

  [[nodiscard]] std::string of(const accounting::Association& row) const {
    std::string out = "/";
    if (!row.partition.empty()) out = "/" + accounting::folded(row.partition) + out;
    if (!row.user.empty()) out = "/0-" + accounting::folded(row.user) + out;
    std::string account = accounting::folded(row.account);
    for (std::size_t depth = 0; !account.empty() && account != accounting::kRoot && depth <= parents_.size(); ++depth) {
      out = "/" + account + out;
      const auto above = parents_.find({accounting::folded(row.cluster), account});
      account = above == parents_.end() ? "" : above->second;
    }
    return out;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::string> parents_;  ///< The parent account, by cluster and account.
};

/// Returns the name of an association for messages: "physics@site", "physics/debug@site of user ann".
std::string named(const accounting::Association& row) {
  std::string out = accounting::Place{row.account, row.partition, row.cluster}.text();
  return row.user.empty() ? out : out + " of user " + row.user;
}

core::Json settings_json(const accounting::Settings& settings) {
  core::Json out = core::Json::object();
  for (const auto& [setting, value] : settings) out[setting] = value;
  return out;
}

std::string taken_along(const std::vector<std::string>& others) {
  return others.empty() ? ""
                        : "slurmdbd would also delete " + some_users(others, ", ") +
                              ", because it takes \"_\" in a name for any character";
}

}  // namespace

std::string some_users(const std::vector<std::string>& users, std::string_view between) {
  std::string out;
  for (std::size_t i = 0; i < std::min(users.size(), kNamed); ++i) out += (i == 0 ? "" : std::string(between)) + users[i];
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
  // slurmdbd would remove the QOS and leave an empty list, which allows each QOS that the association's parent may use.
  return limited.empty() ? "" : "it is the only QOS that may be used by " + some_users(limited);
}

std::optional<UnusedQos> UnusedQos::of(const plan::Observing& observing, AccountingKey database, const accounting::Qos& qos,
                                       const accounting::View& view) {
  const core::MonoTime until = std::min(view.associations.requested_at, view.qos.requested_at) + kGoodFor;
  if (!view.associations.complete() || !view.qos.complete() || observing.now() > until) return {};
  if (accounting::folded(qos.name) == accounting::kNormalQos || !use_of_qos(qos.name, view).empty()) return {};
  return UnusedQos(observing, std::move(database), qos, until);
}

std::string use_of_entity(accounting::EntityKind kind, std::string_view name, const std::set<accounting::Place>& known,
                          const accounting::View& view) {
  const std::string is = accounting::folded(name);
  const bool of_account = kind == accounting::EntityKind::kAccount;
  const Lineages lineages(view);
  const std::string pattern = (of_account ? "%/" : "%/0-") + is + "/%";
  std::set<std::string> users, children, foreign;
  std::vector<std::string> others;
  for (const auto& [key, row] : *view.associations.rows) {
    if (of_account && row->user.empty() && accounting::folded(row->parent_account) == is) {
      children.insert(row->account);
    } else if (of_account && accounting::folded(row->account) == is) {
      const accounting::Place place{"", "", accounting::folded(row->cluster)};
      if (!row->user.empty()) {
        users.insert(row->user);
      } else if (!known.contains(place)) {
        foreign.insert(place.text());
      }
    } else if (!of_account && accounting::folded(row->user) == is) {
      accounting::Place place{accounting::folded(row->account), row->partition, accounting::folded(row->cluster)};
      if (!known.contains(place)) foreign.insert(place.text());
    } else if (like(lineages.of(*row), pattern)) {
      others.push_back(named(*row));
    }
  }
  if (!users.empty()) return "it has the users " + some_users({users.begin(), users.end()}, ", ");
  if (!children.empty()) return "it is the parent of account " + some_users({children.begin(), children.end()}, ", ");
  if (!foreign.empty())
    return "it has associations that this object has not made: " + some_users({foreign.begin(), foreign.end()}, ", ");
  return taken_along(others);
}

std::string use_of_association(const accounting::Association& row, const accounting::View& view) {
  if (!row.partition.empty()) return {};  // For an association with a partition, slurmdbd deletes only this association.
  const Lineages lineages(view);
  const std::string lineage = lineages.of(row);
  std::vector<std::string> below, others;
  for (const auto& [key, other] : *view.associations.rows) {
    if (other->key() == row.key() || accounting::folded(other->cluster) != accounting::folded(row.cluster)) continue;
    const std::string theirs = lineages.of(*other);
    if (theirs.starts_with(lineage)) {
      below.push_back(named(*other));
    } else if (like(theirs, lineage + "%")) {
      others.push_back(named(*other));
    }
  }
  if (!below.empty()) return "slurmdbd would also delete " + some_users(below, ", ") + ", which is below it";
  return taken_along(others);
}

std::optional<UnusedEntity> UnusedEntity::of(const plan::Observing& observing, AccountingKey database,
                                             accounting::EntityKind kind, const std::string& name,
                                             const std::set<accounting::Place>& known, const accounting::View& view) {
  const bool of_account = kind == accounting::EntityKind::kAccount;
  const bool complete = view.associations.complete() && (of_account ? view.accounts.complete() : view.users.complete());
  const core::MonoTime read = of_account ? view.accounts.requested_at : view.users.requested_at;
  const core::MonoTime until = std::min(view.associations.requested_at, read) + kGoodFor;
  if (!complete || observing.now() > until || accounting::folded(name) == accounting::kRoot) return {};
  if (!use_of_entity(kind, name, known, view).empty()) return {};
  return UnusedEntity(observing, std::move(database), kind, name, known, until);
}

UnusedEntity::UnusedEntity(const plan::Observing& observing, AccountingKey database, accounting::EntityKind kind,
                           std::string name, std::set<accounting::Place> known, core::MonoTime good_until)
    : Evidence(observing, "UnusedEntity",
               kind == accounting::EntityKind::kAccount ? "the account has no child and no user, and is in no other cluster"
                                                        : "the user has only the associations that were made with it",
               good_until),
      database_(std::move(database)),
      entity_(kind),
      name_(std::move(name)),
      known_(std::move(known)) {}

core::Json WriteEntity::describe() const {
  core::Json out{{"act", "slurm.WriteEntity"}, {"database", database}, {"settings", settings_json(settings)}};
  out[std::string(accounting::name_of(kind))] = name;
  if (create) out["create"] = true;
  return out;
}

core::Json DeleteEntity::describe() const {
  core::Json out{{"act", "slurm.DeleteEntity"}, {"database", evidence.database()}, {"evidence", evidence.kind()}};
  out[std::string(accounting::name_of(evidence.entity()))] = evidence.name();
  return out;
}

core::Json WriteQos::describe() const {
  core::Json out{{"act", "slurm.WriteQos"}, {"database", database}, {"qos", name}, {"settings", settings_json(settings)}};
  if (id != 0) out["id"] = id;
  return out;
}

core::Json DeleteQos::describe() const {
  return {
      {"act", "slurm.DeleteQos"}, {"database", evidence.database()}, {"qos", evidence.name()}, {"evidence", evidence.kind()}};
}

plan::ActPtr write_entity(AccountingKey database, accounting::EntityKind kind, std::string name, bool create,
                          accounting::Settings settings) {
  auto act = std::make_shared<WriteEntity>();
  act->database = std::move(database);
  act->kind = kind;
  act->name = std::move(name);
  act->create = create;
  act->settings = std::move(settings);
  return act;
}

plan::ActPtr delete_entity(UnusedEntity evidence) {
  return std::make_shared<DeleteEntity>(std::move(evidence));
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
