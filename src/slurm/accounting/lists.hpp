// What an accounting database last said: its lists, each with its own completeness and age, kept by polls.
//
//   if (clusters.lists("db")->qos().health == Rows<...>::Health::kComplete) ...
//
// slurmdbd says of no list what changed in it: each comes whole, and each at its own pace, so that a long list (associations)
// does not hold up a short one (QOS). Unknown is not empty: a list that never came says so, and a failed poll leaves the rows
// as they were, and stale.
//
// Folder src/slurm/accounting: lists of accounting databases, and polling. Uses slurm/rest.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/loop.hpp"
#include "core/random.hpp"
#include "slurm/rest/accounting_client.hpp"

namespace slurm::accounting {

enum class List { kTres, kQos, kAccounts, kUsers, kAssociations, kClusters };

/// One list as it was last read. `Key` is what tells its rows apart: a name, or an id.
template <class Key, class Row>
struct Rows {
  enum class Health {
    kNone,      ///< It never came.
    kStale,     ///< It is of an earlier time; the last polls failed.
    kComplete,  ///< The last poll brought all of it.
  };
  Health health = Health::kNone;
  std::string error;            ///< Why it is not complete.
  core::MonoTime requested_at;  ///< It is no older than this.
  core::Duration cost{0};       ///< So long after it the answer was there.
  std::uint64_t round = 0;      ///< Which poll brought it; later ones have greater numbers.
  /// Never null. The same object as before while nothing changed.
  std::shared_ptr<const std::map<Key, std::shared_ptr<const Row>>> rows =
      std::make_shared<const std::map<Key, std::shared_ptr<const Row>>>();
};

struct ListsOptions {
  core::Duration period{2000};       ///< From the start of one poll of a list to the next.
  core::Duration often_period{500};  ///< The same after poll_often(), also after a failure.
  core::Duration often_for{2000};    ///< How long one poll_often() counts.
  int cost_factor = 20;              ///< A poll starts no sooner than this many times the length of the last after its start.
  core::Duration longest_pause{60000};  ///< What the factor may make of it.
  core::Duration first_backoff{500};    ///< After a failure; doubles, with jitter ...
  core::Duration last_backoff{15000};   ///< ... up to this.
};

/// Made and kept by slurm::Clusters. Guarantees: between start() and stop() at most one request for each list at a time; an
/// answer to what was asked before counts for nothing.
class Lists {
 public:
  /// Called on the loop after each poll. `changed`: the rows, the health or the error of the list changed.
  using Listener = std::function<void(List, bool changed)>;
  /// Returns the client to ask now; null if there is none.
  using Client = std::function<AccountingClient*()>;
  /// Returns the number of the next poll. Later polls have greater numbers.
  using Rounds = std::function<std::uint64_t()>;

  Lists(core::Loop& loop, core::Random& random, Client client, Rounds rounds, Listener listener, ListsOptions options = {});
  ~Lists();
  Lists(const Lists&) = delete;
  Lists& operator=(const Lists&) = delete;

  void start();
  void stop();
  /// Something was written there: the next poll starts as soon as the cost of the last allows; that of a list that fails, when
  /// it would have anyway. One that is under way does not count, for it may have been answered before the write.
  void poll_soon(List list);
  /// Polls all lists more often for the next two seconds (ListsOptions::often_for), because somebody waits for them.
  void poll_often();
  /// Makes all lists stale until a poll that starts later has read them.
  void mark_stale();
  /// Says that a write is settled at `when`: no poll that started before makes a stale list complete. See Poller::wrote.
  void wrote(List list, core::MonoTime when);
  /// How far the polls of a list are, for gates.
  struct Progress {
    bool complete = false;
    std::uint64_t round = 0;
    core::MonoTime requested_at;
  };
  [[nodiscard]] Progress progress(List list) const;

  [[nodiscard]] const Rows<std::int64_t, Tres>& tres() const;
  [[nodiscard]] const Rows<std::string, Qos>& qos() const;
  [[nodiscard]] const Rows<std::string, Account>& accounts() const;
  [[nodiscard]] const Rows<std::string, User>& users() const;
  [[nodiscard]] const Rows<std::int64_t, Association>& associations() const;
  [[nodiscard]] const Rows<std::string, Cluster>& clusters() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slurm::accounting
