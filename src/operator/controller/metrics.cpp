#include "operator/controller/metrics.hpp"

#include "api/well_known.hpp"
#include "operator/common/children.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/backups.hpp"
#include "operator/controller/build.hpp"
#include "slinky/config_map.hpp"
#include "slinky/releases.hpp"

namespace op::controller {
namespace {

constexpr const char* kMetricsType = "MetricsType";
constexpr const char* kOpenMetrics = "metrics/openmetrics";
/// Releases of slurmctld before 25.11 do not start if slurm.conf has MetricsType.
constexpr ImageRelease kFirstWithMetrics{25, 11};

bool monitored(const Observed& observed, const ConfigState& state) {
  const api::Metrics& metrics = observed.controller.spec.metrics;
  return metrics.enabled && metrics.service_monitor.enabled && metrics_refused(observed, state).empty();
}

/// True if this Controller created the ServiceMonitor. False if a user did.
bool is_ours(const Observed& observed) {
  const kube::OwnerReference* owner = observed.service_monitor ? observed.service_monitor->meta.controller_owner() : nullptr;
  return owner != nullptr && owner->uid == observed.object->meta.uid;
}

core::Json endpoint(const api::ServiceMonitor& monitor, const api::MetricEndpoint& of, const std::string& service) {
  core::Json out{{"port", kAppController}, {"path", of.path}, {"scheme", "http"}};
  const auto add = [&](const char* name, const std::string& own, const std::string& common) {
    if (const std::string& value = own.empty() ? common : own; !value.empty()) out[name] = value;
  };
  add("interval", of.interval, monitor.interval);
  add("scrapeTimeout", of.scrape_timeout, monitor.scrape_timeout);
  // Two Services have these labels and this port. Without this rule, Prometheus would scrape each path twice.
  out["relabelings"] = core::Json::array(
      {{{"action", "keep"}, {"sourceLabels", core::Json::array({"__meta_kubernetes_service_name"})}, {"regex", service}}});
  if (monitor.token_secret_ref) {
    out["authorization"] = {
        {"type", "Bearer"},
        {"credentials", {{"name", monitor.token_secret_ref->name}, {"key", monitor.token_secret_ref->key}}}};
  }
  return out;
}

/// Returns why Prometheus needs a token, according to the offered slurm.conf, or "".
std::string asks_for_token(const ConfigState& state) {
  const slurm::conf::Conf conf = slurm::conf::parse(slurm::conf::Kind::kSlurm, slurm_conf(state.offered)).conf;
  if (conf.get("MetricsAuthUsers")) return "MetricsAuthUsers";
  const bool ignored = conf.get("MetricsParameters").value_or("").find("ignore_private_data") != std::string::npos;
  return conf.get("PrivateData") && !ignored ? "PrivateData" : "";
}

}  // namespace

std::string metrics_refused(const Observed& observed, const ConfigState& state) {
  const std::string image = slurmctld_image(observed.controller.spec);
  const ImageRelease release = slurm_release(image);
  if (release >= kFirstWithMetrics) return "";
  if (release != ImageRelease{}) {
    return "slurmctld " + to_string(release) + " has no metrics: Slurm has them from 25.11 on";
  }
  // If slurmctld was seen to serve metrics, the metrics stay enabled while slurmctld does not answer.
  const slurm::conf::Conf offered = slurm::conf::parse(slurm::conf::Kind::kSlurm, slurm_conf(state.offered)).conf;
  if (offered.get(kMetricsType) || (observed.snapshot && observed.snapshot->capabilities.metrics)) return "";
  return "the tag of the image " + image +
         " does not name a release of Slurm, and a slurmctld before 25.11 does not start with MetricsType: metrics are enabled "
         "when slurmctld has reported its release through a RestApi";
}

void add_metrics(slurm::conf::Conf& out, const Observed& observed, const ConfigState& state) {
  if (observed.controller.spec.metrics.enabled && metrics_refused(observed, state).empty()) out.set(kMetricsType, kOpenMetrics);
}

core::Json build_service_monitor(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  const api::ServiceMonitor& monitor = observed.controller.spec.metrics.service_monitor;
  const std::string name = controller_object_name(meta.name);
  core::Json out = owned_child(resources::kServiceMonitor, {meta.ns, name}, resources::kController, meta,
                               controller_labels(meta.name), monitor.metadata);
  core::Json endpoints = core::Json::array();
  for (const api::MetricEndpoint& one : monitor.endpoints) endpoints.push_back(endpoint(monitor, one, name));
  if (endpoints.empty()) {
    for (const char* path : {"/metrics/jobs", "/metrics/nodes", "/metrics/partitions", "/metrics/scheduler"})
      endpoints.push_back(endpoint(monitor, {path, "", ""}, name));
  }
  // A standby redirects Prometheus to the primary. Prometheus must not follow the redirect, because it already scrapes the
  // primary.
  if (backups(observed) > 0) {
    for (core::Json& one : endpoints) one["followRedirects"] = false;
  }
  out["spec"] = {{"selector", {{"matchLabels", selector_labels(kAppController, meta.name)}}},
                 {"namespaceSelector", {{"matchNames", core::Json::array({meta.ns})}}},
                 {"endpoints", std::move(endpoints)}};
  return out;
}

void plan_service_monitor(const Observed& observed, const ConfigState& state, plan::Plan& plan) {
  if (observed.service_monitors != kube::Presence::kPresent) return;
  plan::Lane& lane = plan.lane("metrics");
  if (monitored(observed, state)) {
    lane.add(apply_step(resources::kServiceMonitor, build_service_monitor(observed), observed.service_monitor.get(),
                        kManagerController));
  } else if (is_ours(observed) && !observed.service_monitor->meta.terminating()) {
    lane.add({{"delete", resources::kServiceMonitor.kind, observed.service_monitor->meta.name},
              "no metrics are to be scraped",
              kube::delete_object(resources::kServiceMonitor, observed.service_monitor->meta)});
  }
}

void set_metrics_condition(Conditions& conditions, const Observed& observed, const ConfigState& state, bool loaded) {
  const api::Metrics& metrics = observed.controller.spec.metrics;
  const auto set = [&](api::ConditionStatus status, std::string_view reason, std::string message) {
    conditions.set(api::kConditionMetricsServed, status, reason, std::move(message));
  };
  using api::ConditionStatus;
  if (!metrics.enabled) {
    if (metrics.service_monitor.enabled)
      return set(ConditionStatus::kFalse, "Disabled",
                 "there is no ServiceMonitor, because spec.metrics.enabled is false: slurmctld serves no metrics");
    // The condition MetricsServed makes the next pass read the ServiceMonitor.
    if (observed.service_monitors == kube::Presence::kUnknown || is_ours(observed))
      set(ConditionStatus::kFalse, "Disabled", "the ServiceMonitor of slurmctld is being deleted");
    return;
  }
  if (std::string why = metrics_refused(observed, state); !why.empty())
    return set(ConditionStatus::kFalse, "NotSupported", "spec.metrics.enabled: " + why);
  if (metrics.service_monitor.enabled && observed.service_monitors == kube::Presence::kAbsent) {
    return set(ConditionStatus::kFalse, "NoServiceMonitors",
               "slurmctld serves metrics, but there is no ServiceMonitor: this cluster does not have the kind, which comes "
               "with the Prometheus operator. The ServiceMonitor is created when the kind exists");
  }
  if (metrics.service_monitor.enabled && !metrics.service_monitor.token_secret_ref) {
    if (const std::string key = asks_for_token(state); !key.empty()) {
      return set(ConditionStatus::kFalse, "TokenMissing",
                 "slurm.conf has " + key +
                     ", so slurmctld requires a token from Prometheus: name one in spec.metrics.serviceMonitor.tokenSecretRef");
    }
  }
  if (!loaded || (metrics.service_monitor.enabled && !observed.service_monitor))
    return set(ConditionStatus::kUnknown, "Loading", loaded ? "the ServiceMonitor is being created" : kNotLoaded);
  set(ConditionStatus::kTrue, "Served", "");
}

}  // namespace op::controller
