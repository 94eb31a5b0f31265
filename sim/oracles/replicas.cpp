#include "sim/oracles/replicas.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cluster/names.hpp"
#include "sim/oracles/looks.hpp"
#include "sim/oracles/objects.hpp"

namespace sim {

using core::Json;

ReplicaOracle::ReplicaOracle(core::Loop& loop, KubeApi& api, Tell violation)
    : loop_(loop), api_(api), violation_(std::move(violation)) {
  listen();
}

void ReplicaOracle::listen() {
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    if (change->type == Change::Type::kDeleted) return;
    const Json& body = change->object->body;
    if (table == table_name(op::resources::kNodeSet)) {
      auto& wished = wished_[text_at(body, {"metadata", "uid"})];
      const std::int64_t now = core::get_int(body, {"spec", "replicas"}, 1);
      if (wished.empty() || wished.back().second != now) wished.emplace_back(loop_.clock().mono(), now);
    }
    if (table == "pods" && is_worker(body) && change->type == Change::Type::kAdded) {
      ++made_[change->key.name];
      count_workers(body);
    }
  });
}

/// Never more than were wished for lately: a watch may be late, and an operator may stand still.
void ReplicaOracle::count_workers(const Json& made) {
  const std::string owner = owner_uid(made, "NodeSet");
  std::int64_t have = 0, most = 0;
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    if (is_worker(pod) && !terminating(pod) && !ended(pod) && owner_uid(pod, "NodeSet") == owner) ++have;
  }
  const auto& wished = wished_[owner];
  for (auto it = wished.rbegin(); it != wished.rend(); ++it) {
    most = std::max(most, it->second);
    if (loop_.clock().mono() - it->first > kLookAndWrite) break;
  }
  if (have > most)
    violation_(fmt::format("worker {} makes {} of its NodeSet, of which {} at most were wished for", key_of(made), have, most));
}

}  // namespace sim
