#include "operator/accounting/slurmdbd.hpp"

#include <algorithm>

#include "api/well_known.hpp"
#include "operator/common/children.hpp"
#include "operator/common/namesakes.hpp"
#include "operator/common/ports.hpp"
#include "slurm/acts.hpp"

namespace op::accounting {
namespace {

/// The time between two requests. kSeldom: there is no problem. kOften: there is a problem. kSoon: the problem is new and can
/// end soon. kSoonAway: the problem is new, and slurmdbd does not answer. In this case a request can wait long in slurmrestd,
/// so requests are less frequent than with kSoon.
constexpr core::Duration kSeldom{45000}, kOften{10000}, kSoon{1000}, kSoonAway{2000};
/// A change of the condition Ready counts as new for this time.
constexpr core::Duration kNew{2 * 60 * 1000};

/// What the answer of one cluster's slurmrestd shows about slurmdbd and about the cluster's registration in slurmdbd.
enum class Word {
  kUnknown,       ///< Unknown: slurmrestd does not answer, refuses the request, or was not asked yet.
  kUnserved,      ///< Unknown: slurmrestd does not serve accounting, perhaps not yet.
  kAway,          ///< slurmrestd answers but slurmdbd does not.
  kUnregistered,  ///< slurmdbd does not have the cluster.
  kUnconnected,   ///< slurmdbd has the cluster, but the cluster's slurmctld is not connected.
  kGood,
};

/// The condition Ready in the last status.
struct Before {
  explicit Before(const Observed& observed) {
    const api::Condition* ready = api::find_condition(observed.accounting.status.conditions, api::kConditionReady);
    was_ready = ready != nullptr && ready->status == api::ConditionStatus::kTrue;
    is_new = ready == nullptr || !ready->last_transition_time || observed.context.now - *ready->last_transition_time < kNew;
  }
  bool was_ready = false;
  bool is_new = false;  ///< The condition has changed within kNew, or does not exist.
};

/// True if slurmrestd refused our token or the rate of our requests. Such an answer does not show whether slurmdbd runs.
bool says_nothing(core::ErrorCode code) {
  using enum core::ErrorCode;
  return code == kUnauthorized || code == kForbidden || code == kTooManyRequests;
}

Word word_of(const Cluster& cluster) {
  if (!cluster.said) return Word::kUnknown;
  const auto& clusters = cluster.said->clusters;
  if (!clusters) {
    const core::Error& error = clusters.error();
    if (error.code == core::ErrorCode::kUnsupported) return Word::kUnserved;
    if (says_nothing(error.code)) return Word::kUnknown;
    return error.http_status == 0 && error.reason != slurm::kSlurmdbdSilent ? Word::kUnknown : Word::kAway;
  }
  const auto found = std::ranges::find_if(
      *clusters, [&](const slurm::accounting::Cluster& row) { return same_cluster_name(row.name, cluster.cluster_name); });
  if (found == clusters->end()) return Word::kUnregistered;
  return found->connected() ? Word::kGood : Word::kUnconnected;
}

std::string text_of(const Cluster& cluster, Word word) {
  const std::string of = " of Controller " + cluster.name;
  switch (word) {
    case Word::kUnknown:
      return "slurmdbd cannot be queried through slurmrestd" + of +
             (cluster.said && !cluster.said->clusters ? ": " + one_line(cluster.said->clusters.error().message) : " yet");
    case Word::kAway:
      return "slurmrestd" + of + " cannot read from slurmdbd: " + one_line(cluster.said->clusters.error().message);
    case Word::kUnregistered:
      return "slurmdbd has no cluster " + cluster.cluster_name + ", the cluster" + of +
             ": slurmctld registers it when it starts. If its database has lost it, delete the pod of slurmctld; jobs run on";
    case Word::kUnconnected:
      return "slurmctld" + of +
             " is not connected to slurmdbd. If it started without slurmdbd, it registers after five minutes, or with scontrol "
             "reconfigure; jobs are recorded meanwhile";
    case Word::kUnserved:
    case Word::kGood:
      break;
  }
  return "";
}

void append(std::string& list, const std::string& text) {
  list += (list.empty() ? "" : "; ") + text;
}

}  // namespace

plan::Need ask_clusters(const slurm::ClusterKey& cluster) {
  return {"slurmdbd over " + cluster, slurm::read_accounting_clusters(cluster)};
}

Said read_said(const plan::Fact& fact) {
  if (!fact.value) return {std::unexpected(fact.value.error()), fact.asked_at};
  std::vector<slurm::accounting::Cluster> rows;
  for (const core::Json& row : *fact.value) rows.push_back(slurm::accounting::read_cluster(row));
  return {std::move(rows), fact.asked_at};
}

plan::Need ask_port(const Endpoint& port) {
  return {"slurmdbd at " + port.str(), reach_port(port)};
}

Reached read_reached(Endpoint port, const plan::Fact& fact) {
  core::Result<void> result;
  if (!fact.value) result = std::unexpected(fact.value.error());
  return {std::move(port), std::move(result), fact.asked_at};
}

void look_at_port(const Observed& observed, const Report& report, plan::Plan& plan) {
  const bool awaited = std::ranges::any_of(
      observed.clusters, [](const Cluster& cluster) { return !cluster.ends && !cluster.joined && !cluster.external; });
  if (!awaited || report.answers || !report.away.empty()) return;
  const core::Duration pause = Before(observed).is_new && !(observed.reached && observed.reached->result) ? kSoonAway : kOften;
  const core::Duration age = observed.reached ? observed.context.mono - observed.reached->asked_at : pause;
  if (age >= pause)
    plan.need(ask_port(accounting_endpoint(observed.accounting.spec, observed.object->meta.ns, observed.object->meta.name)));
  plan.wake_after(age < pause ? pause - age : pause, "the port of the external slurmdbd is checked again");
}

Report look_at_slurmdbd(const Observed& observed, bool reachable, bool may_ask, plan::Plan& plan) {
  const auto [was_ready, is_new] = Before(observed);
  Report out;
  std::vector<std::string> not_asked;
  std::string away;
  for (const Cluster& cluster : observed.clusters) {
    // Skip a cluster that has not joined, because the slurmrestd of that cluster does not use this slurmdbd. Skip a cluster
    // that is being deleted, because its slurmrestd can be gone at any time.
    if (cluster.ends || (!cluster.joined && !cluster.external)) continue;
    if (!cluster.restapi) {
      not_asked.push_back(cluster.name);
      continue;
    }
    if (!reachable) continue;
    const Word word = word_of(cluster);
    const bool well = (word == Word::kGood || word == Word::kUnserved) && was_ready;
    const core::Duration soon = word == Word::kAway ? kSoonAway : kSoon;
    const core::Duration pause = well ? kSeldom : is_new && !was_ready ? soon : kOften;
    const core::Duration age = cluster.said ? observed.context.mono - cluster.said->asked_at : pause;
    if (age >= pause && may_ask) plan.need(ask_clusters(cluster.key));
    plan.wake_after(age < pause ? pause - age : pause, "slurmdbd is asked again");
    out.answers = out.answers || (cluster.said && cluster.said->clusters);
    if (word == Word::kAway) {
      append(away, text_of(cluster, word));
    } else if (word == Word::kUnserved || (word == Word::kUnknown && cluster.external)) {
      not_asked.push_back(cluster.name);
    } else if (word == Word::kUnregistered || word == Word::kUnconnected || (word == Word::kUnknown && !was_ready)) {
      append(out.waiting, text_of(cluster, word));
    }
  }
  if (!away.empty()) append(out.answers ? out.waiting : out.away, away);
  if (!not_asked.empty())
    out.not_asked = "slurmdbd cannot be queried, because no RestApi belongs to Controllers: " + some_of(not_asked);
  return out;
}

}  // namespace op::accounting
