#include "sim/programs/operator/oracles/looks.hpp"

#include <algorithm>

#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/objects.hpp"

namespace sim {

using core::Json;

Looks::Looks(core::Loop& loop, KubeApi& api, SlurmSite& site) : loop_(loop), api_(api), site_(site) {
  listen();
}

void Looks::listen() {
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    const Json& body = change->object->body;
    if (table != "pods" || change->type != Change::Type::kAdded || !is_worker(body)) return;
    // An earlier look was at an earlier pod, so it does not count for the new pod.
    const auto asked = asked_.find(slurm_node_of(body));
    if (asked != asked_.end()) asked->second.idle_and_held = false;
  });
}

void Looks::look(const std::string& node) {
  const auto held = [&](const auto& cluster) { return idle_and_held(*cluster.second->slurm, node); };
  asked_[node] = {loop_.clock().mono(), std::ranges::all_of(site_.clusters(), held)};
}

void Looks::updated(const SlurmSite::Cluster& cluster, const SimNode& node, const SimNodeUpdate& update,
                    const std::string& user) {
  if (!frees_node(update)) return;
  if (user == kSlurmAdmin) {
    freed_[std::pair(cluster.controller, node.name)] = loop_.clock().mono();
    return;
  }
  // The operator itself makes the node accept jobs, so its earlier look no longer counts.
  const auto asked = asked_.find(node.name);
  if (asked != asked_.end()) asked->second.idle_and_held = false;
}

std::optional<core::MonoTime> Looks::asked(const std::string& node) const {
  const auto asked = asked_.find(node);
  return asked == asked_.end() ? std::nullopt : std::optional(asked->second.at);
}

std::optional<core::MonoTime> Looks::freed(const kube::Key& controller, const std::string& node) const {
  const auto freed = freed_.find({controller, node});
  return freed == freed_.end() ? std::nullopt : std::optional(freed->second);
}

bool Looks::was_idle_and_held(const std::string& node) const {
  const auto look = asked_.find(node);
  return look != asked_.end() && look->second.idle_and_held && loop_.clock().mono() - look->second.at < kLookAndWrite;
}

bool Looks::was_freed_since(const kube::Key& controller, const std::string& node) const {
  const auto freed = freed_.find({controller, node});
  return was_idle_and_held(node) && freed != freed_.end() && freed->second >= asked_.at(node).at;
}

}  // namespace sim
