// Writes and deletes accounts and users with their associations. Part of AccountingTarget.
//
// Writes of one database that begin together form a batch: they share the reads, and one request each for accounts, users and
// associations.
#pragma once

#include <memory>

#include "slurm/accounting/acts.hpp"
#include "slurm/rest/accounting_acts.hpp"

namespace slurm {

class EntityActs final : public AccountingActs {
 public:
  EntityActs(core::Loop& in_loop, Clusters& in_clusters) : AccountingActs(in_loop, in_clusters) {}

  void write(const std::shared_ptr<const WriteEntity>& act, Done done);
  /// `asked`: when the act was requested. The evidence must be valid then. It may expire later, because the act reads live.
  void remove(const std::shared_ptr<const DeleteEntity>& act, core::MonoTime asked, Done done);

 private:
  struct Write;
  using WritePtr = std::shared_ptr<Write>;
  struct Batch;
  using BatchPtr = std::shared_ptr<Batch>;
  struct Step;
  struct Deletion;

  void next_batch(const AccountingKey& database);
  /// Fails all writes of the batch that have not ended, and begins with the next batch.
  void end(const BatchPtr& batch, const core::Error& error);
  void fail_write(const WritePtr& write, core::Error error);

  using ViewPtr = std::shared_ptr<accounting::View>;
  /// Sends the requests for all lists (at least one) at once. Calls `then` when all are answered, with the first error if any
  /// request failed.
  void read(const AccountingKey& database, const std::vector<accounting::List>& lists, const ViewPtr& into,
            std::function<void(core::Result<void>)> then);
  template <class Row, class Rows, class Key>
  void read_list(const AccountingKey& database, void (AccountingClient::*get)(AccountingClient::Done<Row>), Rows* into,
                 Key key_of, std::function<void(core::Result<void>)> then);
  /// Reads the lists into the batch, and calls `then`. If reading fails, the batch ends.
  void read(const BatchPtr& batch, const std::vector<accounting::List>& lists, std::function<void()> then);

  void decide(const BatchPtr& batch);
  void decide(const WritePtr& write, const accounting::Entity* live);
  /// Sends the requests of a step one after the other, and calls its `then`. If a request for several writes is refused, each
  /// write is sent alone.
  void run(const BatchPtr& batch, const std::shared_ptr<Step>& step);
  void post_accounts(const BatchPtr& batch, bool coordinators, std::function<void()> then);
  void write_accounts(const BatchPtr& batch);
  void write_users(const BatchPtr& batch);
  void add_account_associations(const BatchPtr& batch);
  void write_associations(const BatchPtr& batch);
  void write_coordinators(const BatchPtr& batch);
  void begin_deletions(const BatchPtr& batch);
  void delete_next(const BatchPtr& batch, std::vector<Deletion> left, std::vector<Deletion> held, bool progress);
  void read_back(const BatchPtr& batch);
  void compare(const BatchPtr& batch);
  void restore_deleted(const BatchPtr& batch);
  void restore(const WritePtr& write, const accounting::View& view);

  void send_deletion(const WorkPtr& work, const UnusedEntity& evidence);

  Batches<WritePtr> batches_;
};

}  // namespace slurm
