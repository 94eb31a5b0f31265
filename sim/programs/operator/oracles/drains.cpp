#include "sim/programs/operator/oracles/drains.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "sim/programs/operator/oracles/objects.hpp"
#include "sim/slurm/text.hpp"
#include "slinky/names.hpp"

namespace sim {
namespace {

using core::Json;
namespace kinds = kube::resources;

/// The operator may not know of an event that is more recent than this: a watch can be late, Slurm slow, the operator paused.
constexpr core::Duration kUnheard{90000};

/// Reports whether the state of the host allows the operator to drain its workers. This includes hosts that are not ready,
/// because the known state of their pods can be old.
bool host_cordoned(const Json& node) {
  return host_goes(node) || !condition_true(node, "Ready");
}

bool ends(const Json& pod) {
  return terminating(pod) || ended(pod);
}

Json labels_of(const Json& object) {
  return object["metadata"].value("labels", Json::object());
}

}  // namespace

DrainOracle::DrainOracle(core::Loop& loop, KubeApi& api, Tell violation)
    : loop_(loop), api_(api), violation_(std::move(violation)) {
  listen();
}

void DrainOracle::listen() {
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    const core::MonoTime now = loop_.clock().mono();
    const Json& is = change->object->body;
    const Json& was = change->before ? change->before->body : is;
    const bool over = change->type == Change::Type::kDeleted || ends(is);
    if (table == "pods" && over && !ends(was)) ended_[{change->key.ns, label(is, api::kLabelInstance)}].push_back(now);
    if (table == "pods" && (pod_cordoned(is) || pod_cordoned(was))) cordoned_[change->key] = now;
    if (table == "nodes" && (host_cordoned(is) || host_cordoned(was))) cordoned_[change->key] = now;
    if (table == "nodes" && (over || labels_of(is) != labels_of(was) || daemon_name_of(is) != daemon_name_of(was)))
      changed_[change->key] = now;
    if (table == table_name(slinky::resources::kNodeSet)) {
      const bool gone = change->type == Change::Type::kDeleted || terminating(is);
      if (is["spec"] != was["spec"]) changed_[change->key] = now;
      wished_[change->key].emplace_back(
          now, gone || bound_to_hosts(is) || bound_to_hosts(was) ? 0 : core::get_int(is, {"spec", "replicas"}, 1));
      partitions_[change->key].emplace_back(now, partition_of(is));
      scheduled_[change->key].emplace_back(now, text_at(is, {"spec", "updateStrategy", "type"}) == "ScheduledUpdate");
    }
  });
}

bool DrainOracle::lately(const core::MonoTime& at) const {
  return loop_.clock().mono() - at <= kUnheard;
}

bool DrainOracle::held(const kube::Key& key, const Json& pod) const {
  const kube::Key host{"", core::get_string(pod, {"spec", "nodeName"})};
  const Json* node = api_.peek(kinds::kNode, host);
  if (pod_cordoned(pod) || node == nullptr || host_cordoned(*node)) return true;
  return std::ranges::any_of(std::vector{key, host}, [&](const kube::Key& of) {
    const auto at = cordoned_.find(of);
    return at != cordoned_.end() && lately(at->second);
  });
}

bool DrainOracle::out_of_place(const Json& nodeset, const Json& pod, const std::string& node) const {
  const std::string host = text_at(pod, {"spec", "nodeName"});
  const Json* machine = api_.peek(kinds::kNode, {"", host});
  if (machine == nullptr || !matches(nodeset, *machine) || daemon_name_of(*machine) != node) return true;
  const auto changed = [&](const kube::Key& key) {
    const auto at = changed_.find(key);
    return at != changed_.end() && lately(at->second);
  };
  return changed({"", host}) || changed({namespace_of(nodeset), name_of(nodeset)});
}

/// Reports whether there are more workers than the lowest number that was wanted recently.
bool DrainOracle::too_many(const std::string& ns, const std::string& nodeset) const {
  std::int64_t have = 0;
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const bool its =
        key.ns == ns && label(stored->body, api::kLabelName) == "slurmd" && label(stored->body, api::kLabelInstance) == nodeset;
    if (its && !ends(stored->body)) ++have;
  }
  // For an operator whose watch is late, a worker that has ended recently can still exist.
  const auto ended = ended_.find({ns, nodeset});
  if (ended != ended_.end()) have += std::ranges::count_if(ended->second, [this](const auto& at) { return lately(at); });
  const auto wished = wished_.find({ns, nodeset});
  if (wished == wished_.end()) return true;
  for (auto it = wished->second.rbegin(); it != wished->second.rend(); ++it) {
    if (it->second < have) return true;
    if (!lately(it->first)) break;
  }
  return false;
}

/// Reports whether the pod's ordinal has always been below rollingUpdate.partition of its NodeSet recently.
bool DrainOracle::below_partition(const std::string& ns, const Json& pod) const {
  const auto told = partitions_.find({ns, label(pod, api::kLabelInstance)});
  if (told == partitions_.end()) return false;
  for (auto it = told->second.rbegin(); it != told->second.rend(); ++it) {
    if (it->second <= ordinal_of(pod)) return false;
    if (!lately(it->first)) break;
  }
  return true;
}

bool DrainOracle::outside_window(const std::string& ns, const Json& pod, const SimNode& record) const {
  if (record.maintenance || (record.maintained && lately(*record.maintained))) return false;
  const auto told = scheduled_.find({ns, label(pod, api::kLabelInstance)});
  if (told == scheduled_.end()) return false;
  for (auto it = told->second.rbegin(); it != told->second.rend(); ++it) {
    if (!it->second) return false;
    if (!lately(it->first)) break;
  }
  return true;
}

/// Reports whether there is a newer template that replaces workers of other templates.
bool DrainOracle::outdated(const std::string& ns, const Json& pod) const {
  const std::string its = label(pod, api::kLabelRevisionHash);
  return std::ranges::any_of(api_.store().all(table_name(kube::resources::kControllerRevision)), [&](const auto& item) {
    const Json& revision = item.second->body;
    return item.first.ns == ns && label(revision, api::kLabelInstance) == label(pod, api::kLabelInstance) &&
           label(revision, api::kLabelRevisionHash) != its && annotation(revision, api::kAnnotationRolls) == "true";
  });
}

bool DrainOracle::explained(const SlurmSite::Cluster& cluster, const SimNode& record, const std::string& reason) const {
  const std::string& node = record.name;
  const Json* controller = api_.peek(slinky::resources::kController, cluster.controller);
  const Json* space = api_.peek(kinds::kNamespace, {"", cluster.controller.ns});
  if (controller == nullptr || terminating(*controller) || space == nullptr || terminating(*space)) return true;
  // The drain of a node without a slurmd does no harm.
  const auto slurmd = cluster.slurmds.find(node);
  if (slurmd == cluster.slurmds.end()) return true;
  bool any = false;
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    if (key.ns != cluster.controller.ns || label(pod, api::kLabelName) != "slurmd" || slurm_node_of(pod) != node) continue;
    any = true;
    if (reason.ends_with("is being updated") && outdated(key.ns, pod) && !below_partition(key.ns, pod) &&
        !outside_window(key.ns, pod, record))
      return true;
    if (ends(pod) || held(key, pod)) return true;
    const Json* nodeset = api_.peek(slinky::resources::kNodeSet, {key.ns, label(pod, api::kLabelInstance)});
    if (nodeset != nullptr && !terminating(*nodeset) && bound_to_hosts(*nodeset) && bound_to_host(pod)) {
      if (out_of_place(*nodeset, pod, node)) return true;
      continue;
    }
    if (nodeset != nullptr && bound_to_hosts(*nodeset) != bound_to_host(pod)) return true;
    if (too_many(key.ns, label(pod, api::kLabelInstance))) return true;
  }
  return !any;
}

void DrainOracle::drained(const SlurmSite::Cluster& cluster, const SimNode& node, const std::string& reason) {
  // The operator restores drains of administrators with the administrators' reasons. Such a drain needs no other cause.
  if (!given_by_operator(reason) || explained(cluster, node, reason)) return;
  // The operator is allowed to drain the node of an earlier pod until it sees that the slurmd of the next pod has registered.
  const auto slurmd = cluster.slurmds.find(node.name);
  const bool fresh = cluster.slurm->now_seconds() - node.registered_at <= kUnheard.count() / 1000;
  const bool anothers = slurmd != cluster.slurmds.end() && (node.instance_id != slurmd->second || fresh);
  if (anothers && reason == "slurm-operator: Pod is gone") return;
  violation_(fmt::format("node {} was drained for no cause: \"{}\"", node.name, reason));
}

}  // namespace sim
