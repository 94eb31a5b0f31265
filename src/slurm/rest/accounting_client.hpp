// Reads slurmdbd's lists through a slurmrestd, and writes QOS, accounts, users and associations. Part of Client: both share one
// connection and negotiation.
//
//   client.accounting().qos([](const auto& rows) { ... });
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "slurm/accounting/entities.hpp"
#include "slurm/accounting/model.hpp"
#include "slurm/accounting/qos.hpp"
#include "slurm/accounting/usage.hpp"

namespace slurm {

class Connection;

/// Calls `done` in the same way as Client. Has the errors of Client, and kUnsupported if slurmrestd has not loaded
/// openapi/slurmdbd. slurmdbd's lists have no update_time, so each call reads the whole list.
class AccountingClient {
 public:
  template <class Row>
  using Done = std::function<void(core::Result<std::vector<std::shared_ptr<const Row>>>)>;

  explicit AccountingClient(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  AccountingClient(const AccountingClient&) = delete;
  AccountingClient& operator=(const AccountingClient&) = delete;
  ~AccountingClient() = default;

  void tres(Done<accounting::Tres> done);
  void qos(Done<accounting::Qos> done);
  /// Reads the accounts with their coordinators.
  void accounts(Done<accounting::Account> done);
  void users(Done<accounting::User> done);
  void associations(Done<accounting::Association> done);
  /// Reads the associations. Each has only the limits and QOS that are set on itself, and none that it inherits.
  void own_associations(Done<accounting::Association> done);
  void clusters(Done<accounting::Cluster> done);
  /// Reads the jobs in the QOS `id` and in this state ("running") from slurmdbd, which lacks jobs held since submission.
  void jobs_in_qos(std::int64_t id, const std::string& state, Done<accounting::JobUse> done);
  /// Reads the job with this number from slurmdbd, even if slurmctld has forgotten it; several jobs if the number was used
  /// again. slurmdbd lacks jobs that have been held since their submission.
  void job(std::int64_t id, Done<accounting::QueuedJob> done);
  /// Writes the derived exit code of a job. slurmdbd changes the youngest job of this number in each of its clusters. Error:
  /// kNotFound if slurmdbd has no such job.
  void set_exit_code(std::int64_t id, int exit_code, std::function<void(core::Result<void>)> done);

  /// Reads a QOS. Error: kNotFound.
  void qos(const std::string& name, std::function<void(core::Result<accounting::Qos>)> done);
  /// A QOS to write: see accounting::qos_body.
  struct QosWrite {
    std::string name;
    accounting::Settings found, wanted;
  };
  /// Creates several QOS, or changes one. slurmdbd rolls back a request that contains new and existing QOS. The caller must
  /// read the QOS back afterwards, because slurmdbd reports success even if it stores less.
  void write_qos(std::vector<QosWrite> writes, std::function<void(core::Result<void>)> done);
  /// Deletes a QOS. slurmdbd also removes it from the QOS lists of associations.
  void delete_qos(const std::string& name, std::function<void(core::Result<void>)> done);

  // Accounts, users and associations. slurmdbd carries out a request as a whole, or not at all. The caller must read the
  // objects back afterwards, because slurmdbd reports success even if it stores less.

  /// Creates accounts, without associations, or replaces their fields. Removes coordinators that are absent in `accounts`. An
  /// account must also list the coordinators of its parent accounts, because slurmrestd would try to remove them as well.
  void write_accounts(const std::vector<accounting::Account>& accounts, std::function<void(core::Result<void>)> done);
  struct UserWrite {
    std::string name, admin_level;
  };
  /// Creates users, without associations, or changes them. slurmdbd ignores a deleted user whose record it keeps. For such a
  /// user, call restore_user.
  void write_users(const std::vector<UserWrite>& users, std::function<void(core::Result<void>)> done);
  /// Creates a user with an association. Also works for a user that was deleted before.
  void restore_user(const UserWrite& user, const accounting::Place& place, std::function<void(core::Result<void>)> done);
  /// Accounts that get associations in clusters, below the account `parent`. If `parent` is "", that account is root.
  struct AccountAssociations {
    std::vector<std::string> accounts, clusters;
    std::string parent;
  };
  /// Creates the associations of existing accounts. POST associations cannot do this: slurmdbd treats an account's row as that
  /// of a user with an empty name, and puts it below root (as_mysql_add_assocs()). Error: kInvalid if the parent is absent.
  void add_account_associations(const AccountAssociations& add, std::function<void(core::Result<void>)> done);
  /// An association to write: see accounting::association_body.
  struct AssociationWrite {
    accounting::EntityKind kind{};
    std::string name;
    accounting::Place place;
    accounting::Settings found, wanted;
  };
  /// Creates associations of users, or changes associations. Sends nothing if association_body fails, and returns its error.
  void write_associations(const std::vector<AssociationWrite>& writes, std::function<void(core::Result<void>)> done);
  /// Deletes an account or a user with its associations. slurmdbd can also delete associations of others: see use_of_entity().
  void delete_entity(accounting::EntityKind kind, const std::string& name, std::function<void(core::Result<void>)> done);
  /// Deletes an association. slurmdbd can also delete other associations: see use_of_association().
  void delete_association(const accounting::Association& row, std::function<void(core::Result<void>)> done);

 private:
  void post(const std::string& path, core::Json body, std::function<void(core::Result<void>)> done);
  void remove(const std::string& path, std::function<void(core::Result<void>)> done);

  std::shared_ptr<Connection> connection_;
};

}  // namespace slurm
