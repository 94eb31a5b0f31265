// The acts of a plan on an accounting database. slurm::AccountingTarget carries out these acts. It reads the object live before
// each write. It reads the object again after the write, because slurmdbd reports success for some writes that it drops.
//
// Folder src/slurm/accounting: a model of slurmdbd's contents for all releases, the acts on slurmdbd as data, and the polling
// of slurmdbd's lists. The polling uses slurm/rest.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/evidence.hpp"
#include "plan/plan.hpp"
#include "slurm/accounting/entities.hpp"
#include "slurm/accounting/qos.hpp"
#include "slurm/accounting/rows.hpp"

namespace slurm {

/// Proves by complete lists that no association has the QOS as its default or only QOS, and that no QOS preempts this QOS.
class UnusedQos final : public plan::Evidence {
 public:
  /// Returns nullopt if the QOS is used, if a list is incomplete or old, and for the QOS `normal`.
  static std::optional<UnusedQos> of(const plan::Observing& observing, AccountingKey database, const accounting::Qos& qos,
                                     const accounting::View& view);
  [[nodiscard]] const AccountingKey& database() const { return database_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::int64_t id() const { return id_; }

 private:
  UnusedQos(const plan::Observing& observing, AccountingKey database, const accounting::Qos& qos, core::MonoTime good_until)
      : Evidence(observing, "UnusedQos", "no association has it as its default or its only QOS, and no QOS preempts it",
                 good_until),
        database_(std::move(database)),
        name_(qos.name),
        id_(qos.id) {}

  AccountingKey database_;
  std::string name_;
  std::int64_t id_;
};

/// Returns who uses the QOS, for messages: "it is the default of account physics, user ann, cluster c", "it is preempted by QOS
/// gpu", or "it is the only QOS that may be used by account nvidia, cluster c". Returns "" if nobody does. A used
/// QOS must not be deleted: while a stored list of QOS has a deleted QOS, slurmrestd of 24.11 cannot list any QOS.
[[nodiscard]] std::string use_of_qos(std::string_view qos, const accounting::View& view);

/// Joins texts about who uses an object, for a message: the first few texts, and how many more there are.
[[nodiscard]] std::string some_users(const std::vector<std::string>& users, std::string_view between = "; ");

/// Creates a QOS with these settings, or changes them in an existing QOS. Several acts that create QOS share a request. Each
/// act that changes a QOS sends its own request, because slurmdbd rolls back a request with both new and existing QOS. Errors:
/// kConflict if the QOS to create exists, or if the QOS to change is gone or has another number; kUnsupported, with the name of
/// the setting, if this release cannot express it; kInvalid, with the names, if slurmdbd did not store some settings.
struct WriteQos final : plan::Act {
  AccountingKey database;
  std::string name;
  std::int64_t id = 0;  ///< The number of the QOS to change. 0: create it.
  accounting::Settings settings;
  [[nodiscard]] core::Json describe() const override;
};

/// Deletes a QOS. Succeeds if the QOS does not exist. Errors: kExpired if the evidence is too old; kConflict if the live QOS
/// has another number; kBusy, with a list of the users, if a live read finds a user of the QOS: an association that has it as
/// default QOS, a QOS that preempts it, an unfinished job in slurmdbd or in the slurmctld of a known cluster, or a partition
/// that has it as QOS.
struct DeleteQos final : plan::Act {
  explicit DeleteQos(UnusedQos why) : evidence(std::move(why)) {}
  UnusedQos evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Creates an account or a user with its associations, or changes settings of an existing account or user. If a setting
/// `Association` is false, deletes the association at this place, unless an unfinished job uses it. Writes in this order: the
/// account or user, its associations, the coordinators of an account, the deletions. Errors: kConflict if the account or user
/// to create exists, or if an object to change is gone; kUnsupported if slurmrestd cannot address the name, restore the deleted
/// user, or express a setting (the message names it); kBusy, with the jobs or associations that prevent the deletion of an
/// association; kInvalid if slurmdbd did not store some settings.
struct WriteEntity final : plan::Act {
  AccountingKey database;
  accounting::EntityKind kind = accounting::EntityKind::kAccount;
  std::string name;
  bool create = false;
  accounting::Settings settings;
  [[nodiscard]] core::Json describe() const override;
};

/// Proves by complete lists that nothing else uses an account or a user: it has only the `known` associations, and an account
/// has neither child accounts nor users.
class UnusedEntity final : public plan::Evidence {
 public:
  /// `known`: the associations that may be deleted with the account or user. Returns nullopt if use_of_entity() names a use, if
  /// a list is incomplete or old, and for root.
  static std::optional<UnusedEntity> of(const plan::Observing& observing, AccountingKey database, accounting::EntityKind kind,
                                        const std::string& name, const std::set<accounting::Place>& known,
                                        const accounting::View& view);
  [[nodiscard]] const AccountingKey& database() const { return database_; }
  [[nodiscard]] accounting::EntityKind entity() const { return entity_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::set<accounting::Place>& known() const { return known_; }

 private:
  UnusedEntity(const plan::Observing& observing, AccountingKey database, accounting::EntityKind kind, std::string name,
               std::set<accounting::Place> known, core::MonoTime good_until);
  AccountingKey database_;
  accounting::EntityKind entity_;
  std::string name_;
  std::set<accounting::Place> known_;
};

/// Returns who uses the account or user, for messages: "it has the users ann, bob", "it is the parent of account optics", "it
/// has associations that this object has not made: chemistry@site". Returns "" if nobody does. Also returns a text if slurmdbd
/// would delete associations of other accounts or users too: it selects the associations by `LIKE '%/NAME/%'`, where `_` is any
/// character (as_mysql_remove_accts() and as_mysql_remove_users()).
[[nodiscard]] std::string use_of_entity(accounting::EntityKind kind, std::string_view name,
                                        const std::set<accounting::Place>& known, const accounting::View& view);

/// Returns why the association cannot be deleted alone, for messages, or "". slurmdbd also deletes all associations below it in
/// the tree, and all whose names match its name if each `_` stands for any character (as_mysql_remove_assocs()).
[[nodiscard]] std::string use_of_association(const accounting::Association& row, const accounting::View& view);

/// Deletes an account or a user with its associations. Succeeds if it does not exist. Errors: kExpired if the evidence is too
/// old; kBusy if a live read finds something else that uses the account or user, or an unfinished job.
struct DeleteEntity final : plan::Act {
  explicit DeleteEntity(UnusedEntity why) : evidence(std::move(why)) {}
  UnusedEntity evidence;
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] bool destructive() const override { return true; }
};

plan::ActPtr write_entity(AccountingKey database, accounting::EntityKind kind, std::string name, bool create,
                          accounting::Settings settings);
plan::ActPtr delete_entity(UnusedEntity evidence);
plan::ActPtr write_qos(AccountingKey database, std::string name, std::int64_t id, accounting::Settings settings);
plan::ActPtr delete_qos(UnusedQos evidence);

}  // namespace slurm
