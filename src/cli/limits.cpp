#include "cli/limits.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "core/hostlist.hpp"
#include "slurm/accounting/qos.hpp"

namespace cli {
namespace {

using slurm::accounting::Association;
using slurm::accounting::folded;
using slurm::accounting::Qos;
using slurm::accounting::QueuedJob;

using Pool = std::function<bool(const QueuedJob&)>;

bool same(std::string_view a, std::string_view b) {
  return folded(a) == folded(b);
}

std::string first_partition(const QueuedJob& job) {
  return job.partition.substr(0, job.partition.find(','));
}

std::int64_t count_of(const slurm::accounting::TresCounts& counts, std::string_view tres) {
  const auto it = counts.find(tres);
  return it == counts.end() ? 0 : it->second;
}

/// Returns how long the job may run, in minutes. nullopt: it has no time limit, or its limit is unknown.
std::optional<std::int64_t> minutes_of(const QueuedJob& job, const ClusterFacts& facts) {
  if (const auto* minutes = std::get_if<std::int64_t>(&job.time_limit)) return *minutes;
  if (std::holds_alternative<slurm::Infinite>(job.time_limit)) return {};
  const auto* partition = facts.partition(first_partition(job));
  if (partition == nullptr) return {};
  for (const slurm::Number& number : {partition->default_minutes, partition->max_minutes}) {
    if (const auto* minutes = std::get_if<std::int64_t>(&number); minutes != nullptr && *minutes > 0) return *minutes;
  }
  return {};
}

/// Returns how much longer a running job may run, in minutes. nullopt: it has no time limit, or its end is unknown.
std::optional<std::int64_t> minutes_left(const QueuedJob& job, core::WallTime now) {
  if (std::holds_alternative<slurm::Infinite>(job.time_limit) || !job.end) return {};
  return std::max<std::int64_t>(std::chrono::duration_cast<std::chrono::minutes>(*job.end - now).count(), 0);
}

/// Returns the amount that a job adds to a limit while the job runs. nullopt if the amount is unknown.
std::optional<std::int64_t> weight_of(const QueuedJob& job, Measure measure, std::string_view tres, core::WallTime now) {
  if (measure == Measure::kJobs || measure == Measure::kSubmitted) return job.count();
  const std::int64_t has = count_of(job.has, tres);
  if (measure == Measure::kTres || has == 0) return has;
  const auto left = minutes_left(job, now);
  return left ? std::optional(has * *left) : std::nullopt;
}

struct Counting {
  const QueuedJob& job;
  const ClusterFacts& facts;

  /// Returns the number of nodes that the jobs have. A node with several jobs counts once.
  [[nodiscard]] std::int64_t nodes_of(const std::vector<const QueuedJob*>& jobs) const {
    std::set<std::string> nodes;
    for (const QueuedJob* other : jobs) {
      if (auto names = core::expand_hostlist(other->nodes)) nodes.insert(names->begin(), names->end());
    }
    return static_cast<std::int64_t>(nodes.size());
  }

  void use_of_others(JobLimit& limit, const Pool& pool) const {
    const Measure measure = limit.kind->measure;
    std::optional<std::int64_t> sum = 0;
    for (const auto& other : facts.jobs) {
      const bool counts = other->running() || (measure == Measure::kSubmitted && other->pending());
      if (!counts || other->id == job.id || !pool(*other)) continue;
      const auto weight = weight_of(*other, measure, limit.tres, facts.now);
      if (weight == 0) continue;
      limit.counted.push_back(other.get());
      sum = sum && weight ? std::optional(*sum + *weight) : std::nullopt;
    }
    limit.in_use = measure == Measure::kTres && limit.tres == "node" ? nodes_of(limit.counted) : sum;
  }

  [[nodiscard]] std::optional<std::int64_t> asks_minutes(std::string_view tres) const {
    const std::int64_t asks = count_of(job.asks, tres);
    if (asks == 0) return 0;
    const auto minutes = minutes_of(job, facts);
    return minutes ? std::optional(asks * *minutes) : std::nullopt;
  }

  /// Sets `in_use`, `asks` and `over` of the limit. `used`: the past usage in minutes, if it is known.
  void count(JobLimit& limit, const Pool& pool, std::optional<std::int64_t> used) const {
    switch (limit.kind->measure) {
      case Measure::kJobs:
      case Measure::kSubmitted:
        use_of_others(limit, pool);
        // Slurm starts the tasks of an array one by one, so the request is one job.
        limit.asks = 1;
        break;
      case Measure::kTres:
        use_of_others(limit, pool);
        limit.asks = count_of(job.asks, limit.tres);
        break;
      case Measure::kRunMinutes:
        use_of_others(limit, pool);
        limit.asks = asks_minutes(limit.tres);
        break;
      case Measure::kUsedMinutes:
        limit.in_use = used;
        limit.asks = asks_minutes(limit.tres);
        break;
      case Measure::kUsedWall:
      case Measure::kJobWall:
        limit.asks = minutes_of(job, facts);
        break;
      case Measure::kJobTres:
      case Measure::kLeastTres:
        limit.asks = count_of(job.asks, limit.tres);
        break;
      case Measure::kNodeTres:
        limit.asks = count_of(job.asks, limit.tres) / std::max<std::int64_t>(count_of(job.asks, "node"), 1);
        break;
      case Measure::kJobMinutes:
        limit.asks = asks_minutes(limit.tres);
        break;
    }
    if (!limit.percent) limit.over = over_of(limit);
  }

  [[nodiscard]] static std::optional<std::int64_t> over_of(const JobLimit& limit) {
    switch (limit.kind->measure) {
      case Measure::kLeastTres:
        return limit.limit - *limit.asks;
      case Measure::kUsedMinutes:
        // Slurm starts a job that could exceed the limit later, unless AccountingStorageEnforce has `safe`.
        if (!limit.in_use || !limit.asks || *limit.asks == 0) return {};
        return *limit.in_use - limit.limit;
      case Measure::kUsedWall:
        return {};
      case Measure::kJobTres:
      case Measure::kNodeTres:
      case Measure::kJobMinutes:
      case Measure::kJobWall:
        return limit.asks ? std::optional(*limit.asks - limit.limit) : std::nullopt;
      case Measure::kJobs:
      case Measure::kSubmitted:
      case Measure::kTres:
      case Measure::kRunMinutes:
        if (!limit.in_use || !limit.asks) return {};
        // The limit cannot hold a job that requests none of the resources that the limit counts.
        if (*limit.asks == 0) return std::min<std::int64_t>(*limit.in_use - limit.limit, 0);
        return *limit.in_use + *limit.asks - limit.limit;
    }
    std::unreachable();
  }
};

/// Calls `each` for every limit that is set.
void for_limits(const slurm::accounting::Limits& limits,
                const std::function<void(const LimitKind&, const std::string& tres, std::int64_t)>& each) {
  for (const auto& [name, number] : limits.counts) {
    const LimitKind* kind = limit_kind(name);
    const auto* value = std::get_if<std::int64_t>(&number);
    if (kind != nullptr && value != nullptr) each(*kind, "", *value);
  }
  for (const auto& [name, values] : limits.tres) {
    const LimitKind* kind = limit_kind(name);
    if (kind == nullptr) continue;
    for (const auto& [tres, value] : values) {
      if (value >= 0) each(*kind, tres, value);
    }
  }
}

bool is_about_one_job(Measure measure) {
  return measure == Measure::kJobTres || measure == Measure::kJobMinutes || measure == Measure::kNodeTres ||
         measure == Measure::kLeastTres || measure == Measure::kJobWall;
}

const Qos* find_qos(const ClusterFacts& facts, std::string_view name) {
  const auto it = std::ranges::find_if(facts.qos, [&](const auto& row) { return !name.empty() && same(row->name, name); });
  return it == facts.qos.end() ? nullptr : it->get();
}

/// Returns the QOS whose limits apply to the job. If two QOS set the same limit, the limit of the first QOS counts.
std::vector<const Qos*> qos_of(const QueuedJob& job, const ClusterFacts& facts) {
  const auto* partition = facts.partition(first_partition(job));
  const Qos* own = find_qos(facts, job.qos);
  const Qos* of_partition = partition == nullptr ? nullptr : find_qos(facts, partition->qos);
  std::vector<const Qos*> out{of_partition, own};
  if (own != nullptr && own->flags.contains("OVERRIDE_PARTITION_QOS")) std::ranges::reverse(out);
  std::erase(out, nullptr);
  if (out.size() == 2 && out[0] == out[1]) out.pop_back();
  return out;
}

Pool pool_of(const Qos& qos, const LimitKind& kind, const QueuedJob& job, const ClusterFacts& facts) {
  return [&](const QueuedJob& other) {
    if (kind.among == Among::kUser && other.user != job.user) return false;
    if (kind.among == Among::kAccount && !same(other.account, job.account)) return false;
    if (same(other.qos, qos.name)) return true;
    const auto* partition = facts.partition(first_partition(other));
    return partition != nullptr && same(partition->qos, qos.name);
  };
}

std::string whose(const Qos& qos, const LimitKind& kind, const QueuedJob& job) {
  if (is_about_one_job(kind.measure)) return "";
  if (kind.among == Among::kUser) return "user " + job.user + " in QOS " + qos.name;
  if (kind.among == Among::kAccount) return "account " + job.account + " in QOS " + qos.name;
  return "QOS " + qos.name;
}

/// The limits that a QOS sets, as pairs of name and TRES. If a QOS sets a limit, an association's limit of the same name and
/// TRES does not count.
using Taken = std::set<std::pair<std::string, std::string>>;

bool taken_by_qos(const Taken& taken, const LimitKind& kind, const std::string& tres) {
  if (kind.name == "MaxJobs") return taken.contains({"MaxJobsPerUser", ""}) || taken.contains({"MaxJobsPerAccount", ""});
  if (kind.name == "MaxSubmitJobs")
    return taken.contains({"MaxSubmitJobsPerUser", ""}) || taken.contains({"MaxSubmitJobsPerAccount", ""});
  return taken.contains({std::string(kind.name), tres});
}

/// The association of the job, and the associations above it.
class Chain {
 public:
  Chain(const QueuedJob& job, const ClusterFacts& facts) : facts_(facts) {
    for (const auto& row : facts.associations) {
      if (row->user.empty()) {
        accounts_[folded(row->account)] = row.get();
        continue;
      }
      if (row->user != job.user || !same(row->account, job.account)) continue;
      // An association for the partition takes precedence over the one for all partitions.
      if (row->partition.empty() ? links_.empty() : row->partition == first_partition(job)) links_ = {row.get()};
    }
    std::string account = folded(job.account);
    for (auto it = accounts_.find(account); it != accounts_.end(); it = accounts_.find(account)) {
      if (std::ranges::find(links_, it->second) != links_.end()) break;
      links_.push_back(it->second);
      account = folded(it->second->parent_account);
    }
  }
  [[nodiscard]] const std::vector<const Association*>& links() const { return links_; }

  /// True if the job `other` counts for the association `of`: the job belongs to `of` or to an association below `of`.
  [[nodiscard]] bool counts(const Association& of, const QueuedJob& other) const {
    if (!of.user.empty()) {
      return other.user == of.user && same(other.account, of.account) &&
             (of.partition.empty() || first_partition(other) == of.partition);
    }
    std::set<std::string> seen;
    for (std::string account = folded(other.account); seen.insert(account).second;) {
      if (account == folded(of.account)) return true;
      const auto it = accounts_.find(account);
      if (it == accounts_.end()) return false;
      account = folded(it->second->parent_account);
    }
    return false;
  }

  [[nodiscard]] std::optional<std::int64_t> used(const Association& of, std::string_view tres) const {
    for (const auto& share : facts_.shares) {
      const bool it = of.user.empty() ? !share->is_user && same(share->name, of.account)
                                      : share->is_user && share->name == of.user && same(share->parent, of.account) &&
                                            share->partition == of.partition;
      if (!it) continue;
      const auto seconds = share->tres_seconds.find(tres);
      if (seconds != share->tres_seconds.end()) return static_cast<std::int64_t>(seconds->second / 60);
    }
    return {};
  }

 private:
  const ClusterFacts& facts_;
  std::map<std::string, const Association*> accounts_;
  std::vector<const Association*> links_;
};

std::string name_of(const Association& row) {
  std::string out = row.user.empty() ? row.account : row.user + " in account " + row.account;
  return row.partition.empty() ? out : out + ", partition " + row.partition;
}

std::string holder_kind_of(const Association& row) {
  return row.user.empty() ? "account" : "user";
}

/// Multiplies the limit by the LimitFactor of a QOS, if LimitFactor applies to this kind of limit.
std::int64_t scaled(const LimitKind& kind, std::int64_t limit, double factor) {
  if (kind.name != "GrpTRES" && kind.name != "MaxTRESPerJob") return limit;
  return static_cast<std::int64_t>(static_cast<double>(limit) * factor);
}

}  // namespace

const slurm::accounting::PartitionRules* ClusterFacts::partition(std::string_view name) const {
  const auto it = std::ranges::find_if(partitions, [&](const auto& row) { return row->name == name; });
  return it == partitions.end() ? nullptr : it->get();
}

bool JobLimit::never() const {
  if (!holds()) return false;
  if (is_about_one_job(kind->measure)) return true;
  const bool sums = kind->measure == Measure::kTres || kind->measure == Measure::kRunMinutes ||
                    kind->measure == Measure::kJobs || kind->measure == Measure::kSubmitted;
  return sums && asks && *asks > limit;
}

std::vector<JobLimit> limits_of(const QueuedJob& job, const ClusterFacts& facts) {
  std::vector<JobLimit> out;
  Taken taken;
  double factor = 1;
  const Counting counting{job, facts};
  const std::vector<const Qos*> all_qos = qos_of(job, facts);
  for (const Qos* qos : all_qos) {
    Taken own;
    for_limits(qos->limits, [&](const LimitKind& kind, const std::string& tres, std::int64_t limit) {
      const std::pair<std::string, std::string> key(kind.name, tres);
      if (taken.contains(key)) return;
      own.insert(key);
      JobLimit found{&kind, tres, "QOS", qos->name, whose(*qos, kind, job), limit};
      found.percent = qos->flags.contains("RELATIVE") && !tres.empty();
      counting.count(found, pool_of(*qos, kind, job, facts), {});
      out.push_back(std::move(found));
    });
    taken.merge(own);
  }
  for (const Qos* qos : all_qos) {
    if (!qos->limit_factor || *qos->limit_factor <= 0) continue;
    factor = *qos->limit_factor;
    break;
  }
  const Chain chain(job, facts);
  const auto& links = chain.links();
  Taken inherited;
  for (const Association* row : links) {
    for_limits(row->limits, [&](const LimitKind& kind, const std::string& tres, std::int64_t limit) {
      if (taken_by_qos(taken, kind, tres)) return;
      const bool group = kind.name.starts_with("Grp");
      // A limit without "Grp" is in force only if no association nearer to the job sets the limit. The limit counts the jobs
      // of the job's own association.
      if (!group && !inherited.insert({std::string(kind.name), tres}).second) return;
      const Association& counted = group ? *row : *links.front();
      JobLimit found{&kind, tres, holder_kind_of(*row), name_of(*row), "", scaled(kind, limit, factor)};
      if (!is_about_one_job(kind.measure)) found.whose = holder_kind_of(counted) + " " + name_of(counted);
      counting.count(
          found, [&](const QueuedJob& other) { return chain.counts(counted, other); }, chain.used(counted, tres));
      out.push_back(std::move(found));
    });
  }
  return out;
}

std::optional<core::WallTime> free_by(const JobLimit& limit) {
  const Measure measure = limit.kind->measure;
  if (!limit.holds() || limit.never() || (measure != Measure::kJobs && measure != Measure::kTres) || limit.tres == "node")
    return {};
  std::vector<const QueuedJob*> ends = limit.counted;
  std::erase_if(ends,
                [](const QueuedJob* job) { return !job->end || std::holds_alternative<slurm::Infinite>(job->time_limit); });
  std::ranges::sort(ends, {}, [](const QueuedJob* job) { return *job->end; });
  std::int64_t over = *limit.over;
  for (const QueuedJob* job : ends) {
    over -= weight_of(*job, measure, limit.tres, {}).value_or(0);
    if (over <= 0) return job->end;
  }
  return {};
}

}  // namespace cli
