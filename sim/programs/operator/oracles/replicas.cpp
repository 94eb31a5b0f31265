#include "sim/programs/operator/oracles/replicas.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "sim/programs/operator/oracles/looks.hpp"
#include "sim/programs/operator/oracles/objects.hpp"
#include "slinky/names.hpp"

namespace sim {

using core::Json;

ReplicaOracle::ReplicaOracle(core::Loop& loop, KubeApi& api, Tell violation)
    : loop_(loop), api_(api), violation_(std::move(violation)) {
  listen();
}

void ReplicaOracle::listen() {
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    if (table == "pods") note_worker(*change);
    if (change->type == Change::Type::kDeleted) return;
    const Json& body = change->object->body;
    if (table == table_name(slinky::resources::kNodeSet)) {
      note_wish(body);
    }
    if (table == "nodes") {
      for (const auto& [key, stored] : api_.store().all(table_name(slinky::resources::kNodeSet))) {
        if (bound_to_hosts(stored->body)) note_wish(stored->body);
      }
    }
    if (table == "pods" && is_worker(body) && change->type == Change::Type::kAdded) {
      ++made_[change->key.name];
      count_workers(body);
    }
  });
}

void ReplicaOracle::note_wish(const Json& nodeset) {
  auto& wished = wished_[text_at(nodeset, {"metadata", "uid"})];
  Wish now{loop_.clock().mono(), wished_workers(api_, nodeset), {}};
  if (bound_to_hosts(nodeset)) {
    for (const auto& [key, stored] : api_.store().all("nodes")) {
      if (matches(nodeset, stored->body)) now.machines.insert(key.name);
    }
  }
  if (wished.empty() || wished.back().workers != now.workers || wished.back().machines != now.machines)
    wished.push_back(std::move(now));
}

void ReplicaOracle::note_worker(const Change& change) {
  if (const auto before = owners_.extract(change.key)) --live_[before.mapped()];
  const Json& pod = change.object->body;
  if (change.type == Change::Type::kDeleted || !is_worker(pod) || terminating(pod) || ended(pod)) return;
  const std::string& owner = owners_[change.key] = owner_uid(pod, "NodeSet");
  ++live_[owner];
}

/// Checks that the Kubernetes node of a new worker matches the NodeSet, or recently matched it, and has no other worker.
void ReplicaOracle::judge_bound(const Json& made) {
  const std::string owner = owner_uid(made, "NodeSet"), host = pinned_to(made);
  const Json* machine = api_.peek(kube::resources::kNode, {"", host});
  const Json* nodeset = api_.peek(slinky::resources::kNodeSet, {namespace_of(made), label(made, api::kLabelInstance)});
  if (nodeset == nullptr) return;
  // An operator can see a new spec together with an old list of machines, although the two never existed together.
  const auto& wished = wished_[owner];
  const bool lately = !wished.empty() && loop_.clock().mono() - wished.back().since <= kLookAndWrite;
  if (!lately && (machine == nullptr || !bound_to_hosts(*nodeset) || !matches(*nodeset, *machine)))
    violation_(fmt::format("worker {} was made for machine {}, which does not match", key_of(made), host));
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    if (is_worker(pod) && !terminating(pod) && !ended(pod) && owner_uid(pod, "NodeSet") == owner && bound_to_host(pod) &&
        pinned_to(pod) == host && key_of(pod) != key_of(made))
      violation_(fmt::format("worker {} was made for machine {}, which has {}", key_of(made), host, key_of(pod)));
  }
}

/// Checks that there are not more workers than the highest number that was wanted recently. An earlier number counts too,
/// because a watch can be late, or the operator paused.
void ReplicaOracle::count_workers(const Json& made) {
  if (bound_to_host(made)) return judge_bound(made);
  const std::string owner = owner_uid(made, "NodeSet");
  const std::int64_t have = live_[owner];
  std::int64_t most = 0;
  const auto& wished = wished_[owner];
  for (auto it = wished.rbegin(); it != wished.rend(); ++it) {
    most = std::max(most, it->workers);
    if (loop_.clock().mono() - it->since > kLookAndWrite) break;
  }
  if (have > most)
    violation_(fmt::format("worker {} makes {} of its NodeSet, of which {} at most were wished for", key_of(made), have, most));
}

}  // namespace sim
