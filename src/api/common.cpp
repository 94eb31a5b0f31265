#include "api/common.hpp"

#include <algorithm>

namespace api {
namespace {

constexpr const char* kPrometheusDuration =
    "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$";
constexpr std::size_t kMaxPrometheusDuration = 64;
constexpr std::size_t kMaxObjectName = 253;
constexpr int kMaxPort = 65535;

constexpr const char* kHostname = R"(^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*-?)?$)";

template <class Selector>
FieldList key_selector(const char* what) {
  return FieldList(std::string("A key of a ") + what + " in the same namespace.")
      .atomic()
      .add(field<Selector, std::string>("name", &Selector::name)
               .has_default()
               .max_length(kMaxObjectName)
               .describe(std::string("The name of the ") + what + "."))
      .add(field<Selector, std::string>("key", &Selector::key).required().describe(std::string("The key whose value is used.")))
      .add(field<Selector, std::optional<bool>>("optional", &Selector::optional)
               .not_acted_on()
               .describe("Whether the object or its key may be missing."));
}

core::Json object_of(core::Json properties) {
  return {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}, {"properties", std::move(properties)}};
}

core::Json list_of(core::Json items) {
  return {{"type", "array"}, {"nullable", true}, {"items", std::move(items)}};
}

/// Returns the schema, extended so that it also accepts an explicit null.
core::Json or_null(core::Json schema) {
  schema["nullable"] = true;
  return schema;
}

core::Json pod_spec_schema() {
  const core::Json terms{{"requiredDuringSchedulingIgnoredDuringExecution", list_of(Codec<core::Json>::schema())}};
  return object_of({{"hostname",
                     {{"type", "string"},
                      {"nullable", true},
                      {"maxLength", kMaxObjectName},
                      {"pattern", kHostname},
                      {"description", "A DNS name."}}},
                    {"hostNetwork", or_null({{"type", "boolean"}})},
                    {"containers", list_of(container_schema())},
                    {"initContainers", list_of(container_schema())},
                    {"volumes", list_of(Codec<core::Json>::schema())},
                    {"tolerations", list_of(Codec<core::Json>::schema())},
                    {"affinity", or_null(object_of({{"podAntiAffinity", or_null(object_of(terms))}}))}});
}

core::Json service_spec_schema() {
  return object_of({{"selector", or_null(Codec<StringMap>::schema())}, {"ports", list_of(Codec<core::Json>::schema())}});
}

}  // namespace

core::Json claim_properties() {
  using core::Json;
  const Json text = {{"type", "string"}};
  const Json texts = {{"type", "array"}, {"items", text}, {"x-kubernetes-list-type", "atomic"}};
  const Json quantity = {
      {"anyOf", {{{"type", "integer"}}, {{"type", "string"}}}},
      {"pattern",
       R"(^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$)"},
      {"maxLength", 64},
      {"x-kubernetes-int-or-string", true}};
  const Json quantities = {{"type", "object"}, {"additionalProperties", quantity}};
  const Json expression = {{"type", "object"},
                           {"properties", {{"key", text}, {"operator", text}, {"values", texts}}},
                           {"required", {"key", "operator"}}};
  const Json selector = {
      {"type", "object"},
      {"x-kubernetes-map-type", "atomic"},
      {"properties",
       {{"matchLabels", {{"type", "object"}, {"additionalProperties", text}}},
        {"matchExpressions", {{"type", "array"}, {"items", expression}, {"x-kubernetes-list-type", "atomic"}}}}}};
  const Json source = {{"apiGroup", text}, {"kind", text}, {"name", text}};
  Json source_ref = source;
  source_ref["namespace"] = text;
  const auto described = [](Json schema, const char* words) {
    schema["description"] = words;
    return schema;
  };
  return {
      {"accessModes", described(texts, "The access modes that the volume must have.")},
      {"storageClassName", described(text, "The StorageClass. Absent: the cluster's default.")},
      {"resources", described({{"type", "object"}, {"properties", {{"limits", quantities}, {"requests", quantities}}}},
                              "The size of the volume.")},
      {"selector", described(selector, "Which volumes may be bound.")},
      {"volumeName", described(text, "The PersistentVolume to bind.")},
      {"volumeMode", described(text, "Filesystem or Block.")},
      {"volumeAttributesClassName", described(text, "The VolumeAttributesClass.")},
      {"dataSource",
       described(
           {{"type", "object"}, {"properties", source}, {"required", {"kind", "name"}}, {"x-kubernetes-map-type", "atomic"}},
           "The source of the volume's initial data.")},
      {"dataSourceRef", described({{"type", "object"}, {"properties", source_ref}, {"required", {"kind", "name"}}},
                                  "The source of the volume's initial data.")},
  };
}

core::Json container_schema() {
  const core::Json text{{"type", "string"}};
  core::Json properties{{"name", or_null(text)}, {"image", or_null(text)}, {"args", list_of(text)}};
  for (const char* list : {"env", "envFrom", "ports", "volumeMounts"}) properties[list] = list_of(Codec<core::Json>::schema());
  for (const char* object : {"startupProbe", "livenessProbe", "readinessProbe", "lifecycle"}) {
    properties[object] = or_null(Codec<core::Json>::schema());
  }
  return object_of(std::move(properties));
}

Rule name_is_label(std::size_t longest, bool begins_with_letter) {
  const std::string limit = std::to_string(longest);
  const std::string first = begins_with_letter ? "a-z" : "a-z0-9";
  return {"has(self.status) || (size(self.metadata.name) <= " + limit + " && self.metadata.name.matches('^[" + first +
              "]([-a-z0-9]*[a-z0-9])?$'))",
          "must have at most " + limit + " characters of a-z, 0-9 and '-', begin with a letter" +
              (begins_with_letter ? "" : " or digit") + " and end with a letter or digit",
          "metadata.name"};
}

Rule jwt_key_unchanged() {
  const auto effective = [](const std::string& of) {
    const auto part = [&of](const std::string& ref) { return of + "." + ref + ".name + '/' + " + of + "." + ref + ".key"; };
    return "(has(" + of + ".jwtKeyRef) ? " + part("jwtKeyRef") + " : has(" + of + ".jwtHs256KeyRef) ? " +
           part("jwtHs256KeyRef") + " : '')";
  };
  return {effective("self") + " == " + effective("oldSelf"), "cannot be changed, added or removed", "jwtKeyRef"};
}

const FieldList& field_list(const LocalObjectReference*) {
  static const FieldList kList =
      FieldList("An object in the same namespace.")
          .atomic()
          .add(field("name", &LocalObjectReference::name).has_default().max_length(kMaxObjectName).describe("Its name."));
  return kList;
}

const FieldList& field_list(const ControllerReference*) {
  static const FieldList kList = FieldList("A Controller in the same namespace.")
                                     .atomic()
                                     .add(field("name", &ControllerReference::name)
                                              .required()
                                              .min_length(1)
                                              .max_length(kMaxObjectName)
                                              .describe("The name of the Controller."));
  return kList;
}

const FieldList& field_list(const SecretKeySelector*) {
  static const FieldList kList = key_selector<SecretKeySelector>("Secret");
  return kList;
}

const FieldList& field_list(const ConfigMapKeySelector*) {
  static const FieldList kList = key_selector<ConfigMapKeySelector>("ConfigMap");
  return kList;
}

const FieldList& field_list(const Metadata*) {
  static const FieldList kList =
      FieldList("Labels and annotations to add.")
          .add(field("labels", &Metadata::labels).nullable().describe("Labels to add."))
          .add(field("annotations", &Metadata::annotations).nullable().describe("Annotations to add."));
  return kList;
}

const FieldList& field_list(const PodTemplate*) {
  static const FieldList kList =
      FieldList("What to add to the pods.")
          .add(field("metadata", &PodTemplate::metadata)
                   .describe(
                       "Labels and annotations to add to the pods, over those of this object itself, which the pods have too."))
          .add(field("spec", &PodTemplate::spec)
                   .schema_of(pod_spec_schema())
                   .describe("A core/v1 PodSpec, merged over the operator's own: objects by key, containers, volumes and the "
                             "like by name; null and empty lists change nothing. "
                             "Pods are created with strict field validation: a misspelt field is reported in the status."));
  return kList;
}

const FieldList& field_list(const ServiceSpec*) {
  static const FieldList kList =
      FieldList("What to change in the Service.")
          .add(field("metadata", &ServiceSpec::metadata).describe("Labels and annotations to add to the Service."))
          .add(field("spec", &ServiceSpec::spec)
                   .schema_of(service_spec_schema())
                   .not_acted_on("externalIPs")
                   .describe("A core/v1 ServiceSpec, merged over the operator's own. externalIPs are ignored: with them a "
                             "Service would take over traffic that is meant for others (CVE-2020-8554)."))
          .add(field("port", &ServiceSpec::port)
                   .minimum(0)
                   .maximum(kMaxPort)
                   .describe("The port that the Service offers. 0: the component's own port."))
          .add(field("nodePort", &ServiceSpec::node_port)
                   .minimum(0)
                   .maximum(kMaxPort)
                   .describe("The port on each node, for the types NodePort and LoadBalancer. 0: chosen by Kubernetes."));
  return kList;
}

const FieldList& field_list(const MetricEndpoint*) {
  static const FieldList kList =
      FieldList("A path to scrape.")
          .add(field("path", &MetricEndpoint::path).required().describe("The HTTP path."))
          .add(field("interval", &MetricEndpoint::interval)
                   .pattern(kPrometheusDuration, kMaxPrometheusDuration)
                   .describe("How often to scrape the path. Empty: the interval of the ServiceMonitor."))
          .add(field("scrapeTimeout", &MetricEndpoint::scrape_timeout)
                   .pattern(kPrometheusDuration, kMaxPrometheusDuration)
                   .describe("The timeout of a scrape. Empty: that of the ServiceMonitor."));
  return kList;
}

const FieldList& field_list(const ServiceMonitor*) {
  static const FieldList kList =
      FieldList("A ServiceMonitor for Prometheus.")
          .add(field("enabled", &ServiceMonitor::enabled).has_default().describe("Whether to create one."))
          .add(embed(&ServiceMonitor::metadata))
          .add(field("interval", &ServiceMonitor::interval)
                   .pattern(kPrometheusDuration, kMaxPrometheusDuration)
                   .describe("How often to scrape. Empty: the default of Prometheus."))
          .add(field("scrapeTimeout", &ServiceMonitor::scrape_timeout)
                   .pattern(kPrometheusDuration, kMaxPrometheusDuration)
                   .describe("The timeout of a scrape, at most the interval. Empty: the default of Prometheus."))
          .add(field("endpoints", &ServiceMonitor::endpoints)
                   .nullable()
                   .describe("The paths to scrape. Empty: /metrics/jobs, /metrics/nodes, /metrics/partitions and "
                             "/metrics/scheduler."))
          .add(field("tokenSecretRef", &ServiceMonitor::token_secret_ref)
                   .describe("The Secret's key that holds the Slurm JWT which Prometheus presents, for instance a Token's. "
                             "Required where slurm.conf has MetricsAuthUsers or PrivateData."));
  return kList;
}

const FieldList& field_list(const Metrics*) {
  static const FieldList kList =
      FieldList("How metrics are collected.")
          .add(field("enabled", &Metrics::enabled)
                   .has_default()
                   .describe("Whether slurmctld serves metrics on its port, under /metrics. Slurm has them from 25.11 on."))
          .add(field("serviceMonitor", &Metrics::service_monitor)
                   .nullable()
                   .describe("A ServiceMonitor for Prometheus. Created while metrics are served."));
  return kList;
}

const FieldList& field_list(const ExternalConfig*) {
  static const FieldList kList =
      FieldList("Where a component outside of Kubernetes is reached.")
          .add(field("host", &ExternalConfig::host).required().describe("Its host name or IP address."))
          .add(field("port", &ExternalConfig::port).required().minimum(1).maximum(kMaxPort).describe("Its port."));
  return kList;
}

const FieldList& field_list(const Condition*) {
  static const FieldList kList =
      FieldList("One aspect of the state.")
          .add(
              field("type", &Condition::type)
                  .required()
                  .pattern(
                      R"(^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$)",
                      316)
                  .always()
                  .describe("The type: Ready, Progressing, Degraded, or one that only this kind has."))
          .add(field("status", &Condition::status).required().always().describe("True, False or Unknown."))
          .add(field("reason", &Condition::reason)
                   .required()
                   .min_length(1)
                   .pattern("^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", 1024)
                   .always()
                   .describe("The reason, as one word."))
          .add(field("message", &Condition::message)
                   .required()
                   .max_length(32768)
                   .always()
                   .describe("What happened, and what to do about it."))
          .add(field("lastTransitionTime", &Condition::last_transition_time)
                   .required()
                   .describe("When the status last changed."))
          .add(field("observedGeneration", &Condition::observed_generation)
                   .minimum(0)
                   .describe("The generation of the object that this condition describes."));
  return kList;
}

const Condition* find_condition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto it = std::ranges::find(conditions, type, &Condition::type);
  return it == conditions.end() ? nullptr : &*it;
}

}  // namespace api
