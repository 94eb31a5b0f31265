#include "slurm/rest/accounting_acts.hpp"

#include <algorithm>

#include "core/retry.hpp"
#include "slurm/accounting/acts.hpp"

namespace slurm {
namespace {

using core::ErrorCode;
using plan::ActResult;

/// If the reply of a write was lost, the outcome is final at the later of two times: kWriteSettled after the client gave up,
/// and kLongestAccountingWrite after the write was sent. slurmrestd does not notice that the client gave up, and its own
/// timeout is a little longer than the client's.
constexpr core::Duration kWriteSettled{3000};
constexpr core::Duration kLongestAccountingWrite{11000};

/// Returns why the list is incomplete, or nullopt.
std::optional<std::string> problem_of(const accounting::Lists& lists, accounting::List list) {
  const auto of = [](const auto& rows) { return rows.complete() ? std::nullopt : std::optional(rows.error); };
  switch (list) {
    case accounting::List::kTres:
      return of(lists.tres());
    case accounting::List::kQos:
      return of(lists.qos());
    case accounting::List::kAccounts:
      return of(lists.accounts());
    case accounting::List::kUsers:
      return of(lists.users());
    case accounting::List::kAssociations:
      return of(lists.associations());
    case accounting::List::kClusters:
      return of(lists.clusters());
  }
  return std::nullopt;
}

}  // namespace

bool is_refusal(const core::Error& error) {
  const core::Retry retry = core::retry_of(error.code);
  return retry != core::Retry::kLater && retry != core::Retry::kSettle;
}

void AccountingActs::begin(Work work, std::function<void(const WorkPtr&)> then) {
  const auto shared = std::make_shared<Work>(std::move(work));
  loop.after(core::Duration{0}, while_here([this, shared, then = std::move(then)] {
               const accounting::Lists* lists = clusters.lists(shared->database);
               std::optional<std::string> problem;
               if (lists == nullptr) problem = "it is not known";
               for (std::size_t i = 0; !problem && i < shared->lists.size(); ++i)
                 problem = problem_of(*lists, shared->lists[i]);
               if (problem) return fail(shared, {ErrorCode::kUnavailable, "slurmdbd does not answer: " + *problem, 0, {}, {}});
               then(shared);
             }));
}

void AccountingActs::fail(const WorkPtr& work, core::Error error) {
  ActResult result{std::unexpected(std::move(error)), {}};
  const core::Retry retry = core::retry_of(result.value.error().code);
  // If the contents of slurmdbd have changed since the last poll, the next plan needs newer lists. A plan over the current
  // lists would only repeat the act.
  const bool newer = work->wrote || retry == core::Retry::kDecideAnew;
  const core::MonoTime now = loop.clock().mono();
  const core::MonoTime settled = std::max(now + kWriteSettled, work->wrote.value_or(now) + kLongestAccountingWrite);
  for (const accounting::List list : work->lists) {
    if (retry == core::Retry::kSettle) {
      result.gates.push_back(clusters.gate_after(work->database, list, settled, work->what + " (reply lost)"));
    } else if (newer) {
      result.gates.push_back(clusters.gate_from_now(work->database, list, work->what));
    }
    if (newer) clusters.poll_soon(work->database, list);
  }
  work->done(std::move(result));
}

void AccountingActs::succeed(const WorkPtr& work, core::Json value) {
  ActResult result{std::move(value), {}};
  for (const accounting::List list : work->lists) {
    result.gates.push_back(clusters.gate_from_now(work->database, list, work->what));
    clusters.poll_soon(work->database, list);
  }
  work->done(std::move(result));
}

AccountingClient* AccountingActs::client(const WorkPtr& work) {
  AccountingClient* found = clusters.accounting(work->database);
  if (found == nullptr) fail(work, no_client());
  return found;
}

core::Error AccountingActs::no_client() {
  return {ErrorCode::kUnavailable, "no slurmrestd of a cluster with this Accounting is known", 0, {}, {}};
}

core::Error AccountingActs::unknown_use(const ClusterKey& cluster) {
  return {ErrorCode::kBusy,
          "cluster " + cluster + " may use it, and cannot be queried: no RestApi of this cluster is known",
          0,
          {},
          {}};
}

void AccountingActs::with_jobs(const AccountingKey& database, std::function<void(const core::Result<Jobs>&)> then) {
  add_jobs(clusters.clusters_of(database), {}, std::move(then));
}

void AccountingActs::add_jobs(std::vector<ClusterKey> left, Jobs found, std::function<void(const core::Result<Jobs>&)> then) {
  if (left.empty()) return then(std::move(found));
  const ClusterKey cluster = std::move(left.back());
  left.pop_back();
  Client* to = clusters.client(cluster);
  if (to == nullptr) return then(std::unexpected(unknown_use(cluster)));
  to->job_uses(while_here([this, cluster, left = std::move(left), found = std::move(found),
                           then = std::move(then)](const core::Result<Jobs>& rows) {
    if (!rows) return then(std::unexpected(rows.error().with("jobs of cluster " + cluster)));
    Jobs all = found;
    all.insert(all.end(), rows->begin(), rows->end());
    add_jobs(left, std::move(all), then);
  }));
}

std::optional<core::Error> AccountingActs::busy(const Jobs& jobs, const std::function<bool(const accounting::JobUse&)>& uses) {
  std::vector<std::string> holders;
  bool unnamed = false;
  for (const auto& row : jobs) {
    if (!row->unfinished() || !uses(*row)) continue;
    holders.push_back("job " + std::to_string(row->id) + " of cluster " + row->cluster);
    unnamed = unnamed || row->user.empty();
  }
  if (holders.empty()) return std::nullopt;
  return core::Error{
      ErrorCode::kBusy,
      "it is used by " + some_users(holders) + (unnamed ? " (slurmrestd does not know the users of all these jobs)" : ""),
      0,
      {},
      {}};
}

}  // namespace slurm
