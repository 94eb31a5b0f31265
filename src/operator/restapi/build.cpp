#include <algorithm>

#include "api/well_known.hpp"
#include "cluster/config_map.hpp"
#include "core/hash.hpp"
#include "operator/common/children.hpp"
#include "operator/common/pod_template.hpp"
#include "operator/common/probes.hpp"
#include "operator/common/services.hpp"
#include "operator/common/sssd.hpp"
#include "operator/restapi/plan.hpp"

namespace op::restapi {
namespace {

constexpr const char* kEtcVolume = "slurm-etc";

core::Json ids(bool group_of_files) {
  core::Json out{{"runAsNonRoot", true}, {"runAsUser", kNobodyUid}, {"runAsGroup", kNobodyUid}};
  if (group_of_files) out["fsGroup"] = kNobodyUid;
  return out;
}

/// The port of that name that a container has, or 0.
int port_of(const core::Json& container) {
  const core::Json* ports = core::find(container, {"ports"});
  if (ports == nullptr || !ports->is_array()) return 0;
  for (const core::Json& port : *ports) {
    if (core::get_string(port, {"name"}) == kAppRestApi) return static_cast<int>(core::get_int(port, {"containerPort"}));
  }
  return 0;
}

/// What users write of the container in the pod template, or null.
const core::Json* in_template(const api::RestApiSpec& spec) {
  const core::Json* containers = core::find(spec.pod_template.spec, {"containers"});
  if (containers == nullptr || !containers->is_array()) return nullptr;
  const auto found = std::ranges::find_if(
      *containers, [](const core::Json& theirs) { return core::get_string(theirs, {"name"}) == kAppRestApi; });
  return found == containers->end() ? nullptr : &*found;
}

std::string image_of(const api::RestApiSpec& spec) {
  const core::Json* theirs = in_template(spec);
  const std::string image = theirs == nullptr ? "" : core::get_string(*theirs, {"image"});
  return image.empty() ? core::get_string(spec.slurmrestd, {"image"}, kDefaultSlurmrestdImage) : image;
}

/// Where slurmrestd listens: at the port of the container, which the Service and probes find by its name, and which users may
/// set to another one in two places.
int listening_port(const core::Json& container, const api::RestApiSpec& spec) {
  if (const core::Json* theirs = in_template(spec)) {
    if (const int port = port_of(*theirs); port != 0) return port;
  }
  const int port = port_of(container);
  return port != 0 ? port : api::kPortSlurmrestd;
}

/// "[::]:6820" or "0.0.0.0:6820", after the options: an address of their own for our port.
bool listens_on(const core::Json& args, int port) {
  const std::string end = ":" + std::to_string(port);
  return std::ranges::any_of(args, [&](const core::Json& arg) {
    if (!arg.is_string()) return false;
    const std::string& text = arg.get_ref<const std::string&>();
    return text.ends_with(end) && !text.starts_with('-') && !text.starts_with("unix:");
  });
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
  out["startupProbe"] = probe(kAppRestApi, 60);
  out["livenessProbe"] = probe(kAppRestApi, 60);
  out["readinessProbe"] = probe(kAppRestApi, 3);
  out = merge_container(std::move(out), spec.slurmrestd);
  // slurmrestd [OPTIONS] [host:port]: what it listens on comes after the user's own arguments. Slurm makes an IPv4 socket of
  // [::] unless CommunicationParameters has EnableIPv6, and then one for both families.
  const int port = listening_port(out, spec);
  if (!listens_on(out["args"], port)) out["args"].push_back("[::]:" + std::to_string(port));
  return out;
}

core::Json etc_volume(const Observed& observed) {
  const core::Json items = core::Json::array({{{"key", kSlurmConf}, {"path", kSlurmConf}}});
  core::Json sources =
      core::Json::array({project_config_map(config_map_name(observed.restapi.spec.controller_ref.name), items)});
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
  if (spec.sssd_conf_ref) add_sssd_sidecar(pod, *spec.sssd_conf_ref, image_of(spec));
  // slurmrestd reads its configuration once, and has no auth/slurm key: it speaks with its callers' tokens. Of the
  // configuration only that matters to it which slurmctld restarts for as well; for an external one nobody but slurmrestd reads
  // it.
  const std::string text = core::get_string(observed.config_map->body, {"data", kSlurmConf});
  kube::StringMap annotations{
      {std::string(api::kAnnotationDefaultContainer), std::string(kAppRestApi)},
      {std::string(api::kAnnotationRestartHash), observed.external ? core::short_digest(text) : restart_digest(text)},
  };
  if (spec.sssd_conf_ref) annotations.emplace(api::kAnnotationSssdConfHash, salted_digest(meta, observed.sssd_conf.content));
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
