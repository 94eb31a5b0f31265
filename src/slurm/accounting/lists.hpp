// The lists of an accounting database, as polls last read them. Each list has its own completeness and age.
//
//   if (clusters.lists("db")->qos().health == Rows<...>::Health::kComplete) ...
//
// slurmdbd does not report what changed, so each poll reads a whole list. Each list is polled at its own pace, so that a long
// list (associations) does not delay a short one (QOS). Unknown is not empty: a list that was never read is kNone, and after a
// failed poll the list keeps its rows as kStale.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "core/loop.hpp"
#include "core/random.hpp"
#include "slurm/accounting/rows.hpp"
#include "slurm/rest/accounting_client.hpp"

namespace slurm::accounting {

struct ListsOptions {
  /// The time between the starts of two polls, for the QOS and for the associations, which have the limits. At rest, all polls
  /// and the requests of the Accounting controller together are fewer than 240 requests a minute.
  core::Duration period{800};
  core::Duration names_period{1500};  ///< The period of accounts and users, which have few settings themselves.
  core::Duration seldom{30000};       ///< The period of TRES and clusters, which only a configuration or a new cluster changes.
  core::Duration often_period{500};   ///< After poll_often(): the least period, and the longest pause after a failure.
  core::Duration often_for{2000};     ///< How long the effect of one poll_often() lasts.
  int cost_factor = 20;               ///< The least time from the start of a poll to the next start, in durations of that poll.
  core::Duration longest_pause{60000};  ///< The upper limit of the time that cost_factor demands.
  core::Duration first_backoff{500};    ///< The pause after a failure. Doubles each time, with jitter.
  core::Duration last_backoff{15000};   ///< The longest pause after failures.
};

/// Created and owned by slurm::Clusters. Guarantees: between start() and stop() each list has at most one request under way.
/// Answers to requests from before start() are ignored.
class Lists {
 public:
  /// Called on the loop after each poll. `changed`: the rows, the health or the error of the list changed.
  using Listener = std::function<void(List, bool changed)>;
  /// Returns the client for the next request; null if there is none.
  using Client = std::function<AccountingClient*()>;
  /// Returns the number of the next poll. Later polls have greater numbers.
  using Rounds = std::function<std::uint64_t()>;

  Lists(core::Loop& loop, core::Random& random, Client client, Rounds rounds, Listener listener, ListsOptions options = {});
  ~Lists();
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;

  void start();
  void stop();
  /// Polls only these lists; before the first call, all lists. The rows of the other lists remain and become stale.
  void want(std::set<List> lists);
  /// Call it after a write. The next poll starts once 4 times the last poll's duration have passed since the last poll's start,
  /// or, after a failure, when the backoff ends. A poll under way does not count: its answer can be older than the write.
  void poll_soon(List list);
  /// Polls all lists more often for the next two seconds (ListsOptions::often_for). Call it while something waits for a change.
  void poll_often();
  /// Makes all lists stale until a poll that starts later has read them.
  void mark_stale();
  /// Records that a write is final at `when`. A poll that started earlier never makes a stale list complete. See Poller::wrote.
  void wrote(List list, core::MonoTime when);
  /// The progress of the polls of a list. Gates wait for it.
  struct Progress {
    bool complete = false;
    std::uint64_t round = 0;
    core::MonoTime requested_at;
  };
  [[nodiscard]] Progress progress(List list) const;

  [[nodiscard]] View view() const;
  [[nodiscard]] const Rows<std::int64_t, Tres>& tres() const;
  [[nodiscard]] const Rows<std::string, Qos>& qos() const;
  [[nodiscard]] const Rows<std::string, Account>& accounts() const;
  [[nodiscard]] const Rows<std::string, User>& users() const;
  /// Each association has only the limits and QOS that are set on itself, none that it inherits.
  [[nodiscard]] const Rows<std::string, Association>& associations() const;
  [[nodiscard]] const Rows<std::string, Cluster>& clusters() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slurm::accounting
