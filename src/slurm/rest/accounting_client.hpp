// Reads slurmdbd's lists through a slurmrestd, and writes QOS. Part of Client, whose connection and negotiation it shares.
//
//   client.accounting().qos([](const auto& rows) { ... });
//
// Folder src/slurm/rest: clients of slurmrestd, all that differs between releases, and the target of acts. Uses net; the
// target also uses slurm/snapshot.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "slurm/accounting/model.hpp"
#include "slurm/accounting/qos.hpp"
#include "slurm/accounting/usage.hpp"

namespace slurm {

class Connection;

/// Calls `done` and reports errors as Client does, and kUnsupported if slurmrestd has not loaded openapi/slurmdbd. slurmdbd's
/// lists have no update_time, so each is read whole.
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
  void accounts(Done<accounting::Account> done);
  void users(Done<accounting::User> done);
  void associations(Done<accounting::Association> done);
  /// The limits of each are those that are set on itself, without what it has of its parents. So are its QOS.
  void own_associations(Done<accounting::Association> done);
  void clusters(Done<accounting::Cluster> done);
  /// Reads slurmdbd's jobs in this QOS and this state ("running"). slurmdbd has no jobs that were held from the beginning.
  void jobs_in_qos(std::int64_t id, const std::string& state, Done<accounting::JobOfQos> done);
  /// The job of this number as slurmdbd has it, also after slurmctld forgot it; several if the number was used again. It does
  /// not have jobs that were held from the beginning.
  void job(std::int64_t id, Done<accounting::QueuedJob> done);

  /// Error: kNotFound.
  void qos(const std::string& name, std::function<void(core::Result<accounting::Qos>)> done);
  /// A QOS to write: see accounting::qos_body.
  struct QosWrite {
    std::string name;
    accounting::Settings found, wanted;
  };
  /// Creates several QOS, or changes one. slurmdbd rolls back a request that contains new and existing QOS. Read them back
  /// afterwards, because slurmdbd reports success also if it stores less.
  void write_qos(std::vector<QosWrite> writes, std::function<void(core::Result<void>)> done);
  /// Deletes a QOS. slurmdbd also removes it from the lists of associations.
  void delete_qos(const std::string& name, std::function<void(core::Result<void>)> done);

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace slurm
