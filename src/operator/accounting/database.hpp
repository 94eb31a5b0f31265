// The MariaDB that the operator runs for an Accounting with storageConfig.managed. It is reached by nobody but slurmdbd, by one
// user, whose password is generated.
#pragma once

#include <string>
#include <string_view>

#include "core/json.hpp"
#include "operator/accounting/observed.hpp"
#include "plan/plan.hpp"

namespace op::accounting {

/// The container of its pod.
inline constexpr std::string_view kDatabaseContainer = "mariadb";

/// Where slurmdbd finds its database, and the password of its user there.
struct Storage {
  std::string host;
  int port = 0;
  std::string database, username;
  KeyRef password;
};
/// Of a spec that names one, or has a managed one. `accounting`: the name of the object.
[[nodiscard]] Storage storage_of(const api::StorageConfig& config, const std::string& accounting);

/// Whether the operator runs the database.
[[nodiscard]] bool managed(const Observed& observed);

/// Makes its Secret, Service and StatefulSet, and says what is wrong with them.
void plan_database(const Observed& observed, plan::Plan& plan, std::vector<Problem>& problems);

/// It is up to be used, as far as its pod tells.
[[nodiscard]] bool database_ready(const Observed& observed);

/// What its container does. Arguments: the database, its user, and more options for mariadbd.
std::string serve_database_script();

}  // namespace op::accounting
