#include "sim/programs/operator/oracles/service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "api/token.hpp"
#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "sim/programs/operator/oracles/objects.hpp"
#include "sim/slurm/text.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Duration;
using core::Json;
namespace kinds = kube::resources;

constexpr Duration kLook{2000};
/// The limit for an expired token. No token should ever expire, because tokens are renewed at four fifths of their lifetime.
constexpr Duration kTokenExpired{4000};
/// The limit for a slurmrestd that does not answer: a deleted or failed pod starts again within this time.
constexpr Duration kRestAway{90000};
/// The limit for an idle worker that is held back: the time for polls, the live look, and slurmd's answer.
constexpr Duration kHeldBack{90000};
/// The limit for a slurmd with an old configuration: the operator waits for starting workers and for prologs.
constexpr Duration kOutdated{120000};
/// The limit for the requests within a minute, for a cluster of a few workers with the most frequent faults.
constexpr std::size_t kMostToKube = 1500, kMostToSlurm = 1500;

/// Returns "exp" of a token in seconds; nullopt if the text is not a token.
std::optional<std::int64_t> expiry(const std::string& token) {
  const std::size_t first = token.find('.'), last = token.rfind('.');
  if (first == std::string::npos || first == last) return {};
  std::string body = token.substr(first + 1, last - first - 1);
  std::ranges::replace(body, '-', '+');
  std::ranges::replace(body, '_', '/');
  while (body.size() % 4 != 0) body += '=';
  const auto text = core::base64_decode(body);
  const auto claims = core::parse_json(text ? *text : "");
  return claims ? std::optional(core::get_int(*claims, {"exp"})) : std::nullopt;
}

}  // namespace

ServiceOracle::ServiceOracle(core::Loop& loop, KubeApi& api, SlurmSite& site, Tell violation)
    : loop_(loop), api_(api), site_(site), violation_(std::move(violation)) {}

void ServiceOracle::request(bool to_slurm) {
  Pace& pace = pace_[to_slurm ? 1 : 0];
  const core::MonoTime now = loop_.clock().mono();
  pace.last.push_back(now);
  while (now - pace.last.front() > std::chrono::minutes{1}) pace.last.pop_front();
  pace.most = std::max(pace.most, pace.last.size());
  const std::size_t ceiling = to_slurm ? kMostToSlurm : kMostToKube;
  if (pace.most <= ceiling || pace.told) return;
  pace.told = true;
  violation_(fmt::format("more than {} requests to {} within a minute", ceiling, to_slurm ? "Slurm" : "the API server"));
}

void ServiceOracle::expect(bool due) {
  since_.clear();
  if (due == (*turn_ % 2 == 1)) return;
  ++*turn_;
  if (due) look();
}

void ServiceOracle::look() {
  look_at_tokens();
  look_at_restapis();
  look_at_workers();
  look_at_slurmds();
  loop_.after(kLook, [this, now = *turn_, turn = std::weak_ptr(turn_)] {
    const auto held = turn.lock();
    if (held && *held == now) look();
  });
}

void ServiceOracle::miss(bool missed, const std::string& what, const std::string& who, Duration ceiling) {
  const std::string key = what + " " + who;
  if (!missed) {
    since_.erase(key);
    return;
  }
  const core::MonoTime now = loop_.clock().mono();
  const Duration length = now - since_.try_emplace(key, now).first->second;
  longest_[what] = std::max(longest_[what], length);
  if (length <= ceiling) return;
  violation_(fmt::format("{} for more than {} s: {}", what, ceiling.count() / 1000, who));
  since_[key] = now;
}

void ServiceOracle::look_at_tokens() {
  for (const auto& [key, stored] : api_.store().all(table_name(slinky::resources::kToken))) {
    const auto token = api::from_json<api::Token>(stored->body);
    if (!token || !token->spec.refresh || terminating(stored->body) || !acts_in(namespaces_, key.ns)) continue;
    const api::SecretKeySelector target = api::token_secret(token->spec, key.name);
    const Json* secret = api_.peek(kinds::kSecret, {key.ns, target.name});
    const auto text = secret == nullptr ? core::Result<std::string>("")
                                        : core::base64_decode(core::get_string(*secret, {"data", target.key}));
    if (!text) continue;
    const auto expires = expiry(*text);
    miss(expires && *expires * 1000 < loop_.clock().wall().since_epoch.count(), "a token is expired", key.str(), kTokenExpired);
  }
}

/// Reports whether all pods of the RestApi are on unreachable machines. Kubernetes leaves the pods there for five minutes, and
/// creates no other pods meanwhile.
bool ServiceOracle::waits_for_machines(const kube::Key& restapi) const {
  bool any = false;
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    if (key.ns != restapi.ns || label(pod, api::kLabelName) != slinky::kAppRestApi ||
        label(pod, api::kLabelInstance) != restapi.name || terminating(pod))
      continue;
    const Json* host = api_.peek(kinds::kNode, {"", core::get_string(pod, {"spec", "nodeName"})});
    if (host == nullptr || is_ready(*host)) return false;
    any = true;
  }
  return any;
}

void ServiceOracle::look_at_restapis() {
  for (const auto& [key, stored] : api_.store().all(table_name(slinky::resources::kRestApi))) {
    const kube::Key controller{key.ns, core::get_string(stored->body, {"spec", "controllerRef", "name"})};
    if (terminating(stored->body) || !acts_in(namespaces_, key.ns) ||
        api_.peek(slinky::resources::kController, controller) == nullptr)
      continue;
    const bool away = site_.listening(key.name + "-restapi." + key.ns, 6820) == nullptr;
    miss(away && !waits_for_machines(key), "slurmrestd is away", key.str(), kRestAway);
  }
}

/// Checks that all slurmds have slurmctld's configuration. A slurmd that starts during a change must not keep the previous
/// configuration.
void ServiceOracle::look_at_slurmds() {
  for (const auto& [host, cluster] : site_.clusters()) {
    if (!acts_in(namespaces_, cluster->controller.ns)) continue;
    const std::vector<std::string> names = cluster->slurm->outdated();
    const std::set<std::string> outdated(names.begin(), names.end());
    for (const auto& [name, node] : cluster->slurm->nodes())
      miss(outdated.contains(name), "a slurmd has another configuration than slurmctld", cluster->controller.str() + " " + name,
           kOutdated);
  }
}

/// Looks for workers that should run jobs, but whose Slurm node is still held by the operator.
void ServiceOracle::look_at_workers() {
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    if (label(pod, api::kLabelName) != "slurmd") continue;
    const SlurmSite::Cluster* cluster = site_.find({key.ns, label(pod, api::kLabelCluster)});
    const std::string name = slurm_node_of(pod);
    const SimNode* node = cluster == nullptr ? nullptr : cluster->slurm->node(name);
    if (node == nullptr) continue;
    const Json* host = api_.peek(kinds::kNode, {"", core::get_string(pod, {"spec", "nodeName"})});
    const bool cordoned = pod_cordoned(pod) || host == nullptr || host_goes(*host);
    const bool held = (node->drain || node->down) && given_by_operator(node->reason) && !cluster->slurm->busy(name);
    miss(held && !cordoned && !terminating(pod), "an idle worker is held back by the operator", key.str(), kHeldBack);
  }
}

}  // namespace sim
