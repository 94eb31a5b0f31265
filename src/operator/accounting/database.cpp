#include "operator/accounting/database.hpp"

#include <algorithm>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/children.hpp"
#include "operator/common/pod_template.hpp"
#include "operator/common/probes.hpp"
#include "operator/common/services.hpp"

namespace op::accounting {
namespace {

constexpr const char* kDataVolume = "data";
constexpr const char* kData = "/var/lib/mysql";
constexpr const char* kRunVolume = "run";
constexpr const char* kRun = "/run/mysqld";
constexpr const char* kSecretVolume = "password";
constexpr const char* kSecret = "/run/secrets/mariadb";
constexpr const char* kPasswordKey = "password";
constexpr int kPort = 3306;
constexpr int kPasswordBytes = 24;
/// MariaDB's grace period when its pod ends, in seconds. InnoDB needs this time to write its changes back to disk.
constexpr int kTimeToEnd = 300;

core::Json password_secret(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  core::Json out = owned_child(kube::resources::kSecret, {meta.ns, database_object_name(meta.name)}, resources::kAccounting,
                               meta, database_labels(meta.name));
  out["data"] = {{kPasswordKey, {{"$generate", {{"bytes", kPasswordBytes}, {"as", "hex"}}}}}};
  return out;
}

core::Json database_service(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  core::Json out = owned_child(kube::resources::kService, {meta.ns, database_object_name(meta.name)}, resources::kAccounting,
                               meta, database_labels(meta.name));
  core::Json ports = core::Json::array({service_port(kDatabaseContainer, kPort, kDatabaseContainer)});
  out["spec"] = merge_service_spec(core::Json::object(), core::Json::object(), selector_labels(kAppDatabase, meta.name),
                                   std::move(ports));
  return out;
}

core::Json mariadb_container(const Observed& observed) {
  const api::StorageConfig& config = *observed.accounting.spec.storage_config;
  const Storage storage = storage_of(config, observed.object->meta.name);
  core::Json out{
      {"name", kDatabaseContainer},
      {"image", kDefaultMariadbImage},
      {"command", {"bash", "-c", serve_database_script(), "bash", storage.database, storage.username}},
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"ports", core::Json::array({{{"name", kDatabaseContainer}, {"containerPort", kPort}, {"protocol", "TCP"}}})},
      {"securityContext", {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", core::Json::array({"ALL"})}}}}},
      {"volumeMounts",
       core::Json::array({core::Json{{"name", kDataVolume}, {"mountPath", kData}},
                          core::Json{{"name", kRunVolume}, {"mountPath", kRun}}, read_only_mount(kSecretVolume, kSecret)})},
  };
  // After a crash, MariaDB reads its log before it opens the port. Reading the log can take long and must not be interrupted,
  // so there is no liveness probe.
  out["readinessProbe"] = probe(kDatabaseContainer, 3);
  return merge_container(std::move(out), config.mariadb);
}

core::Json data_claim(const api::StorageConfig& config) {
  core::Json spec = config.persistence.claim;
  if (!spec.contains("accessModes")) spec["accessModes"] = core::Json::array({"ReadWriteOnce"});
  if (core::find(spec, {"resources", "requests", "storage"}) == nullptr) spec["resources"]["requests"]["storage"] = "8Gi";
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolumeClaim"},
          {"metadata", {{"name", kDataVolume}}},
          {"spec", std::move(spec)}};
}

core::Json database_set(const Observed& observed) {
  const api::StorageConfig& config = *observed.accounting.spec.storage_config;
  const kube::ObjectMeta& meta = observed.object->meta;
  const std::string name = database_object_name(meta.name);
  const core::Json item = core::Json::array({{{"key", kPasswordKey}, {"path", kPasswordKey}}});
  core::Json pod{
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"terminationGracePeriodSeconds", kTimeToEnd},
      {"securityContext",
       {{"runAsNonRoot", true},
        {"runAsUser", kMariadbUid},
        {"runAsGroup", kMariadbUid},
        {"fsGroup", kMariadbUid},
        {"fsGroupChangePolicy", "OnRootMismatch"}}},
      {"containers", core::Json::array({mariadb_container(observed)})},
      {"volumes", core::Json::array({core::Json{{"name", kRunVolume}, {"emptyDir", {{"medium", "Memory"}}}},
                                     core::Json{{"name", kSecretVolume},
                                                {"secret", {{"secretName", name}, {"defaultMode", 0440}, {"items", item}}}}})},
  };
  // MariaDB reads the password only when MariaDB starts, so a changed password replaces the pod.
  const kube::StringMap annotations{
      {std::string(api::kAnnotationDefaultContainer), std::string(kDatabaseContainer)},
      {std::string(api::kAnnotationStoragePasswordHash), salted_digest(meta, observed.password.content)},
  };
  core::Json out =
      owned_child(kube::resources::kStatefulSet, {meta.ns, name}, resources::kAccounting, meta, database_labels(meta.name));
  core::Json set{
      {"replicas", 1},
      {"podManagementPolicy", "Parallel"},
      {"revisionHistoryLimit", 0},
      {"serviceName", name},
      {"selector", {{"matchLabels", selector_labels(kAppDatabase, meta.name)}}},
      {"template", merge_pod_template(std::move(pod), config.pod_template, meta, database_labels(meta.name), annotations)},
      {"volumeClaimTemplates", core::Json::array({data_claim(config)})}};
  keep_fixed_fields(set, observed.database_set.get());
  out["spec"] = std::move(set);
  return out;
}

/// Returns a problem if the spec requests a claim that differs from the claim template in the StatefulSet. The operator cannot
/// change this template, and an existing claim would not follow it.
std::optional<Problem> volume_problem(const Observed& observed) {
  if (!observed.database_set) return {};
  const core::Json* claims = core::find(observed.database_set->body, {"spec", "volumeClaimTemplates"});
  const core::Json wanted = data_claim(*observed.accounting.spec.storage_config);
  if (claims == nullptr || !claims->is_array() || claims->empty() ||
      core::contains(claims->front(), {{"spec", wanted["spec"]}}))
    return {};
  const std::string name = database_object_name(observed.object->meta.name);
  return Problem{"PersistenceFixed",
                 "spec.storageConfig.persistence: PersistentVolumeClaim " + std::string(kDataVolume) + "-" + name +
                     "-0 exists, and cannot be changed here. Restore the previous values; if its StorageClass allows "
                     "expansion, set spec.resources.requests.storage of the claim itself"};
}

}  // namespace

Storage storage_of(const api::StorageConfig& config, const std::string& accounting) {
  Storage out{.host = config.host,
              .port = config.port,
              .database = config.database,
              .username = config.username.empty() ? "slurm" : config.username,
              .password = {}};
  if (config.managed) {
    out.host = database_object_name(accounting);
    out.port = kPort;
    out.password = {.secret = database_object_name(accounting), .key = kPasswordKey, .generated = true};
  } else if (config.password_key_ref) {
    out.password = {.secret = config.password_key_ref->name, .key = config.password_key_ref->key};
  }
  return out;
}

bool managed(const Observed& observed) {
  const api::AccountingSpec& spec = observed.accounting.spec;
  return !spec.external && spec.storage_config && spec.storage_config->managed;
}

bool database_ready(const Observed& observed) {
  return std::ranges::any_of(observed.database_pods,
                             [](const kube::PodPtr& pod) { return !pod->meta.terminating() && pod->ready(); });
}

void plan_database(const Observed& observed, plan::Plan& plan, std::vector<Problem>& problems) {
  const std::string name = database_object_name(observed.object->meta.name);
  plan::Lane& lane = plan.lane("database");
  // An existing password is kept, because MariaDB uses it.
  if (observed.password.presence == kube::Presence::kAbsent) {
    lane.add({{"create", "Secret", name},
              "the password of this Accounting's MariaDB has not been generated yet",
              kube::create(kube::resources::kSecret, password_secret(observed))});
  }
  lane.add(
      apply_step(kube::resources::kService, database_service(observed), observed.database_service.get(), kManagerAccounting));
  if (observed.password.usable()) {
    lane.then();
    core::Json set = database_set(observed);
    lane.add(make_way_step(kube::resources::kStatefulSet, set, observed.database_set.get(), observed.context.outcomes));
    lane.then();
    lane.add(apply_step(kube::resources::kStatefulSet, std::move(set), observed.database_set.get(), kManagerAccounting));
  }
  if (std::optional<Problem> problem = volume_problem(observed)) problems.push_back(std::move(*problem));
  std::ranges::move(pod_problems(observed.database_pods), std::back_inserter(problems));
}

std::string serve_database_script() {
  // The image needs only mariadbd and the SQL files that create the system tables. A configuration in the image is ignored. An
  // interrupted first start begins again, because nobody can have written data before the user exists. Without the SQL files,
  // the script fails before it writes anything, because mariadbd could not start later with an incomplete directory.
  //
  // The settings are those that slurmdbd recommends. slurmdbd reports values that are too small. With
  // innodb_snapshot_isolation, which is on by default since MariaDB 11.6.2, a conflicting read would end slurmdbd.
  return "set -euo pipefail\n"
         "umask 077\n"
         "database=$1 user=$2\n"
         "shift 2\n"
         "data=/var/lib/mysql run=/run/mysqld\n"
         "options=(--no-defaults \"--datadir=$data\" \"--socket=$run/mysqld.sock\" \"--pid-file=$run/mysqld.pid\" "
         "--skip-name-resolve\n"
         "  --ignore-db-dirs=lost+found --innodb-buffer-pool-size=2G --innodb-lock-wait-timeout=900 --max-allowed-packet=64M\n"
         "  --loose-innodb-snapshot-isolation=OFF \"$@\")\n"
         "if [[ -e $data/.making ]]; then\n"
         "  find \"$data\" -mindepth 1 -maxdepth 1 ! -name .making ! -name lost+found -exec rm -rf {} +\n"
         "fi\n"
         "if [[ ! -d $data/mysql ]]; then\n"
         "  files=()\n"
         "  for file in /usr/share/{mariadb,mysql}/{mariadb,mysql}_system_tables{,_data}.sql; do\n"
         "    [[ ! -f $file ]] || files+=(\"$file\")\n"
         "  done\n"
         "  if [[ ${files[*]} != *_tables.sql*_data.sql* ]]; then\n"
         "    echo 'error: the image has no mariadb_system_tables.sql and mariadb_system_tables_data.sql in /usr/share' >&2\n"
         "    exit 1\n"
         "  fi\n"
         "  touch \"$data/.making\"\n"
         "  { printf '%s\\n' 'create database mysql;' 'use mysql;'; cat \"${files[@]}\"; } | mariadbd \"${options[@]}\" "
         "--bootstrap\n"
         "  rm \"$data/.making\"\n"
         "fi\n"
         "password=$(</run/secrets/mariadb/password)\n"
         "password=${password//\\\\/\\\\\\\\}\n"
         "password=${password//\\'/\\\\\\'}\n"
         "{\n"
         "  printf \"delete from mysql.global_priv where User='' or (User='root' and Host<>'localhost');\\n\"\n"
         "  printf \"flush privileges;\\n\"\n"
         "  printf \"create user if not exists '%s'@'%%' identified by '%s';\\n\" \"$user\" \"$password\"\n"
         "  printf \"alter user '%s'@'%%' identified by '%s';\\n\" \"$user\" \"$password\"\n"
         "  printf \"grant all on \\`%s\\`.* to '%s'@'%%';\\n\" \"$database\" \"$user\"\n"
         "} >\"$run/users.sql\"\n"
         "exec mariadbd \"${options[@]}\" \"--init-file=$run/users.sql\"\n";
}

}  // namespace op::accounting
