// Reads slurmdbd's lists through a slurmrestd. Part of Client, whose connection and negotiation it shares.
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
  void clusters(Done<accounting::Cluster> done);

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace slurm
