// Accounts, users and their associations as settings, in the form that qos.hpp defines.
//
//   Settings wanted{{"Description", "Physics"}, {"site: Association", true}, {"site: GrpTRES/cpu", 64}};
//   for (const Difference& each : differences(wanted, account_settings(account, rows))) ...
//
// An account has settings of its own (kAccountFields), and so has a user (kUserFields). The name of an association's setting
// begins with the association's place: "site: GrpJobs" for an account in cluster site, "physics@site: FairShare" for a user in
// account physics, "physics/debug@site: GrpTRES/cpu" for the user's association for partition debug. field_of(), tres_of(),
// default_of(), value_of() and differences() of qos.hpp take these settings as well.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"
#include "slurm/accounting/qos.hpp"
#include "slurm/accounting/rows.hpp"

namespace slurm::accounting {

/// Slurm's built-in account and user. They always exist and are never deleted.
inline constexpr std::string_view kRoot = "root";

enum class EntityKind { kAccount, kUser };
/// Returns "account" or "user", for messages.
[[nodiscard]] std::string_view name_of(EntityKind kind);

/// The place of an association. All names are in lower case, except the partition's.
struct Place {
  std::string account;  ///< The account; "" in the settings of an account, which are all about this account.
  std::string partition;
  std::string cluster;
  /// Returns "site", "physics@site" or "physics/debug@site".
  [[nodiscard]] std::string text() const;
  /// Returns the name of the setting for a field at this place: "physics@site: GrpJobs".
  [[nodiscard]] std::string setting(std::string_view field) const;
  friend auto operator<=>(const Place&, const Place&) = default;
};
/// Returns the place of a setting, or nullopt if it has none ("Description").
[[nodiscard]] std::optional<Place> place_of(std::string_view setting);
/// Returns the setting without its place: "GrpJobs" of "site: GrpJobs".
[[nodiscard]] std::string_view without_place(std::string_view setting);

inline constexpr std::string_view kDescription = "Description";
inline constexpr std::string_view kOrganization = "Organization";
inline constexpr std::string_view kAdminLevel = "AdminLevel";
/// True: the association exists. This is the only setting that deletes something when it is reset to its default.
inline constexpr std::string_view kAssociation = "Association";
/// The parent of an account. The default is kRoot.
inline constexpr std::string_view kParent = "Parent";
/// True: this account is the user's default in this cluster. Slurm clears the setting when the user gets another default.
inline constexpr std::string_view kDefaultAccount = "Default";
/// The coordinators of the account itself, without those of the accounts above it.
inline constexpr std::string_view kCoordinators = "Coordinators";
inline constexpr std::string_view kDefaultQos = "DefaultQOS";
/// The list of QOS that the association may use. An empty list allows the QOS that its parent may use.
inline constexpr std::string_view kQosList = "QOS";
inline constexpr std::string_view kFairShare = "FairShare";

/// Description, Organization, Coordinators. slurmdbd stores no account whose description or organization is "". So instead of
/// "", slurm::WriteEntity writes the name of the account, as sacctmgr does.
extern const std::array<QosField, 3> kAccountFields;
/// AdminLevel: "None", "Operator" or "Administrator".
extern const std::array<QosField, 1> kUserFields;
/// The settings of an association: Association, Parent (of an account), Default (of a user), DefaultQOS, QOS, FairShare,
/// Priority, and its limits by the names of sacctmgr(1).
extern const std::array<QosField, 22> kAssociationFields;

/// Returns all settings of an account. `rows`: its associations that have no user, read without inherited limits.
[[nodiscard]] Settings account_settings(const Account& account, const std::vector<std::shared_ptr<const Association>>& rows);
/// Returns all settings of a user. `rows`: its associations, read without inherited limits.
[[nodiscard]] Settings user_settings(const User& user, const std::vector<std::shared_ptr<const Association>>& rows);

/// An account or user as slurmdbd has it.
struct Entity {
  std::string name;  ///< The name in slurmdbd's spelling.
  Settings settings;
};
/// Returns the account or user of this name, or nullopt. The name is compared without case.
[[nodiscard]] std::optional<Entity> find_entity(EntityKind kind, std::string_view name, const View& view);
/// Returns all accounts or all users. The keys are their names in lower case.
[[nodiscard]] std::map<std::string, Entity, std::less<>> entities(EntityKind kind, const View& view);

/// Returns why slurmrestd or slurmdbd cannot address an account or user of this name, or "".
[[nodiscard]] std::string entity_name_problem(EntityKind kind, std::string_view name);

/// Returns the body of an association for POST associations. `found`: the present settings of the association, empty if it is
/// new. `wanted`: the settings to change. The names in both maps have no place. The body contains all TRES limits and the list
/// of QOS: if a request omits them, slurmrestd clears the limits and stores inherited QOS as the association's own. The body
/// names the parent only if the parent changes, because slurmdbd otherwise skips all other changes. Error: kUnsupported, with
/// the name of a setting that slurmrestd cannot write.
[[nodiscard]] core::Result<core::Json> association_body(EntityKind kind, const std::string& name, const Place& place,
                                                        const Settings& found, const Settings& wanted);
/// Returns the settings at a place. Their names no longer contain the place.
[[nodiscard]] Settings settings_at(const Place& place, const Settings& settings);

}  // namespace slurm::accounting
