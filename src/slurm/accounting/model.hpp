// The contents of an accounting database, independent of Slurm's release and data_parser version.
//
// Limits have the names of sacctmgr(1), which administrators know: "GrpTRES", "MaxJobsPerUser".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "slurm/model.hpp"

namespace slurm::accounting {

/// An absent limit means no limit. Wall times are in minutes.
struct Limits {
  std::map<std::string, Number, std::less<>> counts;  ///< The limits that are counts: "MaxJobsPerUser": 4.
  /// Limits on TRES, for example "GrpTRES": {"cpu": 64, "gres/gpu": 8}.
  std::map<std::string, std::map<std::string, std::int64_t>, std::less<>> tres;
  friend bool operator==(const Limits&, const Limits&) = default;
};

struct Tres {
  std::int64_t id = 0;
  std::string name;  ///< "cpu", "gres/gpu": type and name in one.
  friend bool operator==(const Tres&, const Tres&) = default;
};

struct Qos {
  std::int64_t id = 0;
  std::string name, description;
  std::set<std::string> flags;
  Number priority;
  std::vector<std::string> preempts;       ///< QOS whose jobs this one may preempt.
  std::vector<std::string> preempt_modes;  ///< As Slurm spells them: "CANCEL", "DISABLED".
  Number preempt_exempt_seconds;
  std::int64_t grace_seconds = 0;
  std::optional<double> usage_factor, usage_threshold, limit_factor;
  Limits limits;
  friend bool operator==(const Qos&, const Qos&) = default;
};

struct Account {
  std::string name, description, organization;
  std::set<std::string> coordinators{};            ///< The coordinators of the account itself.
  std::set<std::string> inherited_coordinators{};  ///< The coordinators of the accounts above it.
  friend bool operator==(const Account&, const Account&) = default;
};

struct User {
  std::string name, default_account;
  std::set<std::string> admin_levels;  ///< As Slurm spells them: "None", "Operator", "Administrator".
  friend bool operator==(const User&, const User&) = default;
};

/// An account in a cluster, or a user in an account, optionally for one partition.
struct Association {
  std::int64_t id = 0;                            ///< slurmrestd of 24.11 reports 0 for every association.
  std::string cluster, account, user, partition;  ///< `user` and `partition` can be "".
  std::string parent_account, default_qos, comment;
  std::vector<std::string> qos;  ///< The QOS that the association may use.
  std::int64_t shares = 0;       ///< The value that Slurm calls fairshare.
  bool is_default = false;       ///< The account is the user's default account in the cluster.
  Number priority;
  Limits limits;
  /// Returns the key that no other association has: "cluster/account/user/partition".
  [[nodiscard]] std::string key() const { return cluster + "/" + account + "/" + user + "/" + partition; }
  friend bool operator==(const Association&, const Association&) = default;
};

/// The QOS and the association of an accounting database that a job uses.
struct JobUse {
  std::int64_t id = 0;
  std::string cluster, qos, account, user, partition;  ///< `qos` and `partition` of a waiting job can be lists.
  std::set<std::string> states{};
  /// True also for a COMPLETING job, because Slurm can still requeue it (because of its exit code, or as a job of scrontab).
  [[nodiscard]] bool unfinished() const {
    return states.contains("PENDING") || states.contains("RUNNING") || states.contains("SUSPENDED") ||
           states.contains("COMPLETING");
  }
  friend bool operator==(const JobUse&, const JobUse&) = default;
};

/// A cluster whose slurmctld has registered with slurmdbd.
struct Cluster {
  std::string name, host;  ///< `host` is "" while slurmctld is not connected.
  std::int64_t port = 0;
  [[nodiscard]] bool connected() const { return !host.empty() && port != 0; }
  friend bool operator==(const Cluster&, const Cluster&) = default;
};
[[nodiscard]] core::Json to_json(const Cluster& cluster);
/// Parses the output of to_json().
[[nodiscard]] Cluster read_cluster(const core::Json& json);

}  // namespace slurm::accounting
