// The MariaDB that the operator runs for an Accounting with storageConfig.managed. Only slurmdbd uses it, as one user with a
// generated password.
//
// Folder src/operator/accounting: the controller of Accountings. Uses operator/common, and no other controller.
#pragma once

#include <string>
#include <string_view>

#include "core/json.hpp"
#include "operator/accounting/observed.hpp"
#include "plan/plan.hpp"

namespace op::accounting {

/// The name of the container in the pod of the database.
inline constexpr std::string_view kDatabaseContainer = "mariadb";

/// The address of slurmdbd's database, and its user and password.
struct Storage {
  std::string host;
  int port = 0;
  std::string database, username;
  KeyRef password;
};
/// Returns the storage for a spec that names a database or has a managed one. `accounting`: the name of the Accounting.
[[nodiscard]] Storage storage_of(const api::StorageConfig& config, const std::string& accounting);

/// Reports whether the operator runs the database of the Accounting.
[[nodiscard]] bool managed(const Observed& observed);

/// Plans the Secret, Service and StatefulSet of the database, and adds their problems.
void plan_database(const Observed& observed, plan::Plan& plan, std::vector<Problem>& problems);

/// Reports whether the pod of the database is ready.
[[nodiscard]] bool database_ready(const Observed& observed);

/// Returns the script of the database's container. Arguments: names of the database and its user, then options for mariadbd.
std::string serve_database_script();

}  // namespace op::accounting
