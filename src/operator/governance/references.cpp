#include "operator/governance/references.hpp"

#include <algorithm>
#include <optional>

#include "operator/governance/settings.hpp"

namespace op::governance {
namespace {

namespace acct = slurm::accounting;
using core::Json;

class Check {
 public:
  Check(const Claim& claim, acct::Settings wanted, const acct::Settings& found, const Names& names, const Declared& declared)
      : claim_(claim), found_(found), names_(names), declared_(declared) {
    out_.settings = std::move(wanted);
  }

  Writable run() {
    tres();
    if (claim_.subject == Subject::kQos) {
      // If slurmdbd already has this list, the mistake is in another QOS of the cycle, whose resource reports it.
      if (const auto own = out_.settings.find("Preempt");
          own != out_.settings.end() && !acct::differences({{own->first, own->second}}, found_).empty())
        report(preempt_ring(), true, "Invalid", "spec.preempt: a QOS cannot preempt itself, not even through others: ", {});
      const std::vector<std::string> absent = keep("Preempt", names_.qos);
      report(absent, false, "PreemptMissing", "spec.preempt: slurmdbd has no QOS ", Subject::kQos);
    } else if (claim_.subject == Subject::kAccount) {
      const auto& spec = std::get<api::SlurmAccountSpec>(claim_.spec);
      clusters(unknown_clusters(spec, names_.clusters), spec.clusters.empty());
      parents();
      qos(missing_qos());
      inherited_coordinators();
      const std::vector<std::string> absent = keep(acct::kCoordinators, names_.users);
      report(absent, false, "UserMissing", "spec.coordinators: slurmdbd has no user ", Subject::kUser);
    } else if (claim_.subject == Subject::kUser) {
      const auto& spec = std::get<api::SlurmUserSpec>(claim_.spec);
      clusters(unknown_clusters(spec, names_.clusters),
               std::ranges::any_of(spec.associations, [](const auto& each) { return each.clusters.empty(); }));
      const std::set<std::string> absent_qos = missing_qos();
      accounts(acct::folded(spec.default_account.value_or(spec.associations.empty() ? "" : spec.associations.front().account)));
      qos(absent_qos);
      default_qos();
    } else {
      const auto& spec = std::get<api::SlurmAssociationSpec>(claim_.spec);
      clusters(unknown_clusters(spec, names_.clusters), spec.clusters.empty());
      if (spec.user && !names_.users.contains(acct::folded(*spec.user)))
        report({*spec.user}, true, "UserMissing", "spec.user: slurmdbd has no user ", Subject::kUser);
      const std::set<std::string> absent_qos = missing_qos();
      accounts("");
      qos(absent_qos);
      if (spec.user) default_qos();
    }
    return std::move(out_);
  }

 private:
  /// Reports the `absent` names. `hold`: without these names, no setting may be written. The condition has the reason of the
  /// first report with `hold`, or else of the first report. The message of the condition has all reports.
  void report(const std::vector<std::string>& absent, bool hold, std::string_view reason, const std::string& message,
              std::optional<Subject> declares, std::string_view after = "") {
    if (absent.empty()) return;
    const bool coming = declares && std::ranges::all_of(absent, [&](const std::string& name) {
                          return declared_.contains({*declares, acct::folded(name)});
                        });
    const std::string text = message + joined(absent) + std::string(after);
    const bool first = out_.reason.empty();
    if (first || (hold && !out_.hold)) {
      out_.reason = reason;
      out_.message = text + (first ? "" : "; " + out_.message);
    } else {
      out_.message += "; " + text;
    }
    out_.coming = coming && (first || out_.coming);
    out_.hold = out_.hold || hold;
  }

  void tres() {
    if (names_.tres.empty()) return;
    std::set<std::string> absent;
    for (const auto& [setting, value] : out_.settings) {
      const std::string name(acct::tres_of(setting));
      if (!name.empty() && value.is_number() && !names_.tres.contains(name)) absent.insert(name);
    }
    const std::string known = joined({names_.tres.begin(), names_.tres.end()});
    report(
        {absent.begin(), absent.end()}, true, "TresUnknown", "slurmdbd does not know the TRES ", {},
        ", only " + known +
            ". Correct the name, or add it to AccountingStorageTRES in spec.extraConf of a Controller. Until then nothing of "
            "this object is written");
  }

  /// Reports the `absent` clusters. With `in_all`, the claim has associations in all clusters, and must wait for the first one.
  void clusters(const std::set<std::string>& absent, bool in_all) {
    const bool none =
        std::ranges::none_of(out_.settings, [](const auto& each) { return acct::place_of(each.first).has_value(); });
    const std::string known =
        names_.clusters.empty() ? "" : ". Those that have joined: " + joined({names_.clusters.begin(), names_.clusters.end()});
    report({absent.begin(), absent.end()}, none, "ClusterUnknown", "no such cluster has joined the Accounting: ", {}, known);
    if (!in_all || !names_.clusters.empty() || !out_.reason.empty()) return;
    // An account or a user can exist without a cluster, an association cannot.
    out_.hold = claim_.subject == Subject::kAssociation;
    out_.reason = "ClusterUnknown";
    out_.message = "no cluster has joined the Accounting yet. The associations are created in each cluster that joins";
    out_.coming = true;
  }

  /// Returns the cycle of parents that contains the account: "a is below b", "b is below a". Empty: there is none.
  [[nodiscard]] std::vector<std::string> ring() const {
    std::vector<std::string> out;
    for (std::string at = claim_.name; out.size() <= names_.parents.size();) {
      const auto above = names_.parents.find(at);
      if (above == names_.parents.end()) return {};
      out.push_back(at + " is below " + above->second);
      at = above->second;
      if (at == claim_.name) return out;
    }
    return {};
  }

  /// Returns the cycle in which this QOS preempts itself: "a preempts b", "b preempts a". Empty: there is none.
  [[nodiscard]] std::vector<std::string> preempt_ring() const {
    std::map<std::string, std::string> preempted_by;
    std::vector<std::string> left{claim_.name};
    while (!left.empty()) {
      const std::string at = std::move(left.back());
      left.pop_back();
      for (const std::string& next : preempts(at)) {
        if (next != claim_.name) {
          if (preempted_by.emplace(next, at).second) left.push_back(next);
          continue;
        }
        std::vector<std::string> out{at + " preempts " + next};
        for (std::string each = at; each != claim_.name; each = preempted_by.at(each))
          out.insert(out.begin(), preempted_by.at(each) + " preempts " + each);
        return out;
      }
    }
    return {};
  }

  [[nodiscard]] std::set<std::string> preempts(const std::string& qos) const {
    if (const auto own = out_.settings.find("Preempt"); qos == claim_.name && own != out_.settings.end())
      return own->second.get<std::set<std::string>>();
    const auto of = names_.preempts.find(qos);
    // If the claim does not declare this list, the operator does not write the list either.
    return of == names_.preempts.end() || qos == claim_.name ? std::set<std::string>{} : of->second;
  }

  void parents() {
    if (const std::vector<std::string> found = ring(); !found.empty())
      return report(found, true, "Invalid", "spec.parent: an account cannot be below itself: ", {});
    std::set<std::string> absent;
    for (const auto& [setting, value] : out_.settings) {
      const auto place = acct::place_of(setting);
      if (!place || acct::without_place(setting) != acct::kParent) continue;
      const std::string parent = acct::folded(value.get<std::string>());
      if (parent != acct::kRoot && !names_.accounts.contains({place->cluster, parent})) absent.insert(parent);
    }
    report({absent.begin(), absent.end()}, true, "ParentMissing", "spec.parent: slurmdbd has no account ", Subject::kAccount);
  }

  /// Removes the associations in accounts that do not exist. `first`: the account that is to be the default of a new user.
  void accounts(const std::string& first) {
    std::set<std::string> absent;
    std::erase_if(out_.settings, [&](const auto& each) {
      const auto place = acct::place_of(each.first);
      if (!place) return false;
      const std::string account = place->account.empty() ? entity_of(claim_).name : place->account;
      const bool there = names_.accounts.contains({place->cluster, account});
      if (there && !names_.leaving.contains({place->cluster, account})) return false;
      // An association that names no clusters is made in the clusters that have the account.
      const bool elsewhere =
          std::ranges::any_of(names_.accounts, [&](const auto& other) { return other.first.second == account; });
      if (!elsewhere || names_cluster(*place)) absent.insert(account);
      return true;
    });
    const bool none =
        std::ranges::none_of(out_.settings, [](const auto& each) { return acct::place_of(each.first).has_value(); });
    // If a resource declares the account that is to be the default of a new user, the user waits for this account.
    const bool waits =
        !names_.users.contains(claim_.name) && absent.contains(first) && declared_.contains({Subject::kAccount, first});
    report(
        {absent.begin(), absent.end()}, none || waits, "AccountMissing",
        (claim_.subject == Subject::kUser ? "spec.associations" : "spec.account") + std::string(": slurmdbd has no account "),
        Subject::kAccount);
  }

  /// Reports whether the resource names the cluster of this association.
  [[nodiscard]] bool names_cluster(const acct::Place& place) const {
    const auto is_named = [&](const std::vector<std::string>& clusters) {
      return std::ranges::any_of(clusters, [&](const std::string& name) { return acct::folded(name) == place.cluster; });
    };
    if (const auto* association = std::get_if<api::SlurmAssociationSpec>(&claim_.spec)) return is_named(association->clusters);
    const auto* user = std::get_if<api::SlurmUserSpec>(&claim_.spec);
    return user != nullptr && std::ranges::any_of(user->associations, [&](const api::UserAssociation& each) {
             return acct::folded(each.account) == place.account && each.partition == place.partition && is_named(each.clusters);
           });
  }

  /// Returns the names of QOS that do not exist. Includes the QOS of associations in accounts that do not exist.
  [[nodiscard]] std::set<std::string> missing_qos() const {
    std::set<std::string> out;
    for (const auto& [setting, value] : out_.settings) {
      const std::string_view field = acct::without_place(setting);
      if (field == acct::kDefaultQos && value != "" && !names_.qos.contains(value.get<std::string>())) {
        out.insert(value.get<std::string>());
      } else if (field == acct::kQosList) {
        for (const Json& name : value) {
          if (!names_.qos.contains(name.get<std::string>())) out.insert(name.get<std::string>());
        }
      }
    }
    return out;
  }

  /// Removes the QOS in `absent`. If this empties a list, nothing is written, because an association with an empty list can use
  /// all QOS of its parent. Nothing is written either if a user's list lacks the default QOS that remains.
  void qos(const std::set<std::string>& absent) {
    bool hold = false;
    for (auto it = out_.settings.begin(); it != out_.settings.end();) {
      const std::string_view field = acct::without_place(it->first);
      if (field == acct::kQosList) {
        hold = (!keep(it->first, names_.qos).empty() && it->second.empty()) || hold;
      } else if (field == acct::kDefaultQos && it->second != "" && absent.contains(it->second.get<std::string>())) {
        if (const auto place = acct::place_of(it->first); place && !place->account.empty()) awaits_default_qos_.insert(*place);
        it = out_.settings.erase(it);
        continue;
      }
      ++it;
    }
    hold = hold || std::ranges::any_of(awaits_default_qos_, [&](const acct::Place& each) { return !not_listed(each).empty(); });
    report({absent.begin(), absent.end()}, hold, "QosMissing", "slurmdbd has no QOS ", Subject::kQos);
  }

  /// Reports users' associations whose list of QOS lacks the default QOS of the association. Slurm refuses such a list, and
  /// would create a new user without the association.
  void default_qos() {
    std::set<std::string> wrong;
    for (const auto& [setting, list] : out_.settings) {
      const auto place = acct::place_of(setting);
      if (!place || acct::without_place(setting) != acct::kQosList || awaits_default_qos_.contains(*place)) continue;
      if (const std::string qos = not_listed(*place); !qos.empty()) wrong.insert(qos + " of " + place->text());
    }
    report({wrong.begin(), wrong.end()}, true, "Invalid",
           (claim_.subject == Subject::kUser ? "spec.associations" : "spec.qos") +
               std::string(": a list of QOS lacks the default QOS "),
           {}, ". Add it to the list, or set defaultQOS to one of the list. Until then nothing of this object is written");
  }

  /// Returns the default QOS of a user's association if the association's list of QOS lacks it. Otherwise returns "".
  [[nodiscard]] std::string not_listed(const acct::Place& place) const {
    const auto list = out_.settings.find(place.setting(acct::kQosList));
    if (list == out_.settings.end() || list->second.empty()) return {};
    std::string qos = default_qos_of(place);
    return std::ranges::find(list->second, Json(qos)) == list->second.end() ? qos : std::string();
  }

  /// Returns the default QOS that a user's association will have, either its own or an inherited one. "": none.
  [[nodiscard]] std::string default_qos_of(const acct::Place& place) const {
    const std::string setting = place.setting(acct::kDefaultQos);
    if (const auto wanted = out_.settings.find(setting); wanted != out_.settings.end()) return wanted->second;
    // A default QOS that the resource no longer declares is reset in this pass, so it does not count.
    const auto own = found_.find(setting);
    if (own != found_.end() && own->second != "" && !applied_settings(claim_).contains(setting)) return own->second;
    std::string account = place.account;
    for (std::size_t depth = 0; depth <= names_.accounts.size(); ++depth) {
      const auto row = names_.accounts.find({place.cluster, account});
      if (row == names_.accounts.end()) return {};
      if (!row->second.default_qos.empty() || account == acct::kRoot) return row->second.default_qos;
      account = row->second.parent.empty() ? acct::kRoot : row->second.parent;
    }
    return {};
  }

  /// Removes coordinators that the account inherits from its parents. slurmrestd does not store them in the account itself.
  void inherited_coordinators() {
    const auto list = out_.settings.find(acct::kCoordinators);
    const auto inherited = names_.inherited_coordinators.find(claim_.name);
    if (list == out_.settings.end() || inherited == names_.inherited_coordinators.end()) return;
    Json own = Json::array();
    for (const Json& name : list->second) {
      if (!inherited->second.contains(name.get<std::string>())) own.push_back(name);
    }
    list->second = std::move(own);
  }

  /// Removes the names that are not in `known` from a list. Returns the removed names.
  std::vector<std::string> keep(std::string_view setting, const std::set<std::string, std::less<>>& known) {
    std::vector<std::string> absent;
    const auto list = out_.settings.find(setting);
    if (list == out_.settings.end()) return absent;
    Json there = Json::array();
    for (const Json& name : list->second) {
      if (known.contains(name.get<std::string>())) {
        there.push_back(name);
      } else {
        absent.push_back(name.get<std::string>());
      }
    }
    list->second = std::move(there);
    return absent;
  }

  const Claim& claim_;
  const acct::Settings& found_;
  const Names& names_;
  const Declared& declared_;
  std::set<acct::Place> awaits_default_qos_;  ///< The associations of users whose declared default QOS does not exist.
  Writable out_;
};

}  // namespace

Names::Names(const acct::View& view) {
  for (const auto& [name, row] : *view.qos.rows) {
    qos.insert(acct::folded(name));
    for (const std::string& each : row->preempts) preempts[acct::folded(name)].insert(acct::folded(each));
  }
  for (const auto& [name, row] : *view.accounts.rows) {
    std::set<std::string> own;
    for (const std::string& each : row->coordinators) own.insert(acct::folded(each));
    for (const std::string& each : row->inherited_coordinators) {
      if (!own.contains(acct::folded(each))) inherited_coordinators[acct::folded(name)].insert(acct::folded(each));
    }
  }
  for (const auto& [name, row] : *view.users.rows) users.insert(acct::folded(name));
  for (const auto& [name, row] : *view.clusters.rows) clusters.insert(acct::folded(name));
  if (view.tres.complete()) {
    for (const auto& [id, row] : *view.tres.rows) tres.insert(row->name);
  }
  for (const auto& [key, row] : *view.associations.rows) {
    if (!row->user.empty()) continue;
    accounts[{acct::folded(row->cluster), acct::folded(row->account)}] = {acct::folded(row->parent_account),
                                                                          acct::folded(row->default_qos)};
  }
}

Writable writable(const Claim& claim, acct::Settings wanted, const acct::Settings& found, const Names& names,
                  const Declared& declared) {
  return Check(claim, std::move(wanted), found, names, declared).run();
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace op::governance
