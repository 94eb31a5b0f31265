#include "slurm/accounting/entities.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "slurm/accounting/fields.hpp"

namespace slurm::accounting {

using core::Json;

const std::array<QosField, 3> kAccountFields{{
    {kDescription, "description", FieldForm::kText},
    {kOrganization, "organization", FieldForm::kText},
    {kCoordinators, "coordinators", FieldForm::kNames},
}};

const std::array<QosField, 1> kUserFields{{
    {kAdminLevel, "administrator_level", FieldForm::kText},
}};

// Paths are from Slurm's data_parser/*/parsers.c, PARSER_ARRAY(ASSOC). kAssociation has no path: it marks that the row exists.
const std::array<QosField, 22> kAssociationFields{{
    {kAssociation, "", FieldForm::kTruth},
    {kParent, "parent_account", FieldForm::kText},
    {kDefaultAccount, "is_default", FieldForm::kTruth},
    {kDefaultQos, "default/qos", FieldForm::kText},
    {kQosList, "qos", FieldForm::kNames},
    {kFairShare, "shares_raw", FieldForm::kShares},
    {"Priority", "priority", FieldForm::kOptional},
    {"GrpJobs", "max/jobs/per/count", FieldForm::kCount},
    {"GrpJobsAccrue", "max/jobs/per/accruing", FieldForm::kCount},
    {"GrpSubmitJobs", "max/jobs/per/submitted", FieldForm::kCount},
    {"GrpTRES", "max/tres/total", FieldForm::kTres},
    {"GrpTRESMins", "max/tres/group/minutes", FieldForm::kTres},
    {"GrpTRESRunMins", "max/tres/group/active", FieldForm::kTres},
    {"GrpWall", "max/per/account/wall_clock", FieldForm::kMinutes},
    {"MaxJobs", "max/jobs/active", FieldForm::kCount},
    {"MaxJobsAccrue", "max/jobs/accruing", FieldForm::kCount},
    {"MaxSubmitJobs", "max/jobs/total", FieldForm::kCount},
    {"MaxTRESMinsPerJob", "max/tres/minutes/per/job", FieldForm::kTres},
    {"MaxTRESPerJob", "max/tres/per/job", FieldForm::kTres},
    {"MaxTRESPerNode", "max/tres/per/node", FieldForm::kTres},
    {"MaxWallDurationPerJob", "max/jobs/per/wall_clock", FieldForm::kMinutes},
    {"MinPrioThreshold", "min/priority_threshold", FieldForm::kCount},
}};

namespace {

constexpr std::string_view kPriority = "Priority";
constexpr std::string_view kParentShares = "parent";
/// The value of SLURMDB_FS_USE_PARENT in slurm/slurmdb.h: the users share as if they were users of the parent.
constexpr std::int64_t kSharesOfParent = 0x7FFFFFFF;
constexpr std::string_view kPlaceEnd = ": ";

std::set<std::string> all_folded(const auto& names) {
  std::set<std::string> out;
  for (const std::string& name : names) out.insert(accounting::folded(name));
  return out;
}

Json shares_json(std::int64_t shares) {
  return shares == kSharesOfParent ? Json(kParentShares) : Json(shares);
}

void put_association(Settings& out, EntityKind kind, const Association& row) {
  const bool of_user = kind == EntityKind::kUser;
  const Place place{of_user ? accounting::folded(row.account) : "", row.partition, accounting::folded(row.cluster)};
  out[place.setting(kAssociation)] = true;
  if (of_user) {
    out[place.setting(kDefaultAccount)] = row.is_default;
  } else {
    out[place.setting(kParent)] = row.parent_account.empty() ? std::string(kRoot) : accounting::folded(row.parent_account);
  }
  out[place.setting(kDefaultQos)] = accounting::folded(row.default_qos);
  out[place.setting(kQosList)] = list_json(all_folded(row.qos));
  out[place.setting(kFairShare)] = shares_json(row.shares);
  out[place.setting(kPriority)] = json_of(row.priority, kDefault);
  put_limits(out, place.setting(""), row.limits);
}

Settings settings_of(const Account& account) {
  return {{std::string(kDescription), account.description},
          {std::string(kOrganization), account.organization},
          {std::string(kCoordinators), list_json(all_folded(account.coordinators))}};
}

Settings settings_of(const User& user) {
  return {{std::string(kAdminLevel), user.admin_levels.empty() ? "None" : *user.admin_levels.begin()}};
}

template <class Row>
Settings all_settings(EntityKind kind, const Row& row, const std::vector<std::shared_ptr<const Association>>& rows) {
  Settings out = settings_of(row);
  for (const auto& each : rows) put_association(out, kind, *each);
  return out;
}

/// Returns the name, in lower case, of the account or user that the association belongs to; "" if it belongs to none of `kind`.
std::string owner_of(EntityKind kind, const Association& row) {
  if (kind == EntityKind::kUser) return accounting::folded(row.user);
  return row.user.empty() ? accounting::folded(row.account) : "";
}

/// Returns the sacctmgr command that empties the list of QOS of the association.
std::string command(EntityKind kind, const std::string& name, const Place& place) {
  std::string out = "sacctmgr modify " + std::string(name_of(kind)) + " where name=" + name + " cluster=" + place.cluster;
  if (!place.account.empty()) out += " account=" + place.account;
  if (!place.partition.empty()) out += " partition=" + place.partition;
  return out + " set qos=\"\"";
}

core::Error unsupported(const std::string& what) {
  return {core::ErrorCode::kUnsupported, what, 0, {}, {}};
}

/// Sets one field in `body`. `value`: the wanted value. `found`: the value that slurmdbd has, or null.
void put_field(Json& body, const QosField& field, const Json& value, const Json& found) {
  if (field.name == kAssociation) return;
  if (field.name == kParent) {
    if (value != found) put(body, field.path, value);
    return;
  }
  switch (field.form) {
    case FieldForm::kTruth:
      // Send only true, because slurmdbd ignores false.
      if (value == true) put(body, field.path, true);
      return;
    case FieldForm::kShares:
      return put(body, field.path, value.is_string() ? Json(kSharesOfParent) : value);
    case FieldForm::kText:
    case FieldForm::kNames:
      return put(body, field.path, value);
    default:
      return put(body, field.path, number_json(field, value));
  }
}

}  // namespace

std::string_view name_of(EntityKind kind) {
  return kind == EntityKind::kAccount ? "account" : "user";
}

std::string Place::text() const {
  std::string out = account;
  if (!partition.empty()) out += "/" + partition;
  if (!out.empty()) out += "@";
  return out + cluster;
}

std::string Place::setting(std::string_view field) const {
  return text() + std::string(kPlaceEnd) + std::string(field);
}

std::optional<Place> place_of(std::string_view setting) {
  const std::size_t end = setting.find(kPlaceEnd);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view head = setting.substr(0, end);
  Place out;
  if (const std::size_t at = head.rfind('@'); at != std::string_view::npos) {
    const std::string_view account = head.substr(0, at);
    const std::size_t slash = account.find('/');
    out.account = account.substr(0, slash);
    if (slash != std::string_view::npos) out.partition = account.substr(slash + 1);
    head = head.substr(at + 1);
  }
  out.cluster = head;
  return out;
}

std::string_view without_place(std::string_view setting) {
  const std::size_t end = setting.find(kPlaceEnd);
  return end == std::string_view::npos ? setting : setting.substr(end + kPlaceEnd.size());
}

Settings settings_at(const Place& place, const Settings& settings) {
  const std::string prefix = place.setting("");
  Settings out;
  for (auto it = settings.lower_bound(prefix); it != settings.end() && it->first.starts_with(prefix); ++it)
    out[it->first.substr(prefix.size())] = it->second;
  return out;
}

Settings account_settings(const Account& account, const std::vector<std::shared_ptr<const Association>>& rows) {
  return all_settings(EntityKind::kAccount, account, rows);
}

Settings user_settings(const User& user, const std::vector<std::shared_ptr<const Association>>& rows) {
  return all_settings(EntityKind::kUser, user, rows);
}

std::optional<Entity> find_entity(EntityKind kind, std::string_view name, const View& view) {
  const std::string wanted = accounting::folded(name);
  std::vector<std::shared_ptr<const Association>> rows;
  for (const auto& [key, row] : *view.associations.rows) {
    if (owner_of(kind, *row) == wanted) rows.push_back(row);
  }
  const auto look = [&](const auto& table) -> std::optional<Entity> {
    for (const auto& [key, row] : *table.rows) {
      if (accounting::folded(row->name) == wanted) return Entity{row->name, all_settings(kind, *row, rows)};
    }
    return std::nullopt;
  };
  return kind == EntityKind::kAccount ? look(view.accounts) : look(view.users);
}

std::map<std::string, Entity, std::less<>> entities(EntityKind kind, const View& view) {
  std::map<std::string, std::vector<std::shared_ptr<const Association>>> rows;
  for (const auto& [key, row] : *view.associations.rows) {
    if (const std::string owner = owner_of(kind, *row); !owner.empty()) rows[owner].push_back(row);
  }
  std::map<std::string, Entity, std::less<>> out;
  const auto take = [&](const auto& table) {
    for (const auto& [key, row] : *table.rows) {
      const std::string name = accounting::folded(row->name);
      out.emplace(name, Entity{row->name, all_settings(kind, *row, rows[name])});
    }
  };
  if (kind == EntityKind::kAccount) {
    take(view.accounts);
  } else {
    take(view.users);
  }
  return out;
}

std::string entity_name_problem(EntityKind kind, std::string_view name) {
  if (const std::string other = taken_for(name); !other.empty())
    return "slurmrestd takes the name \"" + std::string(name) + "\" for " + other + ", and would change another " +
           std::string(name_of(kind)) + " or none";
  constexpr std::string_view kForbidden = "/,%\\'\"`*";
  const auto wrong = std::ranges::find_if(name, [&](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code <= ' ' || code >= 0x7F || kForbidden.contains(c);
  });
  if (wrong == name.end()) return {};
  return "the name \"" + std::string(name) +
         "\" has a character that slurmdbd takes for a separator or a wildcard, or that is not ASCII";
}

core::Result<Json> association_body(EntityKind kind, const std::string& name, const Place& place, const Settings& found,
                                    const Settings& wanted) {
  for (const auto& [setting, value] : wanted) {
    const bool known = field_of(place.setting(setting)) != nullptr;
    if (!known || setting == (kind == EntityKind::kUser ? kParent : kDefaultAccount))
      return std::unexpected(unsupported(place.setting(setting) + ": no setting of " + std::string(name_of(kind)) + "s"));
  }
  const bool exists = !found.empty();
  const auto value_in = [](const Settings& settings, const QosField& field) {
    const auto it = settings.find(field.name);
    return it == settings.end() ? default_of(field) : it->second;
  };
  // slurmrestd ignores an empty list, and crashes on a list with an empty name (24.11.5, 26.05.5).
  const auto list = wanted.find(kQosList);
  if (list != wanted.end() && list->second.empty() && found.contains(kQosList) && !found.at(std::string(kQosList)).empty())
    return std::unexpected(
        unsupported(place.setting(kQosList) + ": slurmrestd cannot empty the list. Run " + command(kind, name, place)));
  Json body{{"account", kind == EntityKind::kAccount ? name : place.account},
            {"cluster", place.cluster},
            {"user", kind == EntityKind::kUser ? name : ""}};
  if (!place.partition.empty()) body["partition"] = place.partition;
  for (const QosField& field : kAssociationFields) {
    if (field.form == FieldForm::kTres) {
      if (Json counts = tres_list(field.name, found, wanted); !counts.empty()) put(body, field.path, std::move(counts));
      continue;
    }
    // An empty list changes nothing. If the list were omitted, slurmrestd would write the inherited QOS. If the list were sent
    // as it was read, it would overwrite what an administrator has meanwhile added to the inherited QOS.
    if (field.name == kQosList && !wanted.contains(field.name)) {
      put(body, field.path, Json::array());
      continue;
    }
    const bool named = (field.name == kParent && !exists && kind == EntityKind::kAccount);
    if (!named && !wanted.contains(field.name)) continue;
    put_field(body, field, value_in(wanted.contains(field.name) ? wanted : found, field),
              exists ? value_in(found, field) : Json());
  }
  return body;
}

}  // namespace slurm::accounting
