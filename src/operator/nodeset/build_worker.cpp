#include "operator/nodeset/build_worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "api/well_known.hpp"
#include "core/quantity.hpp"
#include "operator/common/keyring_volume.hpp"
#include "operator/common/logfile.hpp"
#include "operator/common/pod_template.hpp"
#include "operator/common/probes.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/daemon_nodes.hpp"
#include "operator/nodeset/registered_name.hpp"
#include "slinky/managed_nodes.hpp"
#include "slinky/worker_names.hpp"

namespace op::nodeset {
namespace {

using core::Json;

constexpr std::string_view kSlurmd = "slurmd";
constexpr std::string_view kWaitController = "wait-controller";
constexpr std::string_view kLogfile = "logfile";
constexpr std::string_view kPodUid = "POD_UID";
constexpr std::string_view kFirstConf = "SLURMD_FIRST_CONF";
constexpr std::string_view kLogVolume = "slurm-logfile";
constexpr std::string_view kLogDir = "/var/log/slurm";
constexpr std::string_view kLogPath = "/var/log/slurm/slurmd.log";

/// slurmd waits ten seconds between its attempts to reach slurmctld. This script tries five times a second, so that a worker
/// starts sooner.
constexpr std::string_view kWaitScript =
    R"(until timeout 1 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$0" "$1" 2>/dev/null; do sleep 0.2; done)";

/// The preStop hook drains the node and sets it DOWN. So the jobs of a worker that ends without a drain by the operator are
/// requeued at once, not only when slurmctld notices that slurmd is gone. The drain is needed because the next registration may
/// end a DOWN. The reason contains the uid of the pod, so that only the next pod or a restarted slurmd causes a resume.
///
/// The hook keeps the reason of a drain, a fail or a down that neither the operator nor slurmctld has set. A drain or fail
/// without a reason counts as set by somebody else. The hook also keeps the holds of our other programs (slurm/holds.hpp)
/// unless the holds remain from a drain that has ended. The hook does not drain a node that others hold, because a drain would
/// end a fail. The hook does nothing if the record is gone, as after a scale-in. It also does nothing if somebody else's drain
/// is complete, because the node would stay DOWN after the end of that drain. After its own drain, the hook reads the node
/// again, so that the DOWN keeps what others have written in the meantime.
///
/// The shell function `look` sets s to Slurm's output for the node, and r to the reason to write. `look` sets o if r is the
/// operator's own reason.
constexpr std::string_view kPreStop =
    R"(timeout 3 sh -c 'n=$(hostname); look() { s=$(scontrol -o show node "$n") || return 1; o=;)"
    R"( r=$(printf "%s\n" "$s" | sed -n "/ State=[^ ]*FAIL/!{/ Reason=slurm-operator: /d};)"
    R"(/ Reason=\(Not responding\( : Not responding\)\?\|Node unexpectedly rebooted\) \[/!)"
    R"(s/.* State=[^ ]*\(D\(RAIN\|OWN\)\|FAIL\).* Reason=\(.*\) \[[^ ]*@[0-9T:-]*\].*/\3/p;t;)"
    R"(s/.* State=[^ ]*\(DRAIN\|FAIL\).*/drained without a reason/p");)"
    R"sh( [ -n "$r" ] || { o=1; r="slurm-operator: Pod is terminating ($POD_UID)";)sh"
    R"sh( h=$(printf "%s\n" "$s" |)sh"
    R"sh( sed -n "/ State=[^ ]*DRAIN/!{/ : Not responding \[/d};s/.* State=[^ ]*D\(RAIN\|OWN\).* Reason=slurm-operator: \(.*\) \[[^ ]*@[0-9T:-]*\].*/\2/p");)sh"
    R"sh( case $h in *"; slurm-bridge: "*) r="$r; slurm-bridge: ${h#*; slurm-bridge: }";;)sh"
    R"sh( *"; slurm-enlist: "*) r="$r; slurm-enlist: ${h#*; slurm-enlist: }";; esac; }; };)sh"
    R"( look || exit 0;)"
    R"( [ -z "$o" ] || { scontrol update nodename="$n" state=drain reason="$r"; look; };)"
    R"( case "$o$s" in 1*) ;; *" State=IDLE+DRAIN"*) exit 0; esac;)"
    R"( scontrol update nodename="$n" state=down reason="$r"' || true)";

struct ConfItem {
  std::string key;
  std::string value;
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

/// Splits the text at blanks, but not inside of double quotes.
std::vector<std::string> split_items(std::string_view text) {
  std::vector<std::string> out;
  std::string item;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == ' ' || c == '\t' || c == '\n')) {
      if (!item.empty()) out.push_back(std::move(item));
      item.clear();
    } else {
      item += c;
    }
  }
  if (!item.empty()) out.push_back(std::move(item));
  return out;
}

/// Returns the container slurmd as users write it: spec.slurmd, overridden by the container slurmd of the pod template.
Json wanted_slurmd(const api::NodeSetSpec& spec) {
  Json out = merge_container(Json{{"image", kDefaultSlurmdImage}}, spec.slurmd);
  const Json* containers = core::find(spec.pod_template.spec, {"containers"});
  if (containers == nullptr || !containers->is_array()) return out;
  for (const Json& container : *containers) {
    if (core::get_string(container, {"name"}) == kSlurmd) out = merge_container(std::move(out), container);
  }
  return out;
}

/// True for a valid name of a volume (RFC 1123).
bool is_volume_name(std::string_view name) {
  return name.size() <= 63 && !name.starts_with('-') && !name.ends_with('-') &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

/// Returns the quantity in whole units, rounded up. 0: the quantity is invalid, or no machine has that much.
std::int64_t whole(const Json& quantity) {
  const long double value = std::ceil(core::quantity(quantity).value_or(0));
  return value < 0 || value > 9.2e18L ? 0 : static_cast<std::int64_t>(value);
}

Json env_of_field(std::string_view name, std::string_view field) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", field}}}}}};
}

Json env_of_annotation(std::string_view name, std::string_view annotation) {
  return env_of_field(name, fmt::format("metadata.annotations['{}']", annotation));
}

Json env_vars(const api::NodeSetSpec& spec) {
  const PodLimits limits = pod_limits(spec.slurmd, spec.pod_template.spec);
  Json out = keys_env();
  for (Json& variable : Json::array({env_of_annotation("POD_TOPOLOGY", api::kAnnotationTopologySpec),
                                     env_of_field(kPodUid, "metadata.uid"),
                                     {{"name", "POD_CPUS"}, {"value", std::to_string(limits.cpus)}},
                                     {{"name", "POD_MEMORY"}, {"value", std::to_string(limits.memory_mib)}}})) {
    out.push_back(std::move(variable));
  }
  if (uses_host_network(spec)) out.push_back(env_of_field(kWorkerName, "spec.nodeName"));
  return out;
}

/// Returns the preStop hook. With host networking, the command `hostname` prints the name of the host and not of the worker, so
/// the hook uses the variable WORKER_NAME instead.
std::string pre_stop(const api::NodeSetSpec& spec) {
  constexpr std::string_view kHostname = "$(hostname)";
  std::string out(kPreStop);
  if (uses_host_network(spec)) out.replace(out.find(kHostname), kHostname.size(), fmt::format("${}", kWorkerName));
  return out;
}

/// Returns the liveness probe. A restart of the container ends the jobs, so the probe fails only after slurmctld has given up
/// slurmd (SlurmdTimeout). Each attempt may take ten seconds, because a busy host answers slowly.
Json liveness(core::Duration slurmd_timeout) {
  constexpr int kPeriod = 10, kMore = 6;
  // With SlurmdTimeout=0, slurmctld waits forever. The probe then waits for a day.
  const std::int64_t seconds = slurmd_timeout.count() > 0 ? slurmd_timeout.count() / 1000 : std::int64_t{24} * 3600;
  Json out = probe(kSlurmd, static_cast<int>(seconds / kPeriod) + kMore);
  out["periodSeconds"] = out["timeoutSeconds"] = kPeriod;
  return out;
}

/// Adds requests for CPU and memory that are missing. Pods without requests are the first that the kubelet evicts and the
/// kernel kills. If there is a limit, Kubernetes uses the limit as the request.
void add_requests(Json& container) {
  for (const auto& [what, amount] : {std::pair{"cpu", "100m"}, std::pair{"memory", "128Mi"}}) {
    if (core::find(container, {"resources", "limits", what}) != nullptr) continue;
    Json* at = &container;
    // A user's value of another type stays, and the API server refuses it.
    for (const char* name : {"resources", "requests", what}) {
      if (at->is_null() || at->is_object()) at = &(*at)[name];
    }
    if (at->is_null()) *at = amount;
  }
}

Json slurmd_container(const Observed& in, const std::string& conf, const Json& wanted) {
  const api::NodeSetSpec& spec = in.nodeset.spec;
  const ControllerView& controller = *in.controller;
  Json args{"-Z", "--conf-server", controller.conf_servers.empty() ? controller.endpoint.str() : controller.conf_servers,
            "--conf", shell_word(conf)};
  if (uses_host_network(spec)) args.insert(args.end(), {"-N", fmt::format("$({})", kWorkerName)});
  // Without the sidecar, slurmd logs to the container's output.
  if (!spec.logfile.empty()) args.insert(args.end(), {"-L", kLogPath});
  Json base{
      {"name", kSlurmd},
      {"image", kDefaultSlurmdImage},
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"args", std::move(args)},
      {"env", env_vars(spec)},
      {"ports", Json::array({{{"name", kSlurmd}, {"containerPort", api::kPortSlurmd}, {"protocol", "TCP"}}})},
      {"startupProbe", probe(kSlurmd, 60)},
      {"livenessProbe", liveness(in.controller->slurmd_timeout)},
      {"readinessProbe", probe(kSlurmd, 3)},
      {"securityContext", {{"privileged", true}, {"capabilities", {{"add", {"BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"}}}}}},
      {"lifecycle", {{"preStop", {{"exec", {{"command", {"/usr/bin/sh", "-c", pre_stop(spec)}}}}}}}},
      {"volumeMounts", Json::array({{{"name", kEtcVolume}, {"mountPath", "/etc/slurm"}, {"readOnly", true}},
                                    {{"name", kLogVolume}, {"mountPath", kLogDir}}})},
  };
  add_sshd(spec, base);
  if (core::find(wanted, {"lifecycle", "preStop"}) != nullptr) base.erase("lifecycle");
  return merge_container(std::move(base), spec.slurmd);
}

Json wait_container(const Observed& in, const Json& wanted) {
  const Endpoint& endpoint = in.controller->endpoint;
  Json out{{"name", kWaitController},
           {"image", core::get_string(wanted, {"image"})},
           {"command", {"bash", "-c", kWaitScript, endpoint.host, std::to_string(endpoint.port)}}};
  // If the namespace has a ResourceQuota, every container needs resources. An init container runs before slurmd, so its
  // resources do not add to slurmd's.
  for (const char* same : {"imagePullPolicy", "resources"}) {
    if (wanted.contains(same)) out[same] = wanted[same];
  }
  return out;
}

Json logfile_container(const api::NodeSetSpec& spec, const Json& wanted) {
  Json base{{"name", kLogfile},
            {"image", core::get_string(wanted, {"image"})},
            {"command", {"sh", "-c", kLogfileScript}},
            {"env", Json::array({{{"name", "SOCKET"}, {"value", kLogPath}}})},
            {"restartPolicy", "Always"},
            {"volumeMounts", Json::array({{{"name", kLogVolume}, {"mountPath", kLogDir}}})}};
  return merge_container(std::move(base), spec.logfile);
}

Json volumes(const Observed& in) {
  const std::string keyring = keyring_name(in.nodeset.spec.controller_ref.name);
  Json etc = Json::array({project_secret(keyring, api::kKeySlurm, api::kKeySlurm), project_rotation(keyring)});
  // With the sidecar, the log is a FIFO. Without the sidecar, the log is a file. A file must not be on a volume in memory.
  Json log = Json::object();
  if (!in.nodeset.spec.logfile.empty()) log["medium"] = "Memory";
  Json out = Json::array({projected_volume(kEtcVolume, std::move(etc)), {{"name", kLogVolume}, {"emptyDir", std::move(log)}}});
  add_ssh_volumes(in, out);
  return out;
}

Json base_spec(const Observed& in, const std::string& conf) {
  const api::NodeSetSpec& spec = in.nodeset.spec;
  const Json wanted = wanted_slurmd(spec);
  Json init = Json::array();
  if (!spec.logfile.empty()) init.push_back(logfile_container(spec, wanted));
  add_check(spec, wanted, init);
  init.push_back(wait_container(in, wanted));
  return {
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"terminationGracePeriodSeconds", kWorkerGraceSeconds},
      {"subdomain", workers_service_name(spec.controller_ref.name)},
      {"dnsConfig", {{"searches", Json::array({workers_domain(in.meta().ns, spec.controller_ref.name, in.cluster_domain)})}}},
      {"initContainers", std::move(init)},
      {"containers", Json::array({slurmd_container(in, conf, wanted)})},
      {"volumes", volumes(in)}};
}

void add_tolerations(Json& spec) {
  Json& list = spec["tolerations"];
  if (!list.is_array()) list = Json::array();
  for (const std::string_view taint : kLostHostTaints) {
    if (!tolerates(list, taint)) list.push_back(toleration_of(taint));
  }
  list.push_back(toleration_of(api::kTaintWorker));
}

/// Adds the node to each of the user's node selector terms, because a node needs to match only one term.
void require_kube_node(Json& spec, const std::string& node) {
  Json* at = &spec;
  for (const char* name : {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"}) {
    at = &(*at)[name];
    if (!at->is_object()) *at = Json::object();
  }
  Json& terms = (*at)["nodeSelectorTerms"];
  if (!terms.is_array() || terms.empty()) terms = Json::array({Json::object()});
  for (Json& term : terms) {
    if (!term["matchFields"].is_array()) term["matchFields"] = Json::array();
    term["matchFields"].push_back({{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({node})}});
  }
}

/// Adds the volumes of the worker's claims. Such a volume replaces one of the same name, as in StatefulSets.
void add_claims(Json& pod, const api::NodeSetSpec& spec, std::string_view name) {
  if (!spec.volume_claim_templates.is_array() || spec.volume_claim_templates.empty()) return;
  Json volumes = Json::array();
  std::vector<std::string> claimed;
  for (const Json& claim : spec.volume_claim_templates) {
    claimed.push_back(core::get_string(claim, {"metadata", "name"}));
    volumes.push_back({{"name", claimed.back()}, {"persistentVolumeClaim", {{"claimName", claim_name(claim, name)}}}});
  }
  for (const Json& volume : pod["volumes"]) {
    if (std::ranges::find(claimed, core::get_string(volume, {"name"})) == claimed.end()) volumes.push_back(volume);
  }
  pod["volumes"] = std::move(volumes);
}

/// Allows only one worker on a Kubernetes node, across all NodeSets.
void add_anti_affinity(Json& spec) {
  Json* at = &spec;
  for (const char* name : {"affinity", "podAntiAffinity"}) {
    at = &(*at)[name];
    if (!at->is_object()) *at = Json::object();
  }
  Json& terms = (*at)["requiredDuringSchedulingIgnoredDuringExecution"];
  if (!terms.is_array()) terms = Json::array();
  const Json selector{{"matchExpressions",
                       Json::array({{{"key", api::kLabelName}, {"operator", "In"}, {"values", Json::array({kAppWorker})}}})}};
  terms.push_back({{"topologyKey", "kubernetes.io/hostname"}, {"labelSelector", selector}});
}

/// Restricts the pod to the host, as Kubernetes' DaemonSet controller does.
void bind_to_host(Json& pod, const std::string& host) {
  const Json term{
      {"matchFields", Json::array({{{"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({host})}}})}};
  Json* at = &pod["spec"];
  for (const char* name : {"affinity", "nodeAffinity"}) {
    at = &(*at)[name];
    if (!at->is_object()) *at = Json::object();
  }
  (*at)["requiredDuringSchedulingIgnoredDuringExecution"] = {{"nodeSelectorTerms", Json::array({term})}};
}

/// Makes slurmd register drained: an annotation of the pod adds State=DRAIN to --conf. The operator removes the annotation
/// after the registration, because a restarted container must not drain the node again.
void start_drained(Json& pod) {
  pod["metadata"]["annotations"][std::string(api::kAnnotationFirstConf)] = fmt::format("State=DRAIN Reason={}", kDrainedBefore);
  for (Json& container : pod["spec"]["containers"]) {
    if (core::get_string(container, {"name"}) != kSlurmd) continue;
    container["env"].push_back(env_of_annotation(kFirstConf, api::kAnnotationFirstConf));
    // The operator's own --conf comes first in the arguments. Extend only this first --conf.
    Json& args = container["args"];
    const auto conf = std::ranges::find(args, Json("--conf"));
    std::string text = *(conf + 1);
    text.insert(text.size() - 1, fmt::format(" $({})", kFirstConf));
    *(conf + 1) = std::move(text);
  }
}

/// Returns the pod of a worker that is bound to a Kubernetes node.
core::Json daemon_pod(const core::Json& worker_template, const Observed& in, const std::string& host) {
  Json pod = worker_template;
  Json& meta = pod["metadata"];
  meta["name"] = daemon_pod_name(in.meta().name, host);
  meta["labels"][std::string(api::kLabelPodName)] = meta["name"];
  if (!uses_host_network(in.nodeset.spec)) {
    const std::string& name = in.hosts.at(host).slurm_node;
    pod["spec"]["hostname"] = name;
    meta["labels"][std::string(api::kLabelPodHostname)] = name;
  }
  add_claims(pod["spec"], in.nodeset.spec, core::get_string(meta, {"name"}));
  bind_to_host(pod, host);
  if (recorded_drain(in, core::get_string(pod, {"spec", "hostname"}))) start_drained(pod);
  return pod;
}

}  // namespace

core::Result<std::string> slurmd_conf(const api::NodeSetSpec& spec, std::string_view nodeset) {
  std::vector<ConfItem> items{{"Features", slurm_node_set_name(spec, nodeset)}};
  for (const std::string& text : split_items(spec.extra_conf)) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return core::fail(core::ErrorCode::kInvalid, fmt::format("spec.extraConf: \"{}\" must have the form Key=Value", text));
    }
    std::string key = text.substr(0, equals);
    if (lower(key) == "feature") key = "Features";
    if (lower(key) == "nodename") {
      return core::fail(core::ErrorCode::kInvalid,
                        "spec.extraConf: NodeName cannot be set, because slurmd uses the hostname of the pod");
    }
    const auto same = std::find_if(items.begin(), items.end(), [&](const ConfItem& i) { return lower(i.key) == lower(key); });
    if (same == items.end()) {
      items.push_back({std::move(key), text.substr(equals + 1)});
    } else {
      same->value += "," + text.substr(equals + 1);
    }
  }
  std::string out;
  for (const ConfItem& item : items) out += (out.empty() ? "" : " ") + item.key + "=" + item.value;
  return out;
}

bool leaves_state_open(const api::NodeSetSpec& spec, std::string_view nodeset) {
  const core::Result<std::string> conf = slurmd_conf(spec, nodeset);
  return conf && std::ranges::none_of(split_items(*conf), [](const std::string& item) {
           const std::string key = lower(item.substr(0, item.find('=')));
           return key == "state" || key == "reason";
         });
}

PodLimits pod_limits(const core::Json& slurmd, const core::Json& pod_spec) {
  // List the sources of limits in the order in which they are merged: the last value wins.
  std::vector<const Json*> places{&pod_spec, &slurmd};
  if (const Json* containers = core::find(pod_spec, {"containers"}); containers != nullptr && containers->is_array()) {
    for (const Json& container : *containers) {
      if (core::get_string(container, {"name"}) == kSlurmd) places.push_back(&container);
    }
  }
  const auto limit = [&](const char* what) {
    const Json* said = nullptr;
    for (const Json* place : places) {
      const Json* here = core::find(*place, {"resources", "limits", what});
      if (here != nullptr && !here->is_null()) said = here;
    }
    return said == nullptr ? 0 : whole(*said);
  };
  return {limit("cpu"), limit("memory") / (std::int64_t{1} << 20)};
}

std::string terminating_reason(std::string_view pod_uid) {
  return fmt::format("Pod is terminating ({})", pod_uid);
}

bool always_protected(const api::NodeSetSpec& spec) {
  return spec.workload_disruption_protection && spec.workload_disruption_policy == api::DisruptionPolicy::kAlways;
}

bool tolerates(const core::Json& tolerations, std::string_view taint) {
  if (!tolerations.is_array()) return false;
  return std::ranges::any_of(tolerations, [&](const Json& toleration) {
    const std::string key = core::get_string(toleration, {"key"}), effect = core::get_string(toleration, {"effect"});
    return (key.empty() || key == taint) && (effect.empty() || effect == "NoExecute");
  });
}

core::Json toleration_of(std::string_view taint) {
  return {{"key", taint}, {"operator", "Exists"}, {"effect", "NoExecute"}};
}

std::string shell_word(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += R"('\'')";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string claim_name(const core::Json& claim_template, std::string_view pod) {
  return core::get_string(claim_template, {"metadata", "name"}) + "-" + std::string(pod);
}

core::Json claim_owner(const kube::ObjectMeta& nodeset) {
  Json out = kube::owner_reference_json(resources::kNodeSet, nodeset);
  out.erase("controller");
  out.erase("blockOwnerDeletion");
  return out;
}

core::Json worker_claim(const core::Json& claim_template, const Observed& in, std::string_view pod) {
  Json out = claim_template;
  out["apiVersion"] = kube::resources::kPersistentVolumeClaim.version;
  out["kind"] = kube::resources::kPersistentVolumeClaim.kind;
  out.erase("status");
  Json& meta = out["metadata"];
  meta["name"] = claim_name(claim_template, pod);
  meta["namespace"] = in.meta().ns;
  if (!meta["labels"].is_object()) meta["labels"] = Json::object();
  for (const auto& [name, value] : worker_labels(in.meta().name, in.nodeset.spec.controller_ref.name))
    meta["labels"][name] = value;
  meta["labels"][std::string(api::kLabelPodName)] = pod;
  if (in.nodeset.spec.persistent_volume_claim_retention_policy.when_deleted == api::ClaimRetention::kDelete)
    meta["ownerReferences"] = Json::array({claim_owner(in.meta())});
  return out;
}

std::string claim_templates_problem(const api::NodeSetSpec& spec) {
  if (spec.volume_claim_templates.is_null()) return {};
  if (!spec.volume_claim_templates.is_array()) return "spec.volumeClaimTemplates: must be a list";
  std::vector<std::string_view> ours = ssh_volume_names(spec);
  ours.insert(ours.end(), {kEtcVolume, kLogVolume});
  std::vector<std::string> names;
  for (std::size_t i = 0; i < spec.volume_claim_templates.size(); ++i) {
    const std::string name = core::get_string(spec.volume_claim_templates[i], {"metadata", "name"});
    const std::string path = fmt::format("spec.volumeClaimTemplates[{}].metadata.name", i);
    if (name.empty()) return path + ": required";
    if (!is_volume_name(name))
      return fmt::format("{}: {} must have at most 63 characters of a-z, 0-9 and '-', and begin and end with a letter or digit",
                         path, name);
    if (std::ranges::find(ours, name) != ours.end()) return fmt::format("{}: {} is a volume of the operator's own", path, name);
    if (std::ranges::find(names, name) != names.end()) return fmt::format("{}: {} is the name of another template", path, name);
    names.push_back(name);
  }
  return {};
}

std::string name_option_problem(const api::NodeSetSpec& spec, std::string_view nodeset) {
  return registered_name_problem(wanted_slurmd(spec), spec, nodeset);
}

core::Result<core::Json> worker_template(const Observed& in, const std::string& revision_hash) {
  const api::NodeSetSpec& spec = in.nodeset.spec;
  const core::Result<std::string> conf = slurmd_conf(spec, in.meta().name);
  if (!conf) return std::unexpected(conf.error());
  for (std::string problem : {claim_templates_problem(spec), name_option_problem(spec, in.meta().name)}) {
    if (!problem.empty()) return core::fail(core::ErrorCode::kInvalid, std::move(problem));
  }

  kube::StringMap labels = worker_labels(in.meta().name, spec.controller_ref.name);
  labels.emplace(api::kLabelScalingMode, api::to_string(spec.scaling_mode));
  labels.emplace(api::kLabelRevisionHash, revision_hash);
  if (always_protected(spec)) labels.emplace(api::kLabelPodProtect, "true");
  kube::StringMap annotations = ssh_annotations(spec);
  annotations.emplace(api::kAnnotationDefaultContainer, kSlurmd);

  api::PodTemplate over = spec.pod_template;
  if (over.spec.is_object()) over.spec.erase("hostname");

  Json merged = merge_pod_template(base_spec(in, *conf), over, in.meta(), labels, annotations);
  mark_reader(merged, kSlurmd);
  Json& pod = merged["spec"];
  for (Json& container : pod["containers"]) {
    if (core::get_string(container, {"name"}) == kSlurmd) add_requests(container);
  }
  if (!in.worker_priority_class.empty() && core::get_string(pod, {"priorityClassName"}).empty())
    pod["priorityClassName"] = in.worker_priority_class;
  add_tolerations(pod);
  if (in.by_host()) {
    for (core::Json& toleration : daemon_tolerations(uses_host_network(spec)))
      pod["tolerations"].push_back(std::move(toleration));
    // slurm-bridge taints the Kubernetes node once Slurm has the node's worker. A successor must be able to start on the
    // tainted node.
    pod["tolerations"].push_back({{"key", slinky::kTaintManagedNode}, {"operator", "Exists"}});
    // The operator has already evaluated the selector for the node to which the pod is bound. If the selector stayed in the pod
    // and the node's labels changed, a restarted kubelet would end the worker with its jobs.
    pod.erase("nodeSelector");
  }
  if (!spec.oversubscribe_node) add_anti_affinity(pod);

  merged["apiVersion"] = "v1";
  merged["kind"] = "Pod";
  merged["metadata"]["namespace"] = in.meta().ns;
  merged["metadata"]["ownerReferences"] = Json::array({kube::owner_reference_json(resources::kNodeSet, in.meta())});
  return merged;
}

core::Json worker_pod(const core::Json& worker_template, const Observed& in, const SlotKey& place) {
  if (!place.numbered()) return daemon_pod(worker_template, in, place.kube_node);
  const api::NodeSetSpec& spec = in.nodeset.spec;
  const std::string padded = padded_ordinal(place.ordinal, spec.ordinal_padding);
  const std::string name = pod_name(in.meta().name, place.ordinal, spec.ordinal_padding);
  Json pod = worker_template;
  Json& meta = pod["metadata"];
  meta["name"] = name;
  meta["labels"][std::string(api::kLabelPodName)] = name;
  meta["labels"][std::string(api::kLabelPodIndex)] = padded;
  // With host networking, the Slurm node has the name of the machine, which is known only once the pod is scheduled.
  if (!uses_host_network(spec)) {
    const std::string host = host_prefix(core::get_string(spec.pod_template.spec, {"hostname"}), in.meta().name) + padded;
    pod["spec"]["hostname"] = host;
    meta["labels"][std::string(api::kLabelPodHostname)] = host;
  }
  add_claims(pod["spec"], spec, name);
  if (const std::optional<std::string> node = recorded_pin(in, place)) {
    require_kube_node(pod["spec"], *node);
    meta["annotations"][std::string(api::kAnnotationPinnedTo)] = *node;
  }
  if (recorded_drain(in, core::get_string(pod, {"spec", "hostname"}))) start_drained(pod);
  return pod;
}

}  // namespace op::nodeset
