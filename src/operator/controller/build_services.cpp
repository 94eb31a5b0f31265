#include <cstdint>
#include <limits>

#include "api/well_known.hpp"
#include "operator/common/children.hpp"
#include "operator/common/services.hpp"
#include "operator/controller/backups.hpp"
#include "operator/controller/build.hpp"

namespace op::controller {
namespace {

core::Json headless(const kube::StringMap& selector, std::string_view port_name, int port) {
  return {{"clusterIP", "None"},
          {"publishNotReadyAddresses", true},
          {"selector", selector},
          {"ports", core::Json::array({service_port(port_name, port, port_name)})}};
}

/// Returns the selector of all slurmctlds. Clients may connect to any slurmctld: a standby refers a client to another
/// slurmctld, and clients that know all slurmctlds try another one themselves.
kube::StringMap slurmctlds(const Observed& observed) {
  const std::string& name = observed.object->meta.name;
  return backups(observed) > 0 ? slurmctld_selector(name) : selector_labels(kAppController, name);
}

}  // namespace

core::Json build_service(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  const api::ServiceSpec& over = observed.controller.spec.service;
  core::Json out = owned_child(kube::resources::kService, {meta.ns, controller_object_name(meta.name)}, resources::kController,
                               meta, controller_labels(meta.name), over.metadata);
  // slurmctld stays reachable while it is not ready. Without backups there is no other slurmctld, and removing the endpoint for
  // a moment would only add delay. The selector also works while the operator is not running.
  core::Json spec{{"publishNotReadyAddresses", true}};
  core::Json ports = core::Json::array(
      {service_port(kAppController, over.port != 0 ? over.port : api::kPortSlurmctld, kAppController, over.node_port)});
  // slurm.conf names port 6817 to every client, so the Service has this port even if spec.service.port is a different one.
  if (over.port != 0 && over.port != api::kPortSlurmctld) {
    ports.push_back(service_port("slurmctld-rpc", api::kPortSlurmctld, kAppController));
  }
  out["spec"] = merge_service_spec(std::move(spec), over.spec, slurmctlds(observed), std::move(ports));
  return out;
}

core::Json build_internal_service(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  core::Json out = owned_child(kube::resources::kService, {meta.ns, controller_internal_service_name(meta.name)},
                               resources::kController, meta, controller_labels(meta.name));
  out["spec"] = headless(slurmctlds(observed), kAppController, api::kPortSlurmctld);
  return out;
}

core::Json build_pod_service(const Observed& observed, const std::string& pod) {
  const kube::ObjectMeta& meta = observed.object->meta;
  core::Json out =
      owned_child(kube::resources::kService, {meta.ns, pod}, resources::kController, meta, controller_labels(meta.name));
  kube::StringMap selector = slurmctlds(observed);
  selector["statefulset.kubernetes.io/pod-name"] = pod;
  out["spec"] = {{"publishNotReadyAddresses", true},
                 {"selector", std::move(selector)},
                 {"ports", core::Json::array({service_port(kAppController, api::kPortSlurmctld, kAppController)})}};
  return out;
}

core::Json build_slurmctld_pdb(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  core::Json out = owned_child(kube::resources::kPodDisruptionBudget, {meta.ns, controller_object_name(meta.name)},
                               resources::kController, meta, controller_labels(meta.name));
  out["spec"] = {{"maxUnavailable", 1}, {"selector", {{"matchLabels", slurmctlds(observed)}}}};
  return out;
}

core::Json build_workers_service(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  const kube::StringMap selector{{std::string(api::kLabelName), std::string(kAppWorker)},
                                 {std::string(api::kLabelCluster), meta.name}};
  core::Json out = owned_child(kube::resources::kService, {meta.ns, workers_service_name(meta.name)}, resources::kController,
                               meta, selector);
  out["spec"] = headless(selector, kAppWorker, api::kPortSlurmd);
  return out;
}

core::Json build_workers_pdb(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  const kube::StringMap labels{{std::string(api::kLabelName), std::string(kAppWorker)},
                               {std::string(api::kLabelCluster), meta.name}};
  const kube::StringMap selector{{std::string(api::kLabelPodProtect), "true"}, {std::string(api::kLabelCluster), meta.name}};
  core::Json out = owned_child(kube::resources::kPodDisruptionBudget, {meta.ns, workers_pdb_name(meta.name)},
                               resources::kController, meta, labels);
  // minAvailable is a number that is never reached, so no eviction is allowed. `maxUnavailable: 0` would allow some evictions
  // while a NodeSet is scaled in, because it counts the replicas that the pods' owners want, not the existing pods.
  out["spec"] = {{"minAvailable", std::numeric_limits<std::int32_t>::max()}, {"selector", {{"matchLabels", selector}}}};
  return out;
}

core::Json build_config_map(const Observed& observed, const ConfigState& state) {
  const kube::ObjectMeta& meta = observed.object->meta;
  core::Json out = owned_child(kube::resources::kConfigMap, {meta.ns, config_map_name(meta.name)}, resources::kController, meta,
                               controller_labels(meta.name));
  write_config_state(state, out);
  return out;
}

core::Json build_file_copies(const Observed& observed, const std::string& name,
                             const std::map<std::string, std::string>& content) {
  const kube::ObjectMeta& meta = observed.object->meta;
  core::Json out =
      owned_child(kube::resources::kConfigMap, {meta.ns, name}, resources::kController, meta, controller_labels(meta.name));
  write_file_copies(content, out);
  return out;
}

core::Json build_key_secret(const Observed& observed, const KeyRef& ref, core::Json recipe) {
  const kube::ObjectMeta& meta = observed.object->meta;
  // Argo CD prunes objects that have its application's label and no owner. These annotations prevent that.
  const kube::StringMap annotations{{"argocd.argoproj.io/compare-options", "IgnoreExtraneous"},
                                    {"argocd.argoproj.io/sync-options", "Prune=false"}};
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", kube::meta_json({meta.ns, ref.secret}, controller_labels(meta.name), annotations)},
          {"type", "Opaque"},
          {"immutable", true},
          {"data", {{ref.key, std::move(recipe)}}}};
}

}  // namespace op::controller
