// The accounting database behind one slurmrestd endpoint: the counterpart of rest/client.hpp, with slurmdbd in slurmctld's
// place. Any healthy slurmrestd of a cluster that uses the database will do. Reads only, so far.
#pragma once

#include <memory>
#include <vector>

#include "slurm/accounting/model.hpp"
#include "slurm/rest/client.hpp"

namespace slurm {

/// Calls of `done`, and errors: as those of Client. slurmdbd's lists have no update_time: each comes whole, always.
class AccountingClient {
 public:
  template <class Row>
  using Done = std::function<void(core::Result<std::vector<std::shared_ptr<const Row>>>)>;

  AccountingClient(core::Loop& loop, net::HttpTransport& transport, TokenSource& tokens, core::Logger& log,
                   ClientOptions options = {});
  ~AccountingClient();
  AccountingClient(const AccountingClient&) = delete;
  AccountingClient& operator=(const AccountingClient&) = delete;

  /// Null before and between negotiations.
  [[nodiscard]] const Capabilities* capabilities() const;

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
