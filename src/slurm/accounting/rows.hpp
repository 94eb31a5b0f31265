// The lists of an accounting database as they were last read. This header only defines the data; lists.hpp polls the lists.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/clock.hpp"
#include "slurm/accounting/model.hpp"

namespace slurm::accounting {

enum class List { kTres, kQos, kAccounts, kUsers, kAssociations, kClusters };

[[nodiscard]] inline std::set<List> all_lists() {
  return {List::kTres, List::kQos, List::kAccounts, List::kUsers, List::kAssociations, List::kClusters};
}

/// One list as it was last read. `Key` identifies a row: a name or an id.
template <class Key, class Row>
struct Rows {
  enum class Health {
    kNone,      ///< The list was never read.
    kStale,     ///< The rows can be old: the last poll failed, or nothing was read since Lists::mark_stale().
    kComplete,  ///< The last poll read all rows.
  };
  Health health = Health::kNone;
  std::string error;            ///< Why the list is not complete.
  core::MonoTime requested_at;  ///< The request for the rows did not start before this time.
  core::Duration cost{0};       ///< The time from requested_at to the answer.
  std::uint64_t round = 0;      ///< The poll that read the rows. Later polls have greater numbers.
  [[nodiscard]] bool complete() const { return health == Health::kComplete; }
  /// Never null. Stays the same object while no row changes.
  std::shared_ptr<const std::map<Key, std::shared_ptr<const Row>>> rows =
      std::make_shared<const std::map<Key, std::shared_ptr<const Row>>>();
};

/// All lists of one database, at one moment.
struct View {
  core::MonoTime since;  ///< When this process began to poll the lists.
  Rows<std::int64_t, Tres> tres;
  Rows<std::string, Qos> qos;
  Rows<std::string, Account> accounts;
  Rows<std::string, User> users;
  Rows<std::string, Association> associations;  ///< The keys are Association::key(). Inherited limits are left out.
  Rows<std::string, Cluster> clusters;
};

}  // namespace slurm::accounting
