#include "cli/tree.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <set>

#include "api/controller.hpp"
#include "cli/command.hpp"
#include "cli/limits.hpp"
#include "cli/slurm_access.hpp"
#include "slinky/names.hpp"
#include "slurm/accounting/qos.hpp"

namespace cli {
namespace {

using core::ErrorCode;
using core::Json;
using slurm::accounting::Association;
using slurm::accounting::folded;

/// SLURMDB_FS_USE_PARENT: the users of such an account share as if they were users of the account above.
constexpr std::int64_t kSharesOfParent = 0x7FFFFFFF;

// Reading.

std::string accounting_of(const Json& controller) {
  return core::get_string(controller, {"spec", "accountingRef", "name"});
}

/// Returns the name of the Accounting to show. Error: there is no such Accounting, or several exist and none is named.
core::Result<std::string> one_accounting(const std::vector<Json>& accountings, const std::string& ns, const std::string& name) {
  if (name.empty() && accountings.size() == 1) return kube::key_of(accountings.front()).name;
  std::string names;
  for (const Json& accounting : accountings) {
    const std::string found = kube::key_of(accounting).name;
    if (found == name) return name;
    names += (names.empty() ? "" : ", ") + found;
  }
  if (!name.empty())
    return core::fail(ErrorCode::kNotFound, fmt::format("there is no Accounting {} in namespace {}", name, ns));
  if (accountings.empty()) {
    return core::fail(ErrorCode::kNotFound,
                      fmt::format("there is no Accounting in namespace {}, and without one no accounts; -n names another "
                                  "namespace",
                                  ns));
  }
  return core::fail(ErrorCode::kInvalid, fmt::format("namespace {} has several Accountings: name one with -A ({})", ns, names));
}

std::string cluster_of_controller(const Json& controller, const TreeFacts::Cluster& asked) {
  if (!asked.shares.empty()) return asked.shares.front()->cluster;
  if (core::get_bool(controller, {"spec", "external"})) return "";
  const kube::Key key = kube::key_of(controller);
  const auto read = api::from_json<api::Controller>(controller);
  return read ? api::cluster_name(read->spec, key.ns, key.name) : "";
}

core::Result<void> read_lists(Api& api, SlurmAccess& slurm, TreeFacts& facts) {
  auto& accounting = slurm.client().accounting();
  auto in_force = slurm.await<TreeFacts::Rows<Association>>(api, [&](auto done) { accounting.associations(std::move(done)); });
  if (!in_force) return std::unexpected(in_force.error());
  auto own = slurm.await<TreeFacts::Rows<Association>>(api, [&](auto done) { accounting.own_associations(std::move(done)); });
  if (!own) return std::unexpected(own.error());
  auto accounts =
      slurm.await<TreeFacts::Rows<slurm::accounting::Account>>(api, [&](auto done) { accounting.accounts(std::move(done)); });
  if (!accounts) return std::unexpected(accounts.error());
  auto users =
      slurm.await<TreeFacts::Rows<slurm::accounting::User>>(api, [&](auto done) { accounting.users(std::move(done)); });
  if (!users) return std::unexpected(users.error());
  facts.in_force = std::move(*in_force);
  facts.own = std::move(*own);
  facts.accounts = std::move(*accounts);
  facts.users = std::move(*users);
  return {};
}

// The document.

Json limits_json(const slurm::accounting::Limits& limits) {
  Json out = Json::object();
  for (const auto& [name, number] : limits.counts) {
    if (const auto* value = std::get_if<std::int64_t>(&number)) out[name] = *value;
  }
  for (const auto& [name, values] : limits.tres) {
    for (const auto& [tres, value] : values) {
      if (value >= 0) out[name][tres] = value;
    }
  }
  return out;
}

Json usage_json(const slurm::accounting::Share* share) {
  if (share == nullptr) return nullptr;
  Json minutes = Json::object();
  for (const auto& [tres, seconds] : share->tres_seconds) {
    if (const auto whole = static_cast<std::int64_t>(seconds / 60); whole > 0) minutes[tres] = whole;
  }
  Json out{{"tresMinutes", std::move(minutes)}};
  out["ofParent"] = share->usage ? Json(*share->usage) : Json();
  // Omits an account's fair-share factor, because the factor has a meaning only for users.
  out["fairShareFactor"] = share->is_user && share->factor ? Json(*share->factor) : Json();
  return out;
}

/// The tree of one cluster.
class AccountTree {
 public:
  AccountTree(const TreeFacts& facts, const std::string& cluster) : facts_(facts) {
    for (const auto& row : facts.own) own_[id_of(*row)] = row.get();
    for (const auto& row : facts.in_force) {
      if (folded(row->cluster) != cluster) continue;
      if (row->user.empty()) {
        accounts_[folded(row->account)] = row.get();
      } else {
        users_[folded(row->account)].push_back(row.get());
      }
    }
    for (const auto& [name, row] : accounts_) below_[folded(row->parent_account)].push_back(name);
    for (auto& [account, rows] : users_)
      std::ranges::sort(rows, {}, [](const Association* row) { return std::pair(row->user, row->partition); });
    for (const auto& asked : facts.clusters) {
      for (const auto& share : asked.shares) {
        if (folded(share->cluster) == cluster) shares_[share_id(*share)] = share.get();
      }
    }
  }

  Json rows() {
    Json out = Json::array();
    for (const auto& [name, row] : accounts_) {
      if (!accounts_.contains(folded(row->parent_account))) add(name, 0, out);
    }
    // Adds the remaining accounts. Their parents form a ring, so no account is at the top.
    for (const auto& [name, row] : accounts_) add(name, 0, out);
    return out;
  }

 private:
  static std::string id_of(const Association& row) {
    return folded(row.cluster) + "/" + folded(row.account) + "/" + row.user + "/" + row.partition;
  }
  static std::string share_id(const slurm::accounting::Share& share) {
    return share.is_user ? folded(share.parent) + "/" + share.name + "/" + share.partition : folded(share.name) + "//";
  }

  void add(const std::string& account, int level, Json& out) {
    if (!seen_.insert(account).second) return;
    out.push_back(row_json(*accounts_.at(account), level));
    if (const auto users = users_.find(account); users != users_.end()) {
      for (const Association* user : users->second) out.push_back(row_json(*user, level + 1));
    }
    if (const auto below = below_.find(account); below != below_.end()) {
      for (const std::string& name : below->second) add(name, level + 1, out);
    }
  }

  Json row_json(const Association& row, int level) const {
    const auto own = own_.find(id_of(row));
    const auto share = shares_.find(folded(row.account) + "/" + row.user + "/" + row.partition);
    Json out{{"account", row.account}, {"user", row.user}, {"partition", row.partition}, {"level", level}};
    out["parent"] = row.user.empty() ? row.parent_account : row.account;
    out["limits"] = own == own_.end() ? Json() : limits_json(own->second->limits);
    out["fairShare"] = row.shares == kSharesOfParent ? Json("parent") : Json(row.shares);
    out["defaultQos"] = row.default_qos;
    std::vector<std::string> qos = row.qos;
    std::ranges::sort(qos);
    out["qos"] = qos;
    out["usage"] = usage_json(share == shares_.end() ? nullptr : share->second);
    if (row.user.empty()) {
      const auto it =
          std::ranges::find_if(facts_.accounts, [&](const auto& a) { return folded(a->name) == folded(row.account); });
      out["description"] = it == facts_.accounts.end() ? "" : (*it)->description;
      out["organization"] = it == facts_.accounts.end() ? "" : (*it)->organization;
      return out;
    }
    out["isDefault"] = row.is_default;
    const auto it = std::ranges::find_if(facts_.users, [&](const auto& u) { return u->name == row.user; });
    out["adminLevels"] = Json::array();
    if (it == facts_.users.end()) return out;
    for (const std::string& level_name : (*it)->admin_levels) {
      if (level_name != "None" && level_name != "Not Set") out["adminLevels"].push_back(level_name);
    }
    return out;
  }

  const TreeFacts& facts_;
  std::map<std::string, const Association*> own_, accounts_;
  std::map<std::string, std::vector<const Association*>> users_;
  std::map<std::string, std::vector<std::string>> below_;
  std::map<std::string, const slurm::accounting::Share*> shares_;
  std::set<std::string> seen_;
};

// Text.

std::string limits_text(const Json& limits) {
  if (limits.is_null()) return "?";
  std::string out;
  for (const auto& [name, value] : limits.items()) {
    const LimitKind* kind = limit_kind(name);
    std::string text;
    if (value.is_object()) {
      for (const auto& [tres, count] : value.items()) {
        // Shows minutes of memory as plain numbers, like sacctmgr.
        const bool minutes = kind != nullptr && kind->measure != Measure::kTres && kind->measure != Measure::kJobTres &&
                             kind->measure != Measure::kNodeTres;
        const auto number = count.get<std::int64_t>();
        text += (text.empty() ? "" : ",") + tres + "=" + (minutes ? std::to_string(number) : tres_count(tres, number));
      }
    } else {
      const bool wall = kind != nullptr && (kind->measure == Measure::kJobWall || kind->measure == Measure::kUsedWall);
      text = wall ? slurm_minutes(value.get<std::int64_t>()) : value.dump();
    }
    out += (out.empty() ? "" : " ") + name + "=" + text;
  }
  return out;
}

/// Returns the used minutes of CPUs and GRES, because sites usually bill for these. Omits other TRES.
std::string minutes_text(const Json& usage) {
  std::string out;
  if (!usage.is_object()) return out;
  for (const auto& [tres, minutes] : usage["tresMinutes"].items()) {
    if (tres != "cpu" && !tres.starts_with("gres/")) continue;
    out += (out.empty() ? "" : ",") + tres + "=" + std::to_string(minutes.get<std::int64_t>());
  }
  return out.empty() ? "0" : out;
}

std::string fraction_text(const Json& usage, const char* key, const char* format) {
  if (!usage.is_object() || !usage[key].is_number()) return "";
  const double number = usage[key].get<double>();
  return std::string_view(format) == "%" ? fmt::format("{:.1f}%", number * 100) : fmt::format("{:.3f}", number);
}

std::string account_tree_text(const Json& cluster, const Style& style) {
  const std::string controller = core::get_string(cluster, {"controller"});
  std::string out = style.paint(Tone::kStrong, "Cluster " + printable(core::get_string(cluster, {"cluster"}))) +
                    (controller.empty() ? "" : " (Controller " + controller + ")") + "\n";
  Table table({"ACCOUNT", "USER", "PARTITION", "OWN LIMITS", "DEFAULT QOS", "QOS", "SHARES", "USED MINUTES", "OF PARENT",
               "FAIR SHARE"});
  for (const Json& row : cluster["associations"]) {
    const auto level = static_cast<std::size_t>(core::get_int(row, {"level"}));
    std::string qos;
    for (const Json& name : row["qos"]) qos += (qos.empty() ? "" : ",") + name.get<std::string>();
    const Json& shares = row["fairShare"];
    const Json& usage = row["usage"];
    table.add({std::string(2 * level, ' ') + core::get_string(row, {"account"}), core::get_string(row, {"user"}),
               core::get_string(row, {"partition"}), limits_text(row["limits"]), core::get_string(row, {"defaultQos"}), qos,
               shares.is_string() ? shares.get<std::string>() : shares.dump(), minutes_text(usage),
               fraction_text(usage, "ofParent", "%"), fraction_text(usage, "fairShareFactor", "")});
  }
  if (cluster["associations"].empty()) return out + "  It has no accounts.\n";
  out += table.text(style, "  ");
  if (const std::string why = core::get_string(cluster, {"usageUnknown"}); !why.empty())
    out += "  Usage is not shown: " + printable(why) + "\n";
  return out;
}

}  // namespace

core::Result<TreeFacts> read_tree(Api& api, const std::string& ns, const std::string& accounting, const std::string& cluster) {
  auto lists = api.lists({{slinky::resources::kController, ns},
                          {slinky::resources::kRestApi, ns},
                          {.resource = slinky::resources::kAccounting, .ns = ns, .optional = true}});
  for (const auto& list : lists) {
    if (!list) return std::unexpected(list.error());
  }
  std::vector<Json>& controllers = *lists[0];
  TreeFacts out;
  out.ns = ns;
  if (!cluster.empty()) {
    auto controller = one_controller(controllers, ns, cluster);
    if (!controller) return std::unexpected(controller.error());
    out.accounting = accounting_of(*controller);
    if (out.accounting.empty()) {
      return core::fail(
          ErrorCode::kNotFound,
          fmt::format("cluster {} has no accounting (spec.accountingRef of its Controller), and so no accounts", cluster));
    }
    controllers = {std::move(*controller)};
    out.only_these = true;
  } else {
    auto name = one_accounting(*lists[2], ns, accounting);
    if (!name) return std::unexpected(name.error());
    out.accounting = std::move(*name);
    std::erase_if(controllers, [&](const Json& controller) { return accounting_of(controller) != out.accounting; });
    if (controllers.empty()) {
      return core::fail(
          ErrorCode::kNotFound,
          fmt::format(
              "no Controller in namespace {} names Accounting {} (spec.accountingRef), so no slurmrestd can be queried for it",
              ns, out.accounting));
    }
  }
  bool read = false;
  std::optional<core::Error> failed;
  for (const Json& controller : controllers) {
    TreeFacts::Cluster& asked = out.clusters.emplace_back();
    asked.controller = kube::key_of(controller).name;
    auto slurm = reach_slurm(api, controller, *lists[1]);
    std::optional<core::Error> error;
    if (!slurm) {
      error = slurm.error();
    } else {
      if (const auto listed = read ? core::Result<void>() : read_lists(api, **slurm, out); !listed) {
        error = listed.error();
      } else {
        read = true;
      }
      auto shares = (*slurm)->await<TreeFacts::Rows<slurm::accounting::Share>>(
          api, [&](auto done) { (*slurm)->client().shares(std::move(done)); });
      if (shares) {
        asked.shares = std::move(*shares);
      } else {
        asked.why_not = shares.error().message;
      }
    }
    if (error && error->code == ErrorCode::kCancelled) return std::unexpected(*error);
    if (error && !slurm) asked.why_not = error->message;
    if (error) {
      const core::Error told = error->with("cluster " + asked.controller);
      if (!failed) {
        failed = told;
      } else {
        failed->message += "; " + told.message;
      }
    }
    asked.name = cluster_of_controller(controller, asked);
  }
  if (!read) return std::unexpected(*failed);
  return out;
}

Json tree_document(const TreeFacts& facts) {
  std::map<std::string, std::string> names;
  for (const auto& row : facts.in_force) names.emplace(folded(row->cluster), row->cluster);
  std::map<std::string, const TreeFacts::Cluster*> asked;
  for (const auto& cluster : facts.clusters) {
    if (cluster.name.empty()) continue;
    asked.emplace(folded(cluster.name), &cluster);
    names.emplace(folded(cluster.name), cluster.name);
  }
  Json items = Json::array();
  for (const auto& [key, name] : names) {
    const auto it = asked.find(key);
    if (it == asked.end() && facts.only_these) continue;
    Json item{{"cluster", name}, {"associations", AccountTree(facts, key).rows()}};
    item["controller"] = it == asked.end() ? "" : it->second->controller;
    item["usageUnknown"] = it == asked.end() ? "no Controller of this namespace is of this cluster" : it->second->why_not;
    items.push_back(std::move(item));
  }
  return {{"apiVersion", "cli.slinky.slurm.net/v1"},
          {"kind", "AccountTree"},
          {"namespace", facts.ns},
          {"accounting", facts.accounting},
          {"items", std::move(items)}};
}

std::string tree_text(const Json& document, const Style& style) {
  std::string out;
  for (const Json& cluster : document["items"]) out += (out.empty() ? "" : "\n") + account_tree_text(cluster, style);
  return out;
}

Command tree_command() {
  const auto declare = [](CLI::App& app) -> Run {
    struct Arguments {
      std::string accounting, cluster;
    };
    auto given = std::make_shared<Arguments>();
    CLI::Option* const accounting =
        app.add_option("--accounting", given->accounting, "An Accounting (default: the only one of the namespace)");
    app.add_option("--cluster", given->cluster, "Only the cluster of this Controller")->excludes(accounting);
    return [given](Context& context) -> int {
      const auto api = context.api();
      if (!api) return context.fail(api.error());
      const auto facts = read_tree(**api, context.one_ns(), given->accounting, given->cluster);
      if (!facts) return context.fail(facts.error());
      const Json document = tree_document(*facts);
      context.out(context.options().format == Format::kTable ? tree_text(document, context.style())
                                                             : render(document, context.options().format));
      return kDone;
    };
  };
  return {.path = "tree",
          .about = "Accounts and users with their limits, QOS, fair share and usage",
          .formats = true,
          .declare = declare};
}

}  // namespace cli
