#include "api/well_known.hpp"
#include "cluster/config_map.hpp"
#include "operator/common/children.hpp"
#include "operator/common/pod_template.hpp"
#include "operator/common/probes.hpp"
#include "operator/common/services.hpp"
#include "operator/restapi/plan.hpp"

namespace op::restapi {
namespace {

constexpr const char* kEtcVolume = "slurm-etc";

core::Json ids(bool group_of_files) {
  core::Json out{{"runAsNonRoot", true}, {"runAsUser", kNobodyUid}, {"runAsGroup", kNobodyUid}};
  if (group_of_files) out["fsGroup"] = kNobodyUid;
  return out;
}

core::Json slurmrestd_container(const api::RestApiSpec& spec) {
  core::Json out{
      {"name", kAppRestApi},
      {"image", kDefaultSlurmrestdImage},
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"args", core::Json::array({"-s", "openapi/slurmctld"})},
      {"env", core::Json::array({{{"name", "SLURM_JWT"}, {"value", "daemon"}},
                                 {{"name", "SLURMRESTD_SECURITY"}, {"value", "disable_unshare_files,disable_unshare_sysv"}},
                                 // It is asked every second, and would log every question.
                                 {{"name", "SLURMRESTD_DEBUG"}, {"value", "error"}}})},
      {"ports", core::Json::array({{{"name", kAppRestApi}, {"containerPort", api::kPortSlurmrestd}, {"protocol", "TCP"}}})},
      {"securityContext", ids(false)},
      {"volumeMounts", core::Json::array({{{"name", kEtcVolume}, {"mountPath", "/etc/slurm"}, {"readOnly", true}}})},
  };
  // slurmrestd answers its /livez and /readyz only to those who carry a token.
  out["startupProbe"] = probe(false, "", kAppRestApi, 60);
  out["livenessProbe"] = probe(false, "", kAppRestApi, 60);
  out["readinessProbe"] = probe(false, "", kAppRestApi, 3);
  out = merge_container(std::move(out), spec.slurmrestd);
  // slurmrestd [OPTIONS] [host:port]: what it listens on comes after the user's own arguments.
  out["args"].push_back("0.0.0.0:" + std::to_string(api::kPortSlurmrestd));
  return out;
}

core::Json etc_volume(const Observed& observed) {
  const core::Json items = core::Json::array({{{"key", kSlurmConf}, {"path", kSlurmConf}}});
  core::Json sources = core::Json::array({
      project_config_map(config_map_name(observed.restapi.spec.controller_ref.name), items),
      project_secret(observed.keyring.ref.secret, observed.keyring.ref.key, api::kKeySlurm),
  });
  return {{"name", kEtcVolume}, {"projected", {{"defaultMode", 0600}, {"sources", std::move(sources)}}}};
}

}  // namespace

core::Json build_service(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  const api::ServiceSpec& over = observed.restapi.spec.service;
  core::Json out = owned_child(kube::resources::kService, {meta.ns, restapi_object_name(meta.name)}, resources::kRestApi, meta,
                               restapi_labels(meta.name), over.metadata);
  core::Json ports = core::Json::array(
      {service_port(kAppRestApi, over.port != 0 ? over.port : api::kPortSlurmrestd, kAppRestApi, over.node_port)});
  out["spec"] = merge_service_spec(core::Json::object(), over.spec, selector_labels(kAppRestApi, meta.name), std::move(ports));
  return out;
}

core::Json build_deployment(const Observed& observed) {
  const api::RestApiSpec& spec = observed.restapi.spec;
  const kube::ObjectMeta& meta = observed.object->meta;
  core::Json pod{
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"securityContext", ids(true)},
      {"containers", core::Json::array({slurmrestd_container(spec)})},
      {"volumes", core::Json::array({etc_volume(observed)})},
  };
  // slurmrestd reads key and configuration once. Of the configuration only that matters to it which slurmctld restarts for as
  // well.
  const std::string text = core::get_string(observed.config_map->body, {"data", kSlurmConf});
  const kube::StringMap annotations{
      {std::string(api::kAnnotationDefaultContainer), std::string(kAppRestApi)},
      {std::string(api::kAnnotationSlurmKeyHash), observed.keyring.digest},
      {std::string(api::kAnnotationRestartHash), restart_digest(text)},
  };
  core::Json out = owned_child(kube::resources::kDeployment, {meta.ns, restapi_object_name(meta.name)}, resources::kRestApi,
                               meta, restapi_labels(meta.name));
  out["spec"] = {
      {"replicas", spec.replicas},
      {"revisionHistoryLimit", 0},
      {"selector", {{"matchLabels", selector_labels(kAppRestApi, meta.name)}}},
      {"template", merge_pod_template(std::move(pod), spec.pod_template, meta, restapi_labels(meta.name), annotations)}};
  return out;
}

}  // namespace op::restapi
