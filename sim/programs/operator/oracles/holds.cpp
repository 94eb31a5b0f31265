#include "sim/programs/operator/oracles/holds.hpp"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <utility>

#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/objects.hpp"
#include "sim/slurm/text.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Json;
namespace kinds = kube::resources;

/// The operator may not know of an event that is more recent than this: a watch, or the answer of a slow Slurm, can be late.
constexpr core::Duration kDrainNews{40000};

/// Reports whether somebody other than the operator and slurmctld gave the reason of a DOWN. Then that person must resume the
/// node.
bool down_by_somebody(const std::string& reason) {
  return !reason.empty() && !given_by_operator(reason) && !reason.ends_with("Not responding") &&
         reason != "Node unexpectedly rebooted";
}

}  // namespace

HoldOracle::HoldOracle(core::Loop& loop, KubeApi& api, const Looks& looks, Tell violation)
    : loop_(loop), api_(api), looks_(looks), violation_(std::move(violation)) {
  listen();
}

void HoldOracle::listen() {
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    if (table == "nodes" || table == table_name(slinky::resources::kNodeSet)) {
      const Json& is = change->object->body;
      const bool same = change->before && change->type != Change::Type::kDeleted &&
                        is["metadata"].value("labels", Json()) == change->before->body["metadata"].value("labels", Json()) &&
                        daemon_name_of(is) == daemon_name_of(change->before->body) &&
                        (table == "nodes" || is["spec"] == change->before->body["spec"]);
      if (!same) changed_[change->key] = loop_.clock().mono();
    }
    if (table != "pods") return;
    const Json& pod = change->object->body;
    const bool goes = is_worker(pod) && (terminating(pod) || ended(pod));
    if (change->type == Change::Type::kDeleted || goes) left_[change->key] = loop_.clock().mono();
  });
}

HoldOracle::Hold HoldOracle::on(const kube::Key& controller, const std::string& node) const {
  const auto held = foreign_.find({controller, node});
  return held == foreign_.end() ? Hold{} : held->second;
}

bool HoldOracle::wants_bound_worker(const kube::Key& controller, const std::string& node) const {
  const Json* cluster = api_.peek(slinky::resources::kController, controller);
  const Json* space = api_.peek(kinds::kNamespace, {"", controller.ns});
  if (cluster == nullptr || terminating(*cluster) || space == nullptr || terminating(*space)) return false;
  const auto settled = [&](const kube::Key& key) {
    const auto at = changed_.find(key);
    return at == changed_.end() || loop_.clock().mono() - at->second >= kDrainNews;
  };
  return std::ranges::any_of(api_.store().all(table_name(slinky::resources::kNodeSet)), [&](const auto& item) {
    const Json& nodeset = item.second->body;
    const bool its = item.first.ns == controller.ns && text_at(nodeset, {"spec", "controllerRef", "name"}) == controller.name;
    if (!its || terminating(nodeset) || !bound_to_hosts(nodeset) || !settled(item.first)) return false;
    return std::ranges::any_of(api_.store().all("nodes"), [&](const auto& machine) {
      return daemon_name_of(machine.second->body) == node && matches(nodeset, machine.second->body) && settled(machine.first);
    });
  });
}

/// Reports whether a NodeSet wants a worker for that node, and the operator knows this. Returns false if the NodeSet possibly
/// wants the worker only because another worker has just ended.
bool HoldOracle::wants_worker(const kube::Key& controller, const std::string& node) const {
  const std::size_t dash = node.rfind('-');
  if (wants_bound_worker(controller, node)) return true;
  if (dash == std::string::npos) return false;
  const std::string name = node.substr(0, dash);
  const auto ordinal_in = [&](std::string_view pod) {
    int out = -1;
    if (pod.starts_with(name + "-")) std::from_chars(pod.data() + dash + 1, pod.data() + pod.size(), out);
    return out;
  };
  const Json* cluster = api_.peek(slinky::resources::kController, controller);
  const Json* space = api_.peek(kinds::kNamespace, {"", controller.ns});
  const Json* nodeset = api_.peek(slinky::resources::kNodeSet, {controller.ns, name});
  if (cluster == nullptr || terminating(*cluster) || space == nullptr || terminating(*space) || nodeset == nullptr ||
      terminating(*nodeset) || text_at(*nodeset, {"spec", "controllerRef", "name"}) != controller.name ||
      core::get_int(*nodeset, {"status", "observedGeneration"}) != core::get_int(*nodeset, {"metadata", "generation"})) {
    return false;
  }
  for (const auto& [pod, at] : left_) {
    if (pod.ns == controller.ns && pod.name != node && ordinal_in(pod.name) >= 0 && loop_.clock().mono() - at < kDrainNews)
      return false;
  }
  std::set<int> used;
  std::int64_t held = 0;
  for (const auto& [key, stored] : api_.store().all("pods")) {
    if (key.ns != controller.ns || !is_worker(stored->body) || ordinal_in(key.name) < 0) continue;
    used.insert(ordinal_in(key.name));
    if (!ended(stored->body)) ++held;
  }
  if (bound_to_hosts(*nodeset)) return false;
  const std::int64_t wanted = core::get_int(*nodeset, {"spec", "replicas"}, 1);
  const int ordinal = ordinal_in(node);
  if (used.contains(ordinal)) return held <= wanted;
  // New workers get the lowest free ordinals.
  std::int64_t free_before = 0;
  for (int i = 0; i < ordinal; ++i) free_before += used.contains(i) ? 0 : 1;
  return free_before < wanted - held;
}

const Json* HoldOracle::noted_by(const kube::Key& controller, const std::string& node, const std::string& reason) const {
  for (const auto& [key, stored] : api_.store().all(table_name(slinky::resources::kNodeSet))) {
    const Json& nodeset = stored->body;
    if (key.ns == controller.ns && text_at(nodeset, {"spec", "controllerRef", "name"}) == controller.name &&
        text_at(nodeset, {"status", "drainsToRestore", node}) == reason)
      return &nodeset;
  }
  return nullptr;
}

void HoldOracle::made(const SlurmSite::Cluster& cluster, const SimNode& node) {
  if (freed_.contains({cluster.controller, node.name}) && node.drain && node.reason == slinky::kDrainedBefore)
    violation_("node " + node.name + " registers drained, as it was before an admin freed it");
  const auto found = foreign_.find({cluster.controller, node.name});
  if (found == foreign_.end() || found->second.nodeset_uid.empty()) return;
  Hold& hold = found->second;
  const std::string nodeset = std::exchange(hold.nodeset_uid, "");
  const Json* owner = api_.peek(slinky::resources::kController, cluster.controller);
  const bool stays = std::ranges::any_of(api_.store().all(table_name(slinky::resources::kNodeSet)), [&](const auto& item) {
    return text_at(item.second->body, {"metadata", "uid"}) == nodeset && !terminating(item.second->body);
  });
  if (!stays || owner == nullptr || text_at(*owner, {"metadata", "uid"}) != hold.controller_uid) {
    foreign_.erase(found);
  } else if (!node.drain) {
    violation_("the drain of node " + node.name + ", which an admin had drained, was lost with its record");
  }
}

bool HoldOracle::record_deletion(const SlurmSite::Cluster& cluster, const SimNode& node) {
  const Hold hold = on(cluster.controller, node.name);
  const Json* owner = api_.peek(slinky::resources::kController, cluster.controller);
  const Json* nodeset = hold.drain ? noted_by(cluster.controller, node.name, hold.reason) : nullptr;
  if (nodeset != nullptr && owner != nullptr) {
    Hold& kept = foreign_[{cluster.controller, node.name}];
    kept.down = false;
    kept.nodeset_uid = text_at(*nodeset, {"metadata", "uid"});
    kept.controller_uid = text_at(*owner, {"metadata", "uid"});
    return true;
  }
  // slurmctld replaces an administrator's reason by a message that the slurmd lacks resources, so the reason is lost.
  if (node.invalid_reg && tells_lack(node.reason)) return false;
  // The record contains the administrator's hold, which also applies to the next pod of this name.
  if ((hold.drain || hold.down) && loop_.clock().mono() - hold.since > kDrainNews &&
      wants_worker(cluster.controller, node.name)) {
    violation_(fmt::format("the record of node {} was deleted, which an admin holds, and a NodeSet wants: {}", node.name,
                           shown(*cluster.slurm, node)));
  }
  return false;
}

void HoldOracle::updated(const SlurmSite::Cluster& cluster, const SimNode& node, const SimNodeUpdate& update,
                         const std::string& user) {
  const auto place = std::pair(cluster.controller, node.name);
  Hold& hold = foreign_[place];
  const std::string state = update.state.value_or("");
  const bool frees = frees_node(update);
  if (state == "DRAIN" || state == "DOWN") freed_.erase(place);
  if (user == kSlurmAdmin) {
    if (hold.drain && frees) freed_.insert(place);
    hold.since = loop_.clock().mono();
    // The drain belongs to whoever gave the node's reason, no matter who set the drain. The operator preserves that reason.
    const bool gives = state == "DRAIN" || state == "DOWN" || hold.drain;
    if (gives) hold.reason = update.reason && !update.reason->empty() ? *update.reason : node.reason;
    if (gives && hold.reason.empty()) hold.reason = "drained without a reason";
    hold.drain = state == "DRAIN" || (state == "DOWN" && node.drain) || (hold.drain && !frees);
    // UNDRAIN does not end a DOWN or remove the drain's reason, even if a preStop set the DOWN. Then the DOWN looks like the
    // administrator's.
    const bool left_down = state == "UNDRAIN" && node.down && down_by_somebody(node.reason);
    hold.down = state == "DOWN" || left_down || (hold.down && (!frees || state == "UNDRAIN"));
    return;
  }
  const auto asked = looks_.asked(node.name);
  const bool unseen = asked && node.own_drain && *node.own_drain >= *asked;
  if (frees && user == "slurm" && node.own_drain && !unseen)
    violation_(fmt::format("{} of node {}, which Slurm itself had drained (reason \"{}\")", state, node.name, node.reason));
  if (!hold.drain && !hold.down) return;
  if (hold.drain && state.empty() && update.reason == hold.reason) return;  // the drain is restored
  if (state == "DRAIN" && !update.reason) hold.drain = true;
  // Slurm has no conditional writes, so the operator can overwrite a change that an administrator makes between the operator's
  // look and its write.
  if ((frees || (update.reason && user == "slurm")) && asked && hold.since >= *asked) {
    foreign_.erase(place);
    return;
  }
  if (frees) {
    violation_(
        fmt::format("{} of node {}, which an admin had drained (its reason now: \"{}\")", state, node.name, node.reason));
    foreign_.erase(place);
  } else if (update.reason && user == "slurm") {
    violation_(fmt::format("the reason of node {}, which an admin had drained, was written over", node.name));
  }
}

void HoldOracle::returned(const SlurmSite::Cluster& cluster, const SimNode& node) {
  const auto hold = foreign_.find({cluster.controller, node.name});
  if (hold != foreign_.end() && hold->second.down)
    violation_("node " + node.name + ", which an admin had set DOWN, was returned to service by its registration");
}

void HoldOracle::forget(const SlurmSite::Cluster& cluster, const SimNode& node, bool by_operator) {
  if (!by_operator) freed_.erase({cluster.controller, node.name});
  foreign_.erase({cluster.controller, node.name});
}

}  // namespace sim
