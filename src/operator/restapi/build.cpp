#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "operator/common/children.hpp"
#include "operator/common/pod_template.hpp"
#include "operator/common/probes.hpp"
#include "operator/common/services.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/sssd.hpp"
#include "operator/restapi/plan.hpp"
#include "slinky/config_map.hpp"

namespace op::restapi {
namespace {

constexpr const char* kEtcVolume = "slurm-etc";

core::Json ids(bool group_of_files) {
  core::Json out{{"runAsNonRoot", true}, {"runAsUser", kNobodyUid}, {"runAsGroup", kNobodyUid}};
  if (group_of_files) out["fsGroup"] = kNobodyUid;
  return out;
}

/// Returns the number of the container's port that has the name of slurmrestd's port, or 0.
int port_of(const core::Json& container) {
  const core::Json* ports = core::find(container, {"ports"});
  if (ports == nullptr || !ports->is_array()) return 0;
  for (const core::Json& port : *ports) {
    if (core::get_string(port, {"name"}) == kAppRestApi) return static_cast<int>(core::get_int(port, {"containerPort"}));
  }
  return 0;
}

/// Returns the port on which slurmrestd listens. This is the container port whose name the Service and the probes use. Users
/// can set this port in spec.slurmrestd and in the pod template.
int listening_port(const core::Json& container, const api::RestApiSpec& spec) {
  if (const core::Json* theirs = container_in(spec.pod_template, kAppRestApi)) {
    if (const int port = port_of(*theirs); port != 0) return port;
  }
  const int port = port_of(container);
  return port != 0 ? port : api::kPortSlurmrestd;
}

/// True if this argument makes slurmrestd listen on the port. slurmrestd accepts "host:port", "[address]:port" and "unix:path".
bool names_port(std::string_view word, int port) {
  return word.ends_with(":" + std::to_string(port)) && !word.starts_with('-') && !word.starts_with("unix:");
}

/// True if users already make slurmrestd listen on that port. slurmrestd cannot listen there twice.
bool listens_at(const core::Json& container, int port) {
  const core::Json* args = core::find(container, {"args"});
  if (args != nullptr && args->is_array() && std::ranges::any_of(*args, [&](const core::Json& word) {
        return word.is_string() && names_port(word.get_ref<const std::string&>(), port);
      })) {
    return true;
  }
  const core::Json* env = core::find(container, {"env"});
  return env != nullptr && env->is_array() && std::ranges::any_of(*env, [&](const core::Json& item) {
           if (core::get_string(item, {"name"}) != "SLURMRESTD_LISTEN") return false;
           const std::string value = core::get_string(item, {"value"});
           return std::ranges::any_of(std::views::split(value, ','), [&](const auto& word) {
             return names_port(std::string_view(word.begin(), word.end()), port);
           });
         });
}

/// True if the Service has IPv6 addresses. Then the pods have IPv6 addresses as well.
bool has_ipv6(const kube::Object& service) {
  const core::Json* families = core::find(service.body, {"spec", "ipFamilies"});
  return families != nullptr && families->is_array() && std::ranges::find(*families, core::Json("IPv6")) != families->end();
}

/// Returns the address on which slurmrestd listens. With EnableIPv6, slurmrestd serves both IP families at [::], but in a pod
/// without an IPv6 address it does not start with [::]. Without EnableIPv6, Slurm supports only IPv4.
std::string_view any_address(const Observed& observed) {
  const bool both = enables_ipv6(offered_conf(*observed.config_map)) && observed.service && has_ipv6(*observed.service);
  return both ? "[::]" : "0.0.0.0";
}

/// Returns the container of slurmrestd. Without accounting, the arguments omit the plugin openapi/slurmdbd, because slurmrestd
/// would exit.
core::Json slurmrestd_container(const Observed& observed) {
  const api::RestApiSpec& spec = observed.restapi.spec;
  core::Json out{
      {"name", kAppRestApi},
      {"image", kDefaultSlurmrestdImage},
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"args", core::Json::array({"-s", observed.accounting ? "openapi/slurmctld,openapi/slurmdbd" : "openapi/slurmctld"})},
      {"env", core::Json::array({{{"name", "SLURM_JWT"}, {"value", "daemon"}},
                                 {{"name", "SLURMRESTD_SECURITY"}, {"value", "disable_unshare_files,disable_unshare_sysv"}},
                                 // slurmrestd gets requests every second, and would log each request.
                                 {{"name", "SLURMRESTD_DEBUG"}, {"value", "error"}}})},
      {"ports", core::Json::array({{{"name", kAppRestApi}, {"containerPort", api::kPortSlurmrestd}, {"protocol", "TCP"}}})},
      {"securityContext", ids(false)},
      {"volumeMounts", core::Json::array({{{"name", kEtcVolume}, {"mountPath", "/etc/slurm"}, {"readOnly", true}}})},
  };
  // The probes only open a connection, because slurmrestd answers /livez and /readyz only with a token.
  out["startupProbe"] = probe(kAppRestApi, 60);
  out["livenessProbe"] = probe(kAppRestApi, 60);
  out["readinessProbe"] = probe(kAppRestApi, 3);
  out = merge_container(std::move(out), spec.slurmrestd);
  // slurmrestd [OPTIONS] [host:port]: the address comes after the user's arguments.
  const int port = listening_port(out, spec);
  const core::Json* theirs = container_in(spec.pod_template, kAppRestApi);
  if (!listens_at(out, port) && (theirs == nullptr || !listens_at(*theirs, port)))
    out["args"].push_back(fmt::format("{}:{}", any_address(observed), port));
  return out;
}

core::Json etc_volume(const Observed& observed) {
  const core::Json items = core::Json::array({{{"key", kSlurmConf}, {"path", kSlurmConf}}});
  core::Json sources =
      core::Json::array({project_config_map(config_map_name(observed.restapi.spec.controller_ref.name), items)});
  return {{"name", kEtcVolume}, {"projected", {{"defaultMode", 0600}, {"sources", std::move(sources)}}}};
}

}  // namespace

bool knows_address(const Observed& observed) {
  return observed.service || !enables_ipv6(offered_conf(*observed.config_map));
}

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
  const std::string text = core::get_string(observed.config_map->body, {"data", kSlurmConf});
  core::Json pod{
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"securityContext", ids(true)},
      {"containers", core::Json::array({slurmrestd_container(observed)})},
      {"volumes", core::Json::array({etc_volume(observed)})},
  };
  if (spec.sssd_conf_ref) {
    add_sssd_sidecar(pod, *spec.sssd_conf_ref,
                     container_image(spec.pod_template, kAppRestApi, spec.slurmrestd, kDefaultSlurmrestdImage),
                     spec.pod_template);
  }
  // slurmrestd reads slurm.conf once. slurmrestd has no auth/slurm key, because it uses the tokens of its callers. The pods are
  // replaced only if the address of slurmdbd changes, or a setting for which slurmctld restarts as well. With an external
  // slurmctld, only slurmrestd reads this slurm.conf, so each change of the file replaces the pods.
  const std::string digest = observed.external     ? core::short_digest(text)
                             : observed.accounting ? slurmrestd_digest(text)
                                                   : restart_digest(text);
  kube::StringMap annotations{
      {std::string(api::kAnnotationDefaultContainer), std::string(kAppRestApi)},
      {std::string(api::kAnnotationRestartHash), digest},
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
