#include "slinky/names.hpp"

#include "core/json.hpp"

namespace slinky {
namespace {

std::string text(std::string_view view) {
  return std::string(view);
}

std::string name_of_prefix(std::string prefix, std::string_view nodeset) {
  while (!prefix.empty() && prefix.back() == '-') prefix.pop_back();
  return prefix.empty() ? text(nodeset) : prefix;
}

}  // namespace

kube::StringMap selector_labels(std::string_view app, std::string_view instance) {
  return {{text(api::kLabelName), text(app)}, {text(api::kLabelInstance), text(instance)}};
}

kube::StringMap component_labels(std::string_view app, std::string_view instance, std::string_view component) {
  kube::StringMap out = selector_labels(app, instance);
  out[text(api::kLabelComponent)] = text(component);
  return out;
}

kube::StringMap controller_labels(std::string_view controller) {
  return component_labels(kAppController, controller, "controller");
}

kube::StringMap backup_labels(std::string_view controller) {
  return component_labels(kAppBackup, controller, "controller");
}

kube::StringMap slurmctld_selector(std::string_view controller) {
  kube::StringMap out = controller_labels(controller);
  out.erase(text(api::kLabelName));
  return out;
}

kube::StringMap restapi_labels(std::string_view restapi) {
  return component_labels(kAppRestApi, restapi, "restapi");
}

kube::StringMap loginset_labels(std::string_view loginset) {
  return component_labels(kAppLogin, loginset, "login");
}

kube::StringMap accounting_labels(std::string_view accounting) {
  return component_labels(kAppAccounting, accounting, "accounting");
}

kube::StringMap database_labels(std::string_view accounting) {
  return component_labels(kAppDatabase, accounting, "database");
}

kube::StringMap worker_labels(std::string_view nodeset, std::string_view controller) {
  kube::StringMap out = component_labels(kAppWorker, nodeset, "worker");
  out[text(api::kLabelCluster)] = text(controller);
  return out;
}

std::string controller_object_name(std::string_view controller) {
  return text(controller) + "-controller";
}
std::string controller_internal_service_name(std::string_view controller) {
  return text(controller) + "-controller-internal";
}
std::string backup_object_name(std::string_view controller) {
  return controller_object_name(controller) + "-backup";
}
std::string config_map_name(std::string_view controller) {
  return text(controller) + "-config";
}
std::string config_files_name(std::string_view controller) {
  return config_map_name(controller) + "-files";
}
std::string accepted_files_name(std::string_view controller) {
  return config_files_name(controller) + "-accepted";
}
std::string state_claim_name(std::string_view controller) {
  return "statesave-" + controller_object_name(controller) + "-0";
}
std::string keyring_name(std::string_view controller) {
  return text(controller) + "-keyring";
}
std::string generated_slurm_key_name(std::string_view controller) {
  return text(controller) + "-slurm-key";
}
std::string generated_jwt_key_name(std::string_view controller) {
  return text(controller) + "-jwt-key";
}
std::string restapi_object_name(std::string_view restapi) {
  return text(restapi) + "-restapi";
}
std::string accounting_object_name(std::string_view accounting) {
  return text(accounting) + "-accounting";
}
std::string database_object_name(std::string_view accounting) {
  return text(accounting) + "-mariadb";
}
std::string ssh_host_keys_name(std::string_view loginset) {
  return text(loginset) + "-ssh-host-keys";
}
std::string ssh_config_name(std::string_view loginset) {
  return text(loginset) + "-ssh-config";
}
std::string login_hosts_name(std::string_view loginset) {
  return text(loginset) + "-hosts";
}
std::string worker_ssh_host_keys_name(std::string_view nodeset) {
  return text(nodeset) + "-worker-ssh-host-keys";
}
std::string workers_service_name(std::string_view controller) {
  return "slurm-workers-" + text(controller);
}
std::string workers_domain(std::string_view ns, std::string_view controller, std::string_view cluster_domain) {
  return workers_service_name(controller) + "." + text(ns) + ".svc." + text(cluster_domain);
}
std::string workers_pdb_name(std::string_view controller) {
  return "slurm-workers-pdb-" + text(controller);
}

slurm::ClusterKey cluster_key(std::string_view ns, std::string_view controller) {
  return text(ns) + "/" + text(controller);
}

slurm::AccountingKey accounting_key(std::string_view ns, std::string_view accounting) {
  return "accounting/" + text(ns) + "/" + text(accounting);
}

KeyRef slurm_key_ref(const api::ControllerSpec& spec, std::string_view controller) {
  if (spec.slurm_key_ref) return {spec.slurm_key_ref->name, spec.slurm_key_ref->key};
  return {.secret = generated_slurm_key_name(controller), .key = text(api::kKeySlurm), .generated = true};
}

KeyRef jwt_key_ref(const api::ControllerSpec& spec, std::string_view controller) {
  if (const api::SecretKeySelector* named = spec.jwt_key()) return {named->name, named->key};
  return {.secret = generated_jwt_key_name(controller), .key = text(api::kKeyJwt), .generated = true};
}

std::string Endpoint::str() const {
  return host + ":" + std::to_string(port);
}

Endpoint controller_endpoint(const api::ControllerSpec& spec, std::string_view ns, std::string_view controller) {
  if (spec.external && spec.external_config) return {spec.external_config->host, spec.external_config->port};
  return {controller_object_name(controller) + "." + text(ns),
          spec.service.port != 0 ? spec.service.port : api::kPortSlurmctld};
}

int backups_of(const api::ControllerSpec& spec) {
  return spec.ha.enabled && !spec.external ? spec.ha.backups : 0;
}

std::vector<std::string> slurmctld_pods(std::string_view controller, int backups) {
  std::vector<std::string> out{controller_object_name(controller) + "-0"};
  for (int i = 0; i < backups; ++i) out.push_back(backup_object_name(controller) + "-" + std::to_string(i));
  return out;
}

std::string slurmctld_address(std::string_view pod, std::string_view ns) {
  return text(pod) + "." + text(ns);
}

std::string conf_servers(const api::ControllerSpec& spec, std::string_view ns, std::string_view controller) {
  std::string out;
  if (const int backups = backups_of(spec); backups > 0) {
    for (const std::string& pod : slurmctld_pods(controller, backups))
      out += Endpoint{slurmctld_address(pod, ns), api::kPortSlurmctld}.str() + ",";
  }
  return out + controller_endpoint(spec, ns, controller).str();
}

Endpoint accounting_endpoint(const api::AccountingSpec& spec, std::string_view ns, std::string_view accounting) {
  if (spec.external && spec.external_config) return {spec.external_config->host, spec.external_config->port};
  return {accounting_object_name(accounting) + "." + text(ns), spec.service.port != 0 ? spec.service.port : api::kPortSlurmdbd};
}

Endpoint restapi_endpoint(const api::RestApiSpec& spec, std::string_view ns, std::string_view restapi) {
  return {restapi_object_name(restapi) + "." + text(ns), spec.service.port != 0 ? spec.service.port : api::kPortSlurmrestd};
}

std::string slurm_node_set_name(const api::NodeSetSpec& spec, std::string_view nodeset) {
  return name_of_prefix(core::get_string(spec.pod_template.spec, {"hostname"}), nodeset);
}

std::string slurm_node_set_name(const kube::Object& nodeset) {
  return name_of_prefix(core::get_string(nodeset.body, {"spec", "template", "spec", "hostname"}), nodeset.meta.name);
}

}  // namespace slinky
