#include "operator/governance/following.hpp"

#include <algorithm>
#include <utility>

#include "core/json.hpp"
#include "operator/governance/references.hpp"
#include "slinky/names.hpp"

namespace op::governance {
namespace {

/// How long to wait before an unknown capacity is read again. Usually, a poll of Slurm wakes the controller earlier.
constexpr core::Duration kLookAgain{30000};
/// How long to wait for the next poll if Slurm's last answer is old. A poll without changes does not wake the controller.
constexpr core::Duration kPolledAgain{1000};

using api::CapacityLimitStatus;

/// Returns the name of the Controller of the cluster whose capacity the limits follow. Error: why there is no such cluster.
core::Result<std::string> cluster_of(const api::SlurmQosSpec& spec, const Observed& observed) {
  const std::string accounting = "Accounting " + observed.key.name;
  if (spec.capacity_cluster) {
    if (observed.capacities.contains(*spec.capacity_cluster)) return *spec.capacity_cluster;
    return core::fail(core::ErrorCode::kNotFound,
                      "spec.capacityCluster: no Controller " + *spec.capacity_cluster + " names " + accounting);
  }
  std::vector<std::string> names;
  for (const auto& [name, capacity] : observed.capacities) names.push_back(name);
  if (names.size() == 1) return names.front();
  if (names.empty()) return core::fail(core::ErrorCode::kNotFound, "no Controller names " + accounting);
  return core::fail(core::ErrorCode::kInvalid,
                    "spec.capacityCluster: must name one of the Controllers of " + accounting + ", which are " + joined(names));
}

class Follower {
 public:
  Follower(const Claim& claim, const slurm::accounting::Settings& applied, const Observed& observed)
      : claim_(claim),
        applied_(applied),
        observed_(observed),
        cluster_(cluster_of(std::get<api::SlurmQosSpec>(claim.spec), observed)) {
    if (!cluster_) {
      wrong(cluster_.error().message);
    } else if (const auto& capacity = observed.capacities.find(*cluster_)->second) {
      capacity_ = &*capacity;
    } else if (observed.outdated.contains(*cluster_)) {
      outdated_ = true;
      out_.awaited.insert(slinky::cluster_key(observed.key.ns, *cluster_));
      wake_in(kPolledAgain);
    } else {
      wake_in(kLookAgain);
    }
  }

  void add(const std::string& setting, const CapacityLimit& limit) {
    const auto old = std::ranges::find(claim_.capacity_limits, limit.limit, &CapacityLimitStatus::limit);
    const CapacityLimitStatus* const last = old == claim_.capacity_limits.end() ? nullptr : &*old;
    const std::optional<Evaluation> now = value_of(limit);
    if (!now) return keep(setting, limit, last);
    const bool same = last != nullptr && last->expression == limit.text && last->cluster == *cluster_;
    const std::optional<Damped> before = same ? std::optional(Damped{last->value, last->lower_since}) : std::nullopt;
    const Damping damping = *damp(now->value, before, observed_.context.now);
    if (damping.look_again) wake_in(*damping.look_again - observed_.context.now);
    out_.settings[setting] = damping.next.value;
    if (before == damping.next) return out_.status.push_back(*last);
    CapacityLimitStatus& next = out_.status.emplace_back();
    next.limit = limit.limit;
    next.expression = limit.text;
    next.value = damping.next.value;
    next.cluster = *cluster_;
    for (const auto& [input, count] : now->inputs) next.inputs[input].value = count;
    next.lower_since = damping.next.lower_since;
  }

  Following take() { return std::move(out_); }

 private:
  /// Returns the limit's value for the present capacity. nullopt: the capacity is unknown, or an error has been reported.
  std::optional<Evaluation> value_of(const CapacityLimit& limit) {
    if (capacity_ == nullptr) return {};
    core::Result<Evaluation> out = evaluate(limit.expression, limit.tres, *capacity_);
    if (out) return *std::move(out);
    wrong("spec.limits." + limit.limit + ": " + out.error().message);
    return {};
  }

  /// Retains the limit's value, and restarts the delay after which the value falls. Does not restart the delay if the capacity
  /// is unknown only because the last answer is old: most answers of a slow, rarely polled Slurm are old. If the next poll
  /// finds more nodes, the delay ends.
  void keep(const std::string& setting, const CapacityLimit& limit, const CapacityLimitStatus* last) {
    if (last != nullptr) {
      out_.settings[setting] = last->value;
      out_.status.push_back(*last);
      if (!outdated_) out_.status.back().lower_since.reset();
      if (last->expression != limit.text) stays_as_before(limit);
    } else if (const auto made = applied_.find(setting); made != applied_.end()) {
      out_.settings[setting] = made->second;
      stays_as_before(limit);
    } else {
      out_.complete = false;
      if (out_.problem && !former_) return;
      former_ = false;
      out_.problem = Problem{
          "CapacityUnknown",
          "spec.limits." + limit.limit + " has no value yet: Slurm has not reported the nodes of Controller " + *cluster_,
          Problem::Kind::kComing};
    }
  }

  /// Reports that the former value stays in force although the limit was changed.
  void stays_as_before(const CapacityLimit& limit) {
    if (out_.problem) return;
    former_ = true;
    out_.problem = Problem{
        "CapacityUnknown",
        "spec.limits." + limit.limit + " keeps its former value: Slurm has not reported the nodes of Controller " + *cluster_,
        Problem::Kind::kComing};
  }

  void wrong(const std::string& message) {
    former_ = false;
    if (!out_.problem || !out_.problem->wrong()) {
      out_.problem = Problem{"CapacityInvalid", message, Problem::Kind::kWrong};
    } else {
      out_.problem->message += "; " + message;
    }
  }

  void wake_in(core::Duration delay) { out_.look_again = out_.look_again ? std::min(*out_.look_again, delay) : delay; }

  const Claim& claim_;
  const slurm::accounting::Settings& applied_;
  const Observed& observed_;
  const core::Result<std::string> cluster_;
  const Capacity* capacity_ = nullptr;  ///< Null if the capacity is unknown.
  bool outdated_ = false;               ///< True if the capacity is unknown because the last answer is old.
  bool former_ = false;                 ///< True if the reported problem is that a limit keeps its former value.
  Following out_;
};

}  // namespace

bool follows_capacity(const kube::Object& qos) {
  const core::Json* limits = core::find(qos.body, {"spec", "limits"});
  if (limits == nullptr || !limits->is_object()) return false;
  return std::ranges::any_of(*limits, [](const core::Json& limit) {
    return limit.is_object() && std::ranges::any_of(limit, [](const core::Json& value) {
             return value.is_string() && is_expression(value.get_ref<const std::string&>());
           });
  });
}

Following follow(const std::map<std::string, CapacityLimit, std::less<>>& limits, const Claim& claim,
                 const slurm::accounting::Settings& applied, const Observed& observed) {
  if (limits.empty()) return {};
  Follower follower(claim, applied, observed);
  for (const auto& [setting, limit] : limits) follower.add(setting, limit);
  return follower.take();
}

}  // namespace op::governance
