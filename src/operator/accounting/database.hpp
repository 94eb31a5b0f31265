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

/// The address of slurmdbd's database, and the user and password with which slurmdbd connects.
struct Storage {
  std::string host;
  int port = 0;
  std::string database, username;
  KeyRef password;
};
/// Returns the Storage of the database that the spec names, or of the managed database. `accounting`: the name of the
/// Accounting.
[[nodiscard]] Storage storage_of(const api::StorageConfig& config, const std::string& accounting);

/// Reports whether the operator runs the database of the Accounting.
[[nodiscard]] bool managed(const Observed& observed);

/// Plans the Secret, Service and StatefulSet of the database, and adds their problems.
void plan_database(const Observed& observed, plan::Plan& plan, std::vector<Problem>& problems);

/// Reports whether the pod of the database is ready.
[[nodiscard]] bool database_ready(const Observed& observed);

/// Returns the script that runs in the database's container. The arguments of the script are the name of the database, the name
/// of its user, and options for mariadbd.
std::string serve_database_script();

}  // namespace op::accounting
