#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "operator/accounting/database.hpp"
#include "operator/accounting/plan.hpp"
#include "operator/common/children.hpp"
#include "operator/common/pod_template.hpp"
#include "operator/common/probes.hpp"
#include "operator/common/services.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/releases.hpp"
#include "slurm/conf/conf.hpp"

namespace op::accounting {
namespace {

namespace conf = slurm::conf;

constexpr const char* kSlurmdbdConf = "slurmdbd.conf";
constexpr const char* kEtcVolume = "slurm-etc";
constexpr const char* kEtc = "/etc/slurm";
constexpr const char* kSourcesVolume = "slurm-sources";
constexpr const char* kSources = "/mnt/slurm";
constexpr const char* kPassword = "password";
constexpr const char* kJwks = "jwks.json";

core::Json ids(bool group_of_files) {
  core::Json out{{"runAsNonRoot", true}, {"runAsUser", kSlurmUid}, {"runAsGroup", kSlurmUid}};
  if (group_of_files) out["fsGroup"] = kSlurmUid;
  return out;
}

std::string pod_name(const Observed& observed) {
  return accounting_object_name(observed.object->meta.name) + "-0";
}

core::Json slurmdbd_container(const api::AccountingSpec& spec) {
  core::Json out{
      {"name", kAppAccounting},
      {"image", kDefaultSlurmdbdImage},
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"ports", core::Json::array({{{"name", kAppAccounting}, {"containerPort", api::kPortSlurmdbd}, {"protocol", "TCP"}}})},
      {"securityContext", ids(false)},
      {"volumeMounts", core::Json::array({read_only_mount(kEtcVolume, kEtc)})},
  };
  // slurmdbd opens its port once the database is reachable and the tables have the format of this release. Converting the
  // tables of an earlier release can take hours and must not be interrupted, so there is no liveness probe.
  out["readinessProbe"] = probe(kAppAccounting, 3);
  return merge_container(std::move(out), spec.slurmdbd);
}

/// Returns the mounts of the init container. They include the mounts of slurmdbd's container, because the init container also
/// starts slurmdbd. slurmdbd exits if a directory in its settings (ArchiveDir, LogFile) is missing.
core::Json init_mounts(const api::AccountingSpec& spec) {
  core::Json out =
      core::Json::array({core::Json{{"name", kEtcVolume}, {"mountPath", kEtc}}, read_only_mount(kSourcesVolume, kSources)});
  core::Json slurmdbd = slurmdbd_container(spec);
  if (const core::Json* theirs = container_in(spec.pod_template, kAppAccounting))
    slurmdbd = merge_container(std::move(slurmdbd), *theirs);
  for (core::Json& mount : slurmdbd["volumeMounts"]) {
    const std::string path = core::get_string(mount, {"mountPath"});
    if (path != kEtc && path != kSources) out.push_back(std::move(mount));
  }
  return out;
}

core::Json init_container(const api::AccountingSpec& spec) {
  return {{"name", kInitConf},
          {"image", container_image(spec.pod_template, kAppAccounting, spec.slurmdbd, kDefaultSlurmdbdImage)},
          {"command", {"sh", "-c", write_conf_script(), "sh", kSources, kEtc, "/dev/termination-log"}},
          {"terminationMessagePolicy", "FallbackToLogsOnError"},
          {"securityContext", ids(false)},
          {"volumeMounts", init_mounts(spec)}};
}

core::Json sources_volume(const Observed& observed) {
  const api::AccountingSpec& spec = observed.accounting.spec;
  const KeyRef slurm_key = key_in_force(observed).ref;
  const KeyRef& jwt_key = observed.jwt_key->ref;
  const auto item = [](std::string_view key, std::string_view path) {
    return core::Json::array({{{"key", key}, {"path", path}}});
  };
  core::Json sources = core::Json::array(
      {project_config_map(accounting_object_name(observed.object->meta.name), item(kSlurmdbdConf, kSlurmdbdConf)),
       project_secret(slurm_key.secret, slurm_key.key, api::kKeySlurm),
       project_secret(jwt_key.secret, jwt_key.key, api::kKeyJwt)});
  if (spec.jwks_key_ref) sources.push_back(project_config_map(spec.jwks_key_ref->name, item(spec.jwks_key_ref->key, kJwks)));
  const KeyRef& password = observed.password.ref;
  sources.push_back(project_secret(password.secret, password.key, kPassword));
  return projected_volume(kSourcesVolume, std::move(sources), 0440);
}

}  // namespace

// Returns the key that slurmdbd mounts. The daemons of a cluster mount a copy of the key that users name: see slinky/keys.hpp.
// slurmdbd follows the copy of the first cluster that names the same key. While this copy and the user's Secret hold the same
// data, slurmdbd mounts the user's Secret, so that its pod stays as it is. Otherwise it mounts the copy.
SecretFacts key_in_force(const Observed& observed) {
  const SecretFacts& named = *observed.slurm_key;
  for (const Cluster& cluster : observed.clusters) {
    if (cluster.slurm_key.content == named.content && cluster.keyring.usable()) {
      return cluster.keyring.content == named.content ? named : cluster.keyring;
    }
  }
  return named;
}

std::string write_conf_script() {
  // slurmdbd accepts only files of its own user, and slurmdbd.conf only with mode 0600. So the script copies the mounted files.
  //
  // slurmdbd parses a line as follows (parse_config.c). # begins a comment, and a backslash quotes the next character. After
  // that, it looks for Key=value, where the value is "text without double quotes" or text without blanks.
  //
  // slurmdbd -u connects to the database and exits. While it cannot connect, the script tries again every second. To report a
  // cause, the script ends with the cause as the container's termination message, which stays in the pod's status while the
  // next container tries. After each end, the kubelet waits longer before it restarts the container. So the script never ends
  // twice in a row with the same cause, and ends with a cause that it has reported before only if the cause stays for 60 tries.
  // As the version of a new database, slurmdbd 24.11 reports NO_VAL (4294967294), which is no error.
  //
  // slurmdbd reports unsuitable settings of the database server only in its log, and only when it really starts. So the script
  // starts it once with a database in which nobody can create tables. slurmdbd then checks the settings, fails at the first
  // table, and exits.
  return "set -eu\n"
         "umask 077\n"
         "from=$1 to=$2 words=$3\n"
         "trap 'exit 1' TERM\n"
         "fail() {\n"
         "  echo \"$1\" >&2\n"
         "  printf '%s' \"$1\" >\"$words\"\n"
         "  exit 1\n"
         "}\n"
         "newline='\n'\n"
         "password=$(cat \"$from/password\"; echo x)\n"
         "password=${password%x}\n"
         "password=${password%\"$newline\"}\n"
         "case $password in\n"
         "  '') fail 'password: it is empty' ;;\n"
         "  *\"$newline\"*) fail 'password: it has more than one line, which slurmdbd.conf cannot hold' ;;\n"
         "esac\n"
         "inner=${password#\\\"}\n"
         "case $password in\n"
         "  *[[:space:]]*)\n"
         "    case $password in\n"
         "      *\\\"*) fail 'password: it has blanks and double quotes, which slurmdbd.conf cannot hold together' ;;\n"
         "    esac\n"
         "    password=\"\\\"$password\\\"\" ;;\n"
         "  \\\"*\\\")\n"
         "    case ${inner%\\\"} in\n"
         "      *\\\"*) ;;\n"
         "      *) fail 'password: it begins and ends with a double quote, which slurmdbd.conf cannot hold' ;;\n"
         "    esac ;;\n"
         "esac\n"
         "for file in \"$from\"/*; do\n"
         "  [ \"${file##*/}\" = password ] || cat \"$file\" >\"$to/${file##*/}\"\n"
         "done\n"
         "printf 'StoragePass=%s\\n' \"$password\" | sed 's/[\\\\#]/\\\\&/g' >>\"$to/slurmdbd.conf\"\n"
         "end() {\n"
         "  mv \"$to/slurmdbd.conf\" \"$to/.slurmdbd.conf\"\n"
         "  sed 's/^StorageLoc=.*/StorageLoc=information_schema/' \"$to/.slurmdbd.conf\" >\"$to/slurmdbd.conf\"\n"
         "  log=$(timeout 4 slurmdbd -D 2>&1) || :\n"
         "  mv -f \"$to/.slurmdbd.conf\" \"$to/slurmdbd.conf\"\n"
         "  settings=$(printf '%s\\n' \"$log\" | sed -n 's/^.*Database settings not recommended values: *//p' | tail -n 1)\n"
         "  case $log in *'innodb_snapshot_isolation is enabled'*) settings=\"innodb_snapshot_isolation $settings\" ;; esac\n"
         "  release=$(slurmdbd -V 2>/dev/null | sed -n 's/^[^ ]* *\\([0-9][0-9]*\\.[0-9][0-9]*\\).*/\\1/p') || :\n"
         "  printf 'release: %s\\n' \"$release\" >\"$words\"\n"
         "  [ -z \"$settings\" ] || printf 'settings: %s\\n' \"${settings% }\" >>\"$words\"\n"
         "  exit 0\n"
         "}\n"
         "told=$to/.told tries=0 same=0 last=\n"
         "while :; do\n"
         "  code=0\n"
         "  log=$(timeout 4 slurmdbd -u 2>&1) || code=$?\n"
         "  cause=$(printf '%s\\n' \"$log\" | sed -n 's/^.*\\(mysql_[a-z_]* failed: \\|fatal: \\)/\\1/p' | tail -n 1)\n"
         "  case $log in\n"
         "    *\"higher than expected '4294967294'\"*) end ;;\n"
         "    *'higher than expected'*) cause='later release' ;;\n"
         "    *'Slurm Database'*) end ;;\n"
         "    *) [ -n \"$cause\" ] || [ $code = 124 ] || end ;;\n"
         "  esac\n"
         "  [ -n \"$cause\" ] || cause='no answer'\n"
         "  what=database\n"
         "  case $cause in fatal:*) what=slurmdbd ;; esac\n"
         "  if [ $what = slurmdbd ]; then echo \"slurmdbd ends when it starts: $cause\" >&2\n"
         "  else echo \"the database cannot be used: $cause\" >&2\n"
         "  fi\n"
         "  tries=$((tries + 1)) same=$((same + 1))\n"
         "  [ \"$cause\" = \"$last\" ] || same=1\n"
         "  last=$cause need=1\n"
         "  ! grep -qxF -e \"$cause\" \"$told\" 2>/dev/null || need=60\n"
         "  if [ $tries -gt 1 ] && [ $same -ge $need ] && [ \"$(tail -n 1 \"$told\" 2>/dev/null)\" != \"$cause\" ]; then\n"
         "    printf '%s\\n' \"$cause\" >>\"$told\"\n"
         "    fail \"$what: $cause\"\n"
         "  fi\n"
         "  sleep 1 & wait $!\n"
         "done\n";
}

Rendered render_config(const Observed& observed) {
  const api::AccountingSpec& spec = observed.accounting.spec;
  const Storage storage = storage_of(*spec.storage_config, observed.object->meta.name);
  conf::Conf ours;
  ours.set("AuthType", "auth/slurm");
  ours.set("AuthAltTypes", "auth/jwt");
  ours.set("AuthAltParameters",
           std::string("jwt_key=/etc/slurm/jwt.key") + (spec.jwks_key_ref ? ",jwks=/etc/slurm/jwks.json" : ""));
  ours.set("AuthInfo", "use_client_ids");
  ours.set("DbdHost", pod_name(observed));
  ours.set("DbdPort", std::to_string(api::kPortSlurmdbd));
  ours.set("SlurmUser", "slurm");
  // /tmp is removed when the container ends. An old PID file would make slurmdbd end the process whose PID the file has.
  ours.set("PidFile", "/tmp/slurmdbd.pid");
  ours.set("StorageType", "accounting_storage/mysql");
  ours.set("StorageHost", storage.host);
  ours.set("StoragePort", std::to_string(storage.port));
  ours.set("StorageLoc", storage.database);
  ours.set("StorageUser", storage.username);
  const conf::Parsed user = conf::parse(conf::Kind::kSlurmdbd, spec.extra_conf);
  const conf::Merged merged = conf::merge(ours, user.conf, conf::Kind::kSlurmdbd);
  Rendered out{merged.conf.render(), {}};
  for (const auto* problems : {&user.problems, &merged.problems}) {
    for (const conf::Problem& problem : *problems) {
      if (problem.fatal) out.problems.push_back({"ExtraConfInvalid", "spec.extraConf, " + problem.str()});
    }
  }
  return out;
}

core::Json build_service(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  const api::ServiceSpec& over = observed.accounting.spec.service;
  core::Json out = owned_child(kube::resources::kService, {meta.ns, accounting_object_name(meta.name)}, resources::kAccounting,
                               meta, accounting_labels(meta.name), over.metadata);
  core::Json ports = core::Json::array(
      {service_port(kAppAccounting, over.port != 0 ? over.port : api::kPortSlurmdbd, kAppAccounting, over.node_port)});
  out["spec"] =
      merge_service_spec(core::Json::object(), over.spec, selector_labels(kAppAccounting, meta.name), std::move(ports));
  return out;
}

core::Json build_config_map(const Observed& observed, const std::string& slurmdbd_conf) {
  const kube::ObjectMeta& meta = observed.object->meta;
  core::Json out = owned_child(kube::resources::kConfigMap, {meta.ns, accounting_object_name(meta.name)},
                               resources::kAccounting, meta, accounting_labels(meta.name));
  out["data"] = {{kSlurmdbdConf, slurmdbd_conf}};
  if (std::string release = release_to_tell(observed); !release.empty())
    out["data"][std::string(kReleaseFile)] = std::move(release);
  return out;
}

core::Json build_stateful_set(const Observed& observed, const std::string& slurmdbd_conf) {
  const api::AccountingSpec& spec = observed.accounting.spec;
  const kube::ObjectMeta& meta = observed.object->meta;
  const std::string name = accounting_object_name(meta.name);
  core::Json pod{
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"terminationGracePeriodSeconds", 60},
      {"securityContext", ids(true)},
      {"initContainers", core::Json::array({init_container(spec)})},
      {"containers", core::Json::array({slurmdbd_container(spec)})},
      {"volumes",
       core::Json::array({sources_volume(observed), core::Json{{"name", kEtcVolume}, {"emptyDir", {{"medium", "Memory"}}}}})},
  };
  // slurmdbd's pod reads its configuration, keys and password only once. The pod template has digests of these files, so that
  // the pod is replaced when one of the files changes.
  const kube::StringMap annotations{
      {std::string(api::kAnnotationDefaultContainer), std::string(kAppAccounting)},
      {std::string(api::kAnnotationSlurmdbdConfHash), core::short_digest(slurmdbd_conf + observed.jwks.value_or(""))},
      {std::string(api::kAnnotationSlurmKeyHash), salted_digest(meta, key_in_force(observed).content)},
      {std::string(api::kAnnotationJwtKeyHash), salted_digest(meta, observed.jwt_key->content)},
      {std::string(api::kAnnotationStoragePasswordHash), salted_digest(meta, observed.password.content)},
  };
  core::Json out =
      owned_child(kube::resources::kStatefulSet, {meta.ns, name}, resources::kAccounting, meta, accounting_labels(meta.name));
  core::Json set{
      {"replicas", 1},
      {"podManagementPolicy", "Parallel"},
      {"revisionHistoryLimit", 0},
      {"serviceName", name},
      {"selector", {{"matchLabels", selector_labels(kAppAccounting, meta.name)}}},
      {"template", merge_pod_template(std::move(pod), spec.pod_template, meta, accounting_labels(meta.name), annotations)}};
  keep_fixed_fields(set, observed.stateful_set.get());
  out["spec"] = std::move(set);
  return out;
}

}  // namespace op::accounting
