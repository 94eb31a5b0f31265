#include "sim/slurm_site.hpp"

#include <algorithm>

#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "operator/common/names.hpp"

namespace sim {
namespace {

using core::Json;

std::string label(const Json& pod, std::string_view name) { return core::get_string(pod, {"metadata", "labels", name}); }
std::string uid_of(const Json& pod) { return core::get_string(pod, {"metadata", "uid"}); }
std::string namespace_of(const Json& pod) { return core::get_string(pod, {"metadata", "namespace"}); }

const Json* container_of(const Json& pod, const std::string& name) {
  for (const char* list : {"containers", "initContainers"}) {
    const Json* items = core::find(pod, {"spec", list});
    if (items == nullptr) continue;
    for (const Json& item : *items) {
      if (core::get_string(item, {"name"}) == name) return &item;
    }
  }
  return nullptr;
}

std::string argument(const Json& container, std::string_view option) {
  const Json* args = core::find(container, {"args"});
  if (args == nullptr || !args->is_array()) return "";
  for (std::size_t i = 0; i + 1 < args->size(); ++i) {
    if ((*args)[i] == option) return (*args)[i + 1].get<std::string>();
  }
  return "";
}

std::string without_port(const std::string& endpoint) { return endpoint.substr(0, endpoint.rfind(':')); }

/// "host" of SlurmctldHost=name(host).
std::string slurmctld_host(const std::string& conf) {
  const std::size_t at = conf.find("SlurmctldHost=");
  const std::size_t open = at == std::string::npos ? at : conf.find('(', at);
  const std::size_t close = open == std::string::npos ? open : conf.find(')', open);
  return close == std::string::npos ? "" : conf.substr(open + 1, close - open - 1);
}

bool is_init(const Json& pod, const std::string& name) {
  const Json* items = core::find(pod, {"spec", "initContainers"});
  return items != nullptr && std::any_of(items->begin(), items->end(), [&](const Json& item) {
           return core::get_string(item, {"name"}) == name && core::get_string(item, {"restartPolicy"}) != "Always";
         });
}

/// What a preStop script does to its node: "scontrol update nodename=$(hostname) state=down reason='...'".
void run_hook(SimSlurm& slurm, const std::string& script, const std::string& node) {
  constexpr std::string_view kReason = "reason='";
  const std::size_t at = script.find(kReason);
  if (script.find("state=down") == std::string::npos || at == std::string::npos) return;
  const std::size_t begin = at + kReason.size();
  SimNodeUpdate update;
  update.state = "DOWN";
  update.reason = script.substr(begin, script.find('\'', begin) - begin);
  slurm.update_node(node, update, "root");
}

}  // namespace

std::string slurm_node_of(const Json& pod) {
  if (core::get_bool(pod, {"spec", "hostNetwork"})) return core::get_string(pod, {"spec", "nodeName"});
  const std::string host = core::get_string(pod, {"spec", "hostname"});
  return host.empty() ? core::get_string(pod, {"metadata", "name"}) : host;
}

SlurmSite::SlurmSite(core::Loop& loop, core::Random& random, KubeApi& api, Projected projected, SlurmOptions options)
    : loop_(loop), random_(random), api_(api), projected_(std::move(projected)), options_(std::move(options)) {}
SlurmSite::~SlurmSite() = default;

SlurmSite::Cluster* SlurmSite::of(const Json& pod, const std::string& container) const {
  std::string host;
  if (label(pod, api::kLabelName) == op::kAppController) {
    host = op::controller_object_name(label(pod, api::kLabelInstance)) + "." + namespace_of(pod);
  } else if (const Json* found = container_of(pod, container)) {
    host = without_port(argument(*found, "--conf-server"));
  }
  const auto it = clusters_.find(host);
  return it == clusters_.end() ? nullptr : it->second.get();
}

SlurmSite::Cluster* SlurmSite::find(const kube::Key& controller) {
  const auto it = clusters_.find(op::controller_object_name(controller.name) + "." + controller.ns);
  return it == clusters_.end() ? nullptr : it->second.get();
}

bool SlurmSite::init_done(const Json& pod, const std::string& container) const {
  if (label(pod, api::kLabelName) != op::kAppWorker) return true;
  const Json* init = container_of(pod, container);
  if (init == nullptr || container != "wait-controller") return true;
  // bash -c SCRIPT host port
  const Json* command = core::find(*init, {"command"});
  if (command == nullptr || command->size() < 5) return true;
  const auto cluster = clusters_.find((*command)[3].get<std::string>());
  return cluster != clusters_.end() && cluster->second->slurm->up();
}

core::Result<void> SlurmSite::start(const Json& pod, const std::string& container) {
  if (is_init(pod, container)) return {};
  const std::string app = label(pod, api::kLabelName);
  const Json* found = container_of(pod, container);
  if (found == nullptr || container != app) return {};  // a sidecar
  if (app == op::kAppController) return start_slurmctld(pod);
  if (app == op::kAppWorker) return start_slurmd(pod, *found);
  if (app == op::kAppRestApi) {
    const auto conf = projected_(pod, "slurm.conf");
    if (!conf) return core::fail(core::ErrorCode::kInvalid, "slurmrestd: fatal: no slurm.conf");
    restds_[uid_of(pod)] = slurmctld_host(*conf);
  }
  return {};
}

core::Result<void> SlurmSite::start_slurmctld(const Json& pod) {
  const std::string controller = label(pod, api::kLabelInstance);
  const std::string host = op::controller_object_name(controller) + "." + namespace_of(pod);
  std::unique_ptr<Cluster>& slot = clusters_[host];
  if (!slot) {
    slot = std::make_unique<Cluster>();
    slot->controller = {namespace_of(pod), controller};
    Cluster* cluster = slot.get();
    slot->slurm = std::make_unique<SimSlurm>(
        loop_, random_, [this, cluster] { return projected_(cluster->pod, "slurm.conf").value_or(""); }, options_);
    slot->rest = std::make_unique<SlurmRest>(loop_, *slot->slurm, [cluster] { return cluster->jwt_key; });
    if (on_cluster) on_cluster(*slot);
  }
  Cluster& cluster = *slot;
  if (cluster.slurm->up()) cluster.slurm->stop();
  cluster.pod = pod;
  cluster.pod_uid = uid_of(pod);
  cluster.jwt_key = projected_(pod, std::string(api::kKeyJwt)).value_or("");
  if (cluster.jwt_key.empty()) return core::fail(core::ErrorCode::kInvalid, "slurmctld: fatal: no jwt.key");
  const Json* claim = api_.peek(kube::resources::kPersistentVolumeClaim,
                                {namespace_of(pod), "statesave-" + op::controller_object_name(controller) + "-0"});
  // Without a claim the state is as old as the pod.
  const std::string volume = claim == nullptr ? cluster.pod_uid : core::get_string(*claim, {"metadata", "uid"});
  if (cluster.claim_uid != volume) cluster.slurm->lose_state();
  cluster.claim_uid = volume;
  return cluster.slurm->start();
}

core::Result<void> SlurmSite::start_slurmd(const Json& pod, const Json& container) {
  Cluster* cluster = of(pod, core::get_string(container, {"name"}));
  if (cluster == nullptr) return {};  // It looks for its slurmctld for ever.
  const std::string node = slurm_node_of(pod);
  if (!cluster->slurm->start_slurmd(node, argument(container, "--conf"), core::get_string(pod, {"status", "podIP"}, "10.0.0.1"),
                                    uid_of(pod))) {
    return core::fail(core::ErrorCode::kInvalid, "slurmd: fatal: --conf cannot be read");
  }
  slurmds_[uid_of(pod)] = node;
  return {};
}

bool SlurmSite::ready(const Json& pod, const std::string& container) const {
  const std::string app = label(pod, api::kLabelName);
  if (container != app) return true;
  Cluster* cluster = of(pod, container);
  if (app == op::kAppController) return cluster != nullptr && cluster->pod_uid == uid_of(pod) && cluster->slurm->up();
  if (app == op::kAppWorker) return cluster != nullptr && cluster->slurm->slurmd_ready(slurm_node_of(pod));
  return true;
}

void SlurmSite::pre_stop(const Json& pod, const std::string& container) {
  const Json* found = container_of(pod, container);
  if (container != op::kAppWorker || found == nullptr) return;
  const Json* hook = core::find(*found, {"lifecycle", "preStop", "exec", "command"});
  Cluster* cluster = of(pod, container);
  if (hook == nullptr || cluster == nullptr || slurmds_.count(uid_of(pod)) == 0) return;
  run_hook(*cluster->slurm, hook->dump(), slurm_node_of(pod));
}

void SlurmSite::stop(const Json& pod, const std::string& container) {
  const std::string app = label(pod, api::kLabelName);
  if (container != app) return;
  if (app == op::kAppController) {
    Cluster* cluster = of(pod, container);
    if (cluster == nullptr || cluster->pod_uid != uid_of(pod)) return;
    cluster->slurm->stop();
    cluster->pod_uid.clear();
  } else if (app == op::kAppWorker) {
    const auto node = slurmds_.extract(uid_of(pod));
    if (node.empty()) return;
    // A successor of the same name may run already, elsewhere.
    const bool replaced = std::any_of(slurmds_.begin(), slurmds_.end(), [&](const auto& other) { return other.second == node.mapped(); });
    Cluster* cluster = of(pod, container);
    if (cluster != nullptr && !replaced) cluster->slurm->stop_slurmd(node.mapped());
  } else {
    restds_.erase(uid_of(pod));
  }
}

SlurmRest* SlurmSite::listening(const std::string& host, std::uint16_t) const {
  const std::size_t dot = host.find('.');
  if (dot == std::string::npos) return nullptr;
  const kube::Key service{host.substr(dot + 1), host.substr(0, dot)};
  const Json* object = api_.peek(kube::resources::kService, service);
  if (object == nullptr) return nullptr;
  const Json* selector = core::find(*object, {"spec", "selector"});
  if (selector == nullptr) return nullptr;
  for (const auto& [key, stored] : api_.store().all(table_name(kube::resources::kPod))) {
    if (key.ns != service.ns) continue;
    const auto restd = restds_.find(uid_of(stored->body));
    if (restd == restds_.end()) continue;
    const Json* labels = core::find(stored->body, {"metadata", "labels"});
    if (labels == nullptr || !core::contains(*labels, *selector)) continue;
    const auto cluster = clusters_.find(restd->second);
    if (cluster != clusters_.end()) return cluster->second->rest.get();
  }
  return nullptr;
}

}  // namespace sim
