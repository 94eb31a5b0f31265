#include <fmt/format.h>

#include "api/revision.hpp"
#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "operator/common/check.hpp"
#include "operator/common/children.hpp"
#include "operator/common/keyring_volume.hpp"
#include "operator/common/pod_template.hpp"
#include "operator/common/services.hpp"
#include "operator/common/ssh.hpp"
#include "operator/common/sssd.hpp"
#include "operator/loginset/plan.hpp"
#include "operator/loginset/sessions.hpp"

namespace op::loginset {
namespace {

using core::Json;

constexpr std::string_view kSackdOptions = "SACKD_OPTIONS";
constexpr std::string_view kConfServer = "--conf-server";
constexpr std::string_view kAuthorizedKeys = "authorized_keys";
constexpr std::string_view kKeysDirectory = "/etc/ssh/authorized_keys.d";
constexpr int kPrivateMode = 0600, kPublicMode = 0644;

/// The script of the init container. The script copies the key and the configuration, because no fsGroup suits both daemons:
/// sackd runs as user slurm and must own its key, but the files of sshd must belong to root alone. Users of earlier releases
/// mount additional files next to the key. The termination message names the rotation of the keys.
constexpr std::string_view kInitConfScript =
    R"(for f in /mnt/slurm/*.key /mnt/slurm/*.jwks /mnt/slurm/*.conf; do [ -f "$f" ] || continue; to=/mnt/etc/slurm/${f##*/};)"
    R"( cp "$f" "$to" && chown 401:401 "$to" || exit 1;)"
    R"( case $f in *.conf) chmod 0644 "$to";; *) chmod 0600 "$to"; esac || exit 1; done;)"
    R"( f=/mnt/slurm/login-generation; [ ! -f "$f" ] || cat "$f" >/dev/termination-log)";

/// The script of the preStop hook. The script writes a notice to all terminals, and waits until there are no sessions. While
/// the sessions cannot be counted, it also waits. Once the pod terminates, its terminationGracePeriodSeconds cannot be
/// shortened. If the cluster was deleted, srun can hang, so the script then ends although there are sessions. The script
/// assumes that the cluster was deleted if DNS works but has not known the name of slurmctld's Service ($0) for a minute. $1 is
/// a name that always exists. With an external slurmctld, which has no such Service, $0 equals $1, and the cluster never counts
/// as deleted.
constexpr std::string_view kPreStop =
    R"sh(idle() { count && [ "$n" = 0 ]; };)sh"
    R"sh( gone() { getent hosts "$1" >/dev/null && ! getent hosts "$0" >/dev/null; };)sh"
    R"sh( idle && exit 0; for t in /dev/pts/[0-9]*; do timeout 1 sh -c 'echo; echo "This login node is about to go.)sh"
    R"sh( Please log out when your work here is done: what still runs when it goes is lost. New sessions go to another one." >"$0")sh"
    R"sh( 2>/dev/null' "$t"; done; g=0; until idle; do if gone "$1"; then g=$((g + 1)); else g=0; fi;)sh"
    R"sh( [ "$g" -lt 30 ] || exit 0; sleep 2; done)sh";
constexpr int kGraceSeconds = 24 * 60 * 60;

/// Returns the port on which sshd listens, which is the port that the user sets, or the default port.
int ssh_port(const api::LoginSetSpec& spec) {
  if (const Json* ports = core::find(spec.login, {"ports"}); ports != nullptr && ports->is_array()) {
    for (const Json& port : *ports) {
      const long long number = core::get_int(port, {"containerPort"});
      if (core::get_string(port, {"name"}) == kAppLogin && number > 0 && number <= 65535) return static_cast<int>(number);
    }
  }
  return api::kPortSsh;
}

/// Returns the script of the readiness probe. A pod is ready if sackd gives out credentials, sshd listens, and users can be
/// found. The script does not connect to sshd, which logs each connection. The script reports the sessions even if the pod is
/// not ready.
std::string readiness_script(const api::LoginSetSpec& spec) {
  std::string out = report_script();
  out += fmt::format(
      "test -S /run/slurm/sack.socket && grep -qsE ': [0-9A-F]+:{:04X} [0-9A-F]+:0000 0A ' /proc/net/tcp /proc/net/tcp6",
      ssh_port(spec));
  if (spec.sssd_conf_ref) out += " && test -S /var/lib/sss/pipes/nss";
  return out;
}

/// Returns the mounts of the files that sshd and SSSD read.
Json daemon_mounts(const Observed& observed) {
  Json out = Json::array({read_only_mount("ssh-config", fmt::format("/etc/ssh/{}", kSshdConfig), kSshdConfig)});
  for (const std::string& key : usable_host_keys(observed.host_keys))
    out.push_back(read_only_mount("ssh-host-keys", "/etc/ssh/" + key, key));
  if (observed.loginset.spec.sssd_conf_ref) out.push_back(sssd_mount());
  return out;
}

Json login_container(const Observed& observed) {
  const api::LoginSetSpec& spec = observed.loginset.spec;
  const std::string always_known = fmt::format("kubernetes.default.svc.{}", observed.cluster_domain);
  Json mounts = Json::array({read_only_mount("slurm-etc", "/etc/slurm"),
                             {{"name", "sackd-dir"}, {"mountPath", "/run/slurm"}},
                             sessions_mount(),
                             read_only_mount("authorized-keys", kKeysDirectory)});
  for (Json& mount : daemon_mounts(observed)) mounts.push_back(std::move(mount));
  Json out{
      {"name", kAppLogin},
      {"image", kDefaultLoginImage},
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"ports", Json::array({{{"name", kAppLogin}, {"containerPort", ssh_port(spec)}, {"protocol", "TCP"}}})},
      {"readinessProbe",
       {{"exec", {{"command", {"sh", "-c", readiness_script(spec)}}}},
        {"periodSeconds", 2},
        {"timeoutSeconds", 5},
        {"failureThreshold", 3}}},
      {"lifecycle",
       {{"preStop",
         {{"exec",
           {{"command",
             {"sh", "-c", std::string(kCount) + std::string(kPreStop),
              observed.external ? always_known : observed.controller.host, always_known}}}}}}}},
      {"volumeMounts", std::move(mounts)},
  };
  if (core::find(spec.login, {"lifecycle", "preStop"}) != nullptr) out.erase("lifecycle");
  return merge_container(std::move(out), spec.login);
}

Json initconf_container(const api::LoginSetSpec& spec) {
  Json out{{"name", kInitConf},
           {"command", {"sh", "-c", kInitConfScript}},
           {"volumeMounts", Json::array({{{"name", "slurm-etc"}, {"mountPath", "/mnt/etc/slurm"}},
                                         read_only_mount("slurm-config", "/mnt/slurm")})}};
  return merge_container(std::move(out), spec.initconf);
}

Json secret_items(const std::vector<std::string>& keys) {
  Json out = Json::array();
  for (const std::string& key : keys) {
    out.push_back({{"key", key}, {"path", key}, {"mode", key.ends_with(".pub") ? kPublicMode : kPrivateMode}});
  }
  return out;
}

Json volumes(const Observed& observed) {
  const api::LoginSetSpec& spec = observed.loginset.spec;
  const std::string& name = observed.object->meta.name;
  const auto of_config = [&](std::string_view key, std::string_view path) {
    return project_config_map(ssh_config_name(name), Json::array({{{"key", key}, {"path", path}}}));
  };
  Json keys = Json::array({of_config(kAuthorizedKeys, "root")});
  for (const api::LocalObjectReference& ref : spec.authorized_keys_refs)
    keys.push_back(project_config_map(ref.name, nullptr, true));
  Json host_keys{
      {"secret", {{"name", ssh_host_keys_name(name)}, {"items", secret_items(usable_host_keys(observed.host_keys))}}}};
  Json out = Json::array(
      {{{"name", "slurm-etc"}, {"emptyDir", {{"medium", "Memory"}}}},
       {{"name", "sackd-dir"}, {"emptyDir", {{"medium", "Memory"}}}},
       sessions_volume(),
       projected_volume("slurm-config",
                        Json::array({project_secret(observed.keyring.ref.secret, observed.keyring.ref.key, api::kKeySlurm),
                                     project_login_rotation(observed.keyring.ref.secret)})),
       projected_volume("ssh-host-keys", Json::array({std::move(host_keys)})),
       projected_volume("ssh-config", Json::array({of_config(kSshdConfig, kSshdConfig)})),
       projected_volume("authorized-keys", std::move(keys))});
  if (spec.sssd_conf_ref) out.push_back(sssd_volume(*spec.sssd_conf_ref));
  return out;
}

std::string login_sshd_config(const Observed& observed) {
  const api::LoginSetSpec& spec = observed.loginset.spec;
  // sshd_config lists only the host keys of the Secret. The image creates other types of keys, which differ between pods.
  std::vector<std::string> host_keys;
  for (const std::string& key : usable_host_keys(observed.host_keys)) {
    if (!key.ends_with(".pub")) host_keys.push_back("/etc/ssh/" + key);
  }
  std::string out = sshd_config("LoginSet", spec.extra_sshd_config, host_keys);
  // A volume's directory is writable for everybody, and with StrictModes sshd refuses such a directory in AuthorizedKeysFile.
  // So a command prints the keys. A Match block overrides what users set outside of blocks. Without authorizedKeysRefs, the
  // block applies only to root, so that the users' settings apply to all others.
  out += fmt::format(
      "\n"
      "# rootSshAuthorizedKeys and authorizedKeysRefs\n"
      "Match {}\n"
      "  AuthorizedKeysCommand /usr/bin/cat {}/%u\n"
      "  AuthorizedKeysCommandUser root\n",
      spec.authorized_keys_refs.empty() ? "User root" : "all", kKeysDirectory);
  return out;
}

kube::StringMap hashes(const Observed& observed) {
  std::string host_keys;
  for (const std::string& key : usable_host_keys(observed.host_keys)) {
    const auto found = observed.host_keys.record->contents.find(key);
    if (found != observed.host_keys.record->contents.end()) host_keys += key + '\n' + found->second + '\n';
  }
  // While a key rotates, login pods are replaced only once, and get keys that they can keep.
  const std::optional<KeyRotation>& rotation = observed.keyring.rotation;
  const bool new_logins = rotation && rotation->step == KeyStep::kLogins;
  kube::StringMap out{
      {std::string(api::kAnnotationDefaultContainer), std::string(kAppLogin)},
      {std::string(api::kAnnotationSlurmKeyHash), new_logins ? rotation->to : observed.keyring.digest},
      {std::string(api::kAnnotationSshdConfHash), core::short_digest(login_sshd_config(observed))},
      {std::string(api::kAnnotationSshHostKeysHash), salted_digest(observed.object->meta, host_keys)},
  };
  if (observed.loginset.spec.sssd_conf_ref)
    out.emplace(api::kAnnotationSssdConfHash, salted_digest(observed.object->meta, observed.sssd_conf.content));
  return out;
}

/// Adds slurmctld's address to the container's environment, before the user's variables. An address that the user sets stays.
void add_conf_server(Json& container, const std::string& servers) {
  Json& env = container["env"];
  if (!env.is_array()) env = Json::array();
  const std::string ours = fmt::format("{} {}", kConfServer, servers);
  for (Json& variable : env) {
    if (core::get_string(variable, {"name"}) != kSackdOptions || !variable.contains("value")) continue;
    const std::string theirs = core::get_string(variable, {"value"});
    if (theirs.find(kConfServer) == std::string::npos) variable["value"] = theirs.empty() ? ours : ours + " " + theirs;
    return;
  }
  env.push_back({{"name", kSackdOptions}, {"value", ours}});
}

/// Copies settings of the container `login` to an init container of ours that lacks these settings. With a quota on the
/// namespace, each container needs resources. The pod needs no more resources, because `check` ends before the other containers
/// start.
void like_login(const Json& login, Json& container) {
  const std::string name = core::get_string(container, {"name"});
  if (name != kInitConf && name != kCheck && name != kSessions) return;
  if (core::get_string(container, {"image"}).empty()) {
    container["image"] = login.value("image", "");
    if (name != kInitConf && login.contains("imagePullPolicy") && !container.contains("imagePullPolicy"))
      container["imagePullPolicy"] = login["imagePullPolicy"];
  }
  if (name == kCheck && login.contains("resources") && !container.contains("resources"))
    container["resources"] = login["resources"];
}

Json strategy(const api::DeploymentStrategy& wanted) {
  const auto type = wanted.type.value_or(api::DeploymentStrategyType::kRollingUpdate);
  Json out{{"type", api::to_string(type)}};
  if (type == api::DeploymentStrategyType::kRollingUpdate) {
    using Number = api::Codec<api::IntOrString>;
    const api::DeploymentRollingUpdate& how = wanted.rolling_update;
    out["rollingUpdate"] = {{"maxUnavailable", how.max_unavailable ? Number::write(*how.max_unavailable) : Json(0)},
                            {"maxSurge", how.max_surge ? Number::write(*how.max_surge) : Json("25%")}};
  }
  return out;
}

}  // namespace

core::Json build_host_keys(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  return new_host_keys({meta.ns, ssh_host_keys_name(meta.name)}, resources::kLoginSet, meta, loginset_labels(meta.name));
}

core::Json build_ssh_config(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  Json out = owned_child(kube::resources::kConfigMap, {meta.ns, ssh_config_name(meta.name)}, resources::kLoginSet, meta,
                         loginset_labels(meta.name));
  std::string keys = "# Made by slurm-operator from rootSshAuthorizedKeys of the LoginSet.\n";
  add_lines(keys, observed.loginset.spec.root_ssh_authorized_keys);
  out["data"] = {{kSshdConfig, login_sshd_config(observed)}, {kAuthorizedKeys, std::move(keys)}};
  return out;
}

core::Json build_service(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  const api::ServiceSpec& over = observed.loginset.spec.service;
  Json out =
      owned_child(kube::resources::kService, meta.key(), resources::kLoginSet, meta, loginset_labels(meta.name), over.metadata);
  Json ports = Json::array({service_port(kAppLogin, over.port != 0 ? over.port : api::kPortSsh, kAppLogin, over.node_port)});
  out["spec"] = merge_service_spec(Json::object(), over.spec, selector_labels(kAppLogin, meta.name), std::move(ports));
  return out;
}

core::Json build_deployment(const Observed& observed) {
  const api::LoginSetSpec& spec = observed.loginset.spec;
  const kube::ObjectMeta& meta = observed.object->meta;
  Json init = Json::array({initconf_container(spec),
                           check_container("", {.sshd = true, .sssd = spec.sssd_conf_ref.has_value()}, daemon_mounts(observed)),
                           sessions_sidecar()});
  Json pod{
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"terminationGracePeriodSeconds", kGraceSeconds},
      {"dnsConfig", {{"searches", Json::array({workers_domain(meta.ns, spec.controller_ref.name, observed.cluster_domain)})}}},
      {"initContainers", std::move(init)},
      {"containers", Json::array({login_container(observed)})},
      {"volumes", volumes(observed)},
  };
  kube::ObjectMeta owner = meta;
  api::PodTemplate over = spec.pod_template;
  // Removes chart versions from the template: otherwise, each new chart version would end the sessions.
  api::drop_chart_versions(owner.labels);
  api::drop_chart_versions(over.metadata.labels);
  Json pod_template = merge_pod_template(std::move(pod), over, owner, loginset_labels(meta.name), hashes(observed));
  Json login = Json::object();
  for (Json& container : pod_template["spec"]["containers"]) {
    if (core::get_string(container, {"name"}) != kAppLogin) continue;
    login = container;
    add_conf_server(container, observed.conf_servers);
  }
  for (Json& container : pod_template["spec"]["initContainers"]) like_login(login, container);
  Json out = owned_child(kube::resources::kDeployment, meta.key(), resources::kLoginSet, meta, loginset_labels(meta.name));
  out["spec"] = {{"replicas", spec.replicas},
                 {"revisionHistoryLimit", 0},
                 {"selector", {{"matchLabels", selector_labels(kAppLogin, meta.name)}}},
                 {"strategy", strategy(spec.strategy)},
                 {"template", std::move(pod_template)}};
  return out;
}

}  // namespace op::loginset
