#include <algorithm>
#include <set>

#include "api/well_known.hpp"
#include "operator/common/children.hpp"
#include "operator/common/keyring_volume.hpp"
#include "operator/common/logfile.hpp"
#include "operator/common/pod_template.hpp"
#include "operator/common/probes.hpp"
#include "operator/common/slinky.hpp"
#include "operator/common/sssd.hpp"
#include "operator/controller/accounting.hpp"
#include "operator/controller/backups.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/cluster_number.hpp"
#include "operator/controller/keyring.hpp"
#include "slinky/releases.hpp"
#include "slurm/conf/loaded.hpp"

namespace op::controller {
namespace {

constexpr const char* kRunVolume = "run";
constexpr const char* kSocketVolume = "slurm-authsocket";
constexpr const char* kLogVolume = "slurm-logfile";
constexpr const char* kStateVolume = "statesave";
constexpr const char* kStateRoot = "/var/spool/slurmctld/";
constexpr const char* kLogDirectory = "/var/log/slurm";
constexpr const char* kSlurmdbdVolume = "slurmdbd";
constexpr const char* kSlurmdbdDirectory = "/mnt/slurmdbd";

/// Returns the script of a sidecar for clusters without a RestApi. The sidecar reconfigures slurmctld if slurmctld does not
/// know the partition that marks slurm.conf. (With a RestApi, the operator does this.) The sidecar tries a refused
/// configuration again after a minute. Before a reconfigure, the sidecar waits for starting jobs, for a minute at most: see
/// prologs.hpp.
std::string reconfigure_script() {
  return "set -u\n"
         "trap 'exit 0' TERM\n"
         "pause=5 waited=0\n"
         "while true; do\n"
         "  sleep $pause & wait $!\n"
         "  mark=$(sed -n 's/^PartitionName=\\(" +
         slurm::conf::marker_name(slurm::Owner::kOperator, "") +
         "[0-9a-z]*\\) .*/\\1/p' /etc/slurm/slurm.conf)\n"
         "  pause=5\n"
         "  [ -n \"$mark\" ] || continue\n"
         "  scontrol ping >/dev/null 2>&1 || continue\n"
         "  scontrol -a show partition \"$mark\" >/dev/null 2>&1 && continue\n"
         "  if ! jobs=$(squeue -h -a -t CF,R -o '%i %T %r') || jobs=$(echo \"$jobs\" | grep -E ' CONFIGURING | Prolog$'); "
         "then\n"
         "    if [ $waited -lt 12 ]; then\n"
         "      waited=$((waited + 1))\n"
         "      continue\n"
         "    fi\n"
         "    echo \"jobs were starting for a minute, or cannot be seen:\"\n"
         "    echo \"$jobs\"\n"
         "  fi\n"
         "  waited=0\n"
         "  scontrol reconfigure && echo \"reconfigured to $mark\" || pause=60\n"
         "done\n";
}

/// Returns the script that waits until no backup serves. A serving backup writes the time and its number, which is not 0, to
/// the file "heartbeat" four times per SlurmctldTimeout, and at least every 30 seconds (slurmctld/heartbeat.c). A backup that
/// takes over begins to write the file after it has read the state. Slurm itself requests a backup to step down, but gives up
/// after half a minute: the primary would then read a state without the backup's last changes.
std::string wait_backup_script(const std::string& state) {
  return "trap 'exit 1' TERM\n"
         "timeout=$(sed -n 's/^ *SlurmctldTimeout *= *\\([0-9][0-9]*\\).*/\\1/Ip' /etc/slurm/slurm.conf | tail -n 1)\n"
         "timeout=${timeout:-120} pause=$((${timeout:-120} / 4))\n"
         "[ $pause -le 30 ] || pause=30\n"
         // Slurm 24.11 removes the heartbeat file for a moment at each write.
         "beat() {\n"
         "  for try in 1 2 3; do\n"
         "    now=$(od -An -v -tx1 " +
         state +
         "/heartbeat 2>/dev/null | tr -d ' \\n')\n"
         "    [ -z \"$now\" ] || break\n"
         "    sleep 0.2\n"
         "  done\n"
         "}\n"
         "is_backups() { [ -n \"$now\" ] && [ \"${now#????????????????}\" != 0000000000000000 ]; }\n"
         "is_old() { [ -n \"$now\" ] && [ $(($(date +%s) - 0x${now%????????????????})) -gt $timeout ]; }\n"
         "beat\n"
         "if ! is_backups && is_old; then\n"
         "  sleep $((2 * pause + 1)) & wait $!\n"
         "  beat\n"
         "fi\n"
         "while is_backups; do\n"
         "  last=$now\n"
         "  sleep $((3 * pause + 1)) & wait $!\n"
         "  beat\n"
         "  [ \"$now\" != \"$last\" ] || break\n"
         "done\n";
}

core::Json mount(std::string_view volume, std::string path, bool read_only = false) {
  core::Json out{{"name", volume}, {"mountPath", std::move(path)}};
  if (read_only) out["readOnly"] = true;
  return out;
}

core::Json memory_volume(const char* name) {
  return {{"name", name}, {"emptyDir", {{"medium", "Memory"}}}};
}

core::Json ids(int id, bool group_of_files) {
  core::Json out{{"runAsNonRoot", true}, {"runAsUser", id}, {"runAsGroup", id}};
  if (group_of_files) out["fsGroup"] = id;
  return out;
}

/// True if a projected volume in slurmctld's pod template has the volume source `source`.
bool has_source(const Observed& observed, const core::Json& source) {
  if (!observed.stateful_set) return false;
  const core::Json* volumes = core::find(observed.stateful_set->body, {"spec", "template", "spec", "volumes"});
  if (volumes == nullptr || !volumes->is_array()) return false;
  return std::ranges::any_of(*volumes, [&](const core::Json& volume) {
    const core::Json* sources = core::find(volume, {"projected", "sources"});
    if (sources == nullptr || !sources->is_array()) return false;
    return std::ranges::any_of(*sources, [&](const core::Json& there) { return core::contains(there, source); });
  });
}

/// True if the pod mounts our topology.yaml. If the file is offered, the pod always mounts it. If spec.topology exists but the
/// file is not offered, a new StatefulSet mounts the file, and an existing StatefulSet does not change. So slurmctld is not
/// restarted only for the mount.
bool mounts_topology(const Observed& observed, const ConfigState& state, const core::Json& source) {
  if (state.offered.contains(std::string(kTopologyYaml))) return true;
  if (!observed.controller.spec.topology) return false;
  return !observed.stateful_set || has_source(observed, source);
}

core::Json item(std::string_view key, std::string_view path) {
  return core::Json::array({{{"key", key}, {"path", path}}});
}

/// Returns the names of the ConfigMaps to which the user's spec refers, without duplicates.
std::set<std::string> names_of_etc(const api::ControllerSpec& spec) {
  std::set<std::string> names;
  for (const auto* refs : {&spec.config_file_refs, &spec.prolog_script_refs, &spec.epilog_script_refs,
                           &spec.prolog_slurmctld_script_refs, &spec.epilog_slurmctld_script_refs}) {
    for (const api::LocalObjectReference& ref : *refs) names.insert(ref.name);
  }
  return names;
}

/// Returns the volume sources of /etc/slurm. The user's files come first. If two ConfigMaps have the same file, the ConfigMap
/// with the later name wins. slurm.conf follows the user's files, so that no user's file can replace it.
core::Json etc_sources(const Observed& observed, const ConfigState& state) {
  const api::ControllerSpec& spec = observed.controller.spec;
  core::Json sources = core::Json::array();
  if (mounts_copies(observed, state)) {
    sources.push_back(project_config_map(config_files_name(observed.object->meta.name)));
  } else if (!knows_files(state)) {
    for (const std::string& name : names_of_etc(spec)) sources.push_back(project_config_map(name));
    if (spec.jwks_key_ref)
      sources.push_back(project_config_map(spec.jwks_key_ref->name, item(spec.jwks_key_ref->key, "jwks.json")));
  }
  const std::string ours = config_map_name(observed.object->meta.name);
  sources.push_back(project_config_map(ours, item(kCgroupConf, kCgroupConf), true));
  core::Json topology = topology_source(observed);
  if (mounts_topology(observed, state, topology)) sources.push_back(std::move(topology));
  sources.push_back(project_config_map(ours, item(kSlurmConf, kSlurmConf)));
  sources.push_back(project_secret(observed.keyring.ref.secret, observed.keyring.ref.key, api::kKeySlurm));
  sources.push_back(project_rotation(observed.keyring.ref.secret));
  sources.push_back(project_secret(observed.jwt_key.ref.secret, observed.jwt_key.ref.key, api::kKeyJwt));
  return sources;
}

/// The slurmctld that a pod runs.
enum class Role { kPrimary, kBackup };

core::Json volumes(const Observed& observed, const ConfigState& state, Role role) {
  const api::ControllerPersistence& persistence = observed.controller.spec.persistence;
  core::Json out = core::Json::array({
      {{"name", kEtcVolume}, {"projected", {{"defaultMode", 0610}, {"sources", etc_sources(observed, state)}}}},
      memory_volume(kRunVolume),
      {{"name", kSocketVolume}, {"emptyDir", core::Json::object()}},
      memory_volume(kLogVolume),
  });
  // This volume has slurmdbd's release, which can change while the pod runs.
  if (const std::string map = release_map(observed.object->meta.ns, joins(observed, state));
      !map.empty() && role == Role::kPrimary) {
    const std::string release(kReleaseFile);
    out.push_back(
        {{"name", kSlurmdbdVolume}, {"configMap", {{"name", map}, {"optional", true}, {"items", item(release, release)}}}});
  }
  if (!persistence.enabled) {
    out.push_back({{"name", kStateVolume}, {"emptyDir", core::Json::object()}});
  } else if (!persistence.existing_claim.empty()) {
    out.push_back({{"name", kStateVolume}, {"persistentVolumeClaim", {{"claimName", persistence.existing_claim}}}});
  }
  return out;
}

core::Json slurmctld_container(const Observed& observed) {
  const api::ControllerSpec& spec = observed.controller.spec;
  core::Json out{
      {"name", kAppController},
      {"image", kDefaultSlurmctldImage},
      {"terminationMessagePolicy", "FallbackToLogsOnError"},
      {"ports", core::Json::array({{{"name", kAppController}, {"containerPort", api::kPortSlurmctld}, {"protocol", "TCP"}}})},
      {"securityContext", ids(kSlurmUid, false)},
      {"env", keys_env()},
      {"volumeMounts", core::Json::array({mount(kEtcVolume, "/etc/slurm", true), mount(kRunVolume, "/run"),
                                          mount(kSocketVolume, "/run/slurmctld"), mount(kLogVolume, kLogDirectory),
                                          mount(kStateVolume, state_directory(observed))})},
  };
  // Reading the state of a large cluster takes minutes. If the kubelet restarted slurmctld meanwhile, slurmctld would start
  // over.
  out["startupProbe"] = probe(kAppController, 600);
  out["livenessProbe"] = probe(kAppController, 60);
  out["readinessProbe"] = probe(kAppController, 3);
  return merge_container(std::move(out), spec.slurmctld);
}

core::Json reconfigure_container(const api::ControllerSpec& spec) {
  core::Json out{{"name", "reconfigure"},
                 {"image", slurmctld_image(spec)},
                 {"command", core::Json::array({"sh", "-c", reconfigure_script()})},
                 {"restartPolicy", "Always"},
                 {"volumeMounts",
                  core::Json::array({mount(kEtcVolume, "/etc/slurm", true), mount(kSocketVolume, "/run/slurmctld", true)})}};
  return merge_container(std::move(out), spec.reconfigure);
}

core::Json init_containers(const Observed& observed, const ConfigState& state, Role role) {
  const api::ControllerSpec& spec = observed.controller.spec;
  const std::string directory = state_directory(observed);
  core::Json out = core::Json::array();
  if (spec.inplace_reconfigure && role == Role::kPrimary) out.push_back(reconfigure_container(spec));
  if (!spec.logfile.empty()) {
    core::Json sidecar{
        {"name", "logfile"},
        {"image", slurmctld_image(spec)},
        {"command", core::Json::array({"sh", "-c", kLogfileScript})},
        {"env", core::Json::array({{{"name", "SOCKET"}, {"value", std::string(kLogDirectory) + "/slurmctld.log"}}})},
        {"restartPolicy", "Always"},
        {"volumeMounts", core::Json::array({mount(kLogVolume, kLogDirectory)})}};
    out.push_back(merge_container(std::move(sidecar), spec.logfile));
  }
  if (role == Role::kPrimary && backups(observed) > 0) {
    out.push_back(
        {{"name", kWaitBackup},
         {"image", slurmctld_image(spec)},
         {"command", core::Json::array({"sh", "-c", wait_backup_script(directory)})},
         {"volumeMounts", core::Json::array({mount(kEtcVolume, "/etc/slurm", true), mount(kStateVolume, directory, true)})}});
  }
  const std::string slurmdbd = joins(observed, state);
  // In the primary's pod, this init container runs after the last backup has ended.
  if (const std::vector<std::string> numbers = noted_numbers(state); !slurmdbd.empty() && !numbers.empty()) {
    core::Json command = core::Json::array({"bash", "-c", wait_number_script(), "bash", directory});
    for (const std::string& word : numbers) command.push_back(word);
    out.push_back({{"name", kClusterNumber},
                   {"image", slurmctld_image(spec)},
                   {"command", std::move(command)},
                   {"volumeMounts", core::Json::array({mount(kStateVolume, directory)})}});
  }
  if (role == Role::kPrimary && !slurmdbd.empty()) {
    core::Json mounts = core::Json::array({mount(kStateVolume, directory), mount(kRunVolume, "/run")});
    std::string release;
    if (!release_map(observed.object->meta.ns, slurmdbd).empty()) {
      mounts.push_back(mount(kSlurmdbdVolume, kSlurmdbdDirectory, true));
      release = std::string(kSlurmdbdDirectory) + "/" + std::string(kReleaseFile);
    }
    out.push_back({{"name", kJoin},
                   {"image", slurmctld_image(spec)},
                   {"command", core::Json::array({"bash", "-c", join_script(), "bash", directory, slurmdbd, release,
                                                  "/run/slurm-operator.told", "/dev/termination-log"})},
                   {"volumeMounts", std::move(mounts)}});
  }
  const std::optional<KeyRotation>& rotation = observed.keyring.rotation;
  if (role == Role::kBackup && rotation) {
    out.push_back({{"name", "wait-keys"},
                   {"image", slurmctld_image(spec)},
                   {"command", wait_for_keys(rotation->generation())},
                   {"volumeMounts", core::Json::array({mount(kEtcVolume, "/etc/slurm", true)})}});
  }
  return out;
}

std::string observed_annotation(const Observed& observed, std::string_view name) {
  if (!observed.stateful_set) return "";
  return core::get_string(observed.stateful_set->body, {"spec", "template", "metadata", "annotations", name});
}

/// Lets clients in slurmctld's own pod reach slurmctld without its Service. Through the Service, such a client would seem to
/// have the address of its machine, and slurmctld would call a waiting srun back at that address.
void name_itself(core::Json& pod, const std::string& own) {
  constexpr const char* kItself = "127.0.0.1";
  core::Json& aliases = pod["hostAliases"];
  const auto users =
      std::ranges::find_if(aliases, [](const core::Json& item) { return core::get_string(item, {"ip"}) == kItself; });
  core::Json& alias = users != aliases.end() ? *users : aliases.emplace_back(core::Json{{"ip", kItself}});
  alias["hostnames"].push_back(own);
}

/// Returns an affinity that puts slurmctlds on different machines, because two slurmctlds on one machine would be lost
/// together.
core::Json apart(const kube::ObjectMeta& meta) {
  const core::Json term{{"topologyKey", "kubernetes.io/hostname"},
                        {"labelSelector", {{"matchLabels", slurmctld_selector(meta.name)}}}};
  return {{"podAntiAffinity",
           {{"preferredDuringSchedulingIgnoredDuringExecution",
             core::Json::array({{{"weight", 100}, {"podAffinityTerm", term}}})}}}};
}

core::Json pod_template(const Observed& observed, const ConfigState& state, const std::string& slurm_key_digest, Role role) {
  const api::ControllerSpec& spec = observed.controller.spec;
  core::Json pod{
      {"automountServiceAccountToken", false},
      // If service links were enabled, the daemon could take environment variables with the names of Services for its settings.
      {"enableServiceLinks", false},
      {"terminationGracePeriodSeconds", 60},
      // slurmctld resolves the host names of workers and of the host of each srun. slurmctld is blocked while DNS does not know
      // a name.
      {"dnsConfig",
       {{"searches",
         core::Json::array({workers_domain(observed.object->meta.ns, observed.object->meta.name, observed.cluster_domain)})}}},
      {"securityContext", ids(kSlurmUid, true)},
      {"containers", core::Json::array({slurmctld_container(observed)})},
      {"volumes", volumes(observed, state, role)},
  };
  if (backups(observed) > 0) pod["affinity"] = apart(observed.object->meta);
  core::Json init = init_containers(observed, state, role);
  if (!init.empty()) pod["initContainers"] = std::move(init);
  if (spec.sssd_conf_ref) add_sssd_sidecar(pod, *spec.sssd_conf_ref, slurmctld_image(spec), spec.pod_template);
  // A change of these annotations replaces the pod, so they must contain only values whose change needs a restart.
  kube::StringMap annotations{
      {std::string(api::kAnnotationDefaultContainer), std::string(kAppController)},
      {std::string(api::kAnnotationSlurmKeyHash), slurm_key_digest},
      {std::string(api::kAnnotationJwtKeyHash), observed.jwt_key.digest},
  };
  if (spec.sssd_conf_ref) {
    annotations.emplace(api::kAnnotationSssdConfHash, observed.sssd_conf.usable()
                                                          ? salted_digest(observed.object->meta, observed.sssd_conf.content)
                                                          : made_with_sssd_conf(observed));
  }
  if (const std::string_view text = slurm_conf(state.offered); !text.empty())
    annotations[std::string(api::kAnnotationRestartHash)] = restart_digest(text);
  if (role == Role::kBackup) {
    annotations[std::string(api::kAnnotationSlurmConfigHash)] = state.offered_hash;
    if (const std::string scripts = scripts_digest(observed); !scripts.empty())
      annotations[std::string(api::kAnnotationScriptsHash)] = scripts;
    if (observed.keyring.rotation)
      annotations[std::string(api::kAnnotationKeyGeneration)] = observed.keyring.rotation->generation();
    const std::string& name = observed.object->meta.name;
    core::Json out =
        merge_pod_template(std::move(pod), spec.pod_template, observed.object->meta, backup_labels(name), annotations);
    mark_reader(out, kAppController);
    return out;
  }
  const std::string restarted_for =
      restart_crashed(observed, state) ? state.offered_hash : observed_annotation(observed, api::kAnnotationRestartedFor);
  if (!restarted_for.empty()) annotations[std::string(api::kAnnotationRestartedFor)] = restarted_for;
  const kube::ObjectMeta& meta = observed.object->meta;
  core::Json out = merge_pod_template(std::move(pod), spec.pod_template, meta, controller_labels(meta.name), annotations);
  mark_reader(out, kAppController);
  const std::string own = backups(observed) > 0 ? slurmctld_address(addressed_pods(observed).front(), meta.ns)
                                                : controller_object_name(meta.name) + "." + meta.ns;
  name_itself(out["spec"], own);
  return out;
}

core::Json claim_template(const Observed& observed) {
  core::Json spec = observed.controller.spec.persistence.claim;
  if (!spec.contains("accessModes")) spec["accessModes"] = core::Json::array({"ReadWriteOnce"});
  if (core::find(spec, {"resources", "requests", "storage"}) == nullptr) spec["resources"]["requests"]["storage"] = "4Gi";
  return {{"apiVersion", "v1"},
          {"kind", "PersistentVolumeClaim"},
          {"metadata", {{"name", kStateVolume}}},
          {"spec", std::move(spec)}};
}

bool makes_claim(const api::ControllerPersistence& persistence) {
  return persistence.enabled && persistence.existing_claim.empty();
}

}  // namespace

bool mounts_copies(const Observed& observed, const ConfigState& state) {
  if (knows_files(state)) return has_file_copies(state);
  return has_source(observed, project_config_map(config_files_name(observed.object->meta.name)));
}

std::string state_directory(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  return kStateRoot + api::cluster_name(observed.controller.spec, meta.ns, meta.name);
}

std::string made_with_sssd_conf(const Observed& observed) {
  return observed_annotation(observed, api::kAnnotationSssdConfHash);
}

core::Json topology_source(const Observed& observed) {
  return project_config_map(config_map_name(observed.object->meta.name), item(kTopologyYaml, kTopologyYaml), true);
}

std::string slurmctld_image(const api::ControllerSpec& spec) {
  return container_image(spec.pod_template, kAppController, spec.slurmctld, kDefaultSlurmctldImage);
}

core::Json build_stateful_set(const Observed& observed, const ConfigState& state, const std::string& slurm_key_digest) {
  const kube::ObjectMeta& meta = observed.object->meta;
  const std::string name = controller_object_name(meta.name);
  core::Json out =
      owned_child(kube::resources::kStatefulSet, {meta.ns, name}, resources::kController, meta, controller_labels(meta.name));
  core::Json spec{
      {"replicas", 1},
      {"podManagementPolicy", "Parallel"},
      {"revisionHistoryLimit", 0},
      {"serviceName", name},
      {"selector", {{"matchLabels", selector_labels(kAppController, meta.name)}}},
      {"template", pod_template(observed, state, made_with_key(observed, slurm_key_digest), Role::kPrimary)},
  };
  if (makes_claim(observed.controller.spec.persistence))
    spec["volumeClaimTemplates"] = core::Json::array({claim_template(observed)});
  keep_fixed_fields(spec, observed.stateful_set.get());
  out["spec"] = std::move(spec);
  return out;
}

core::Json build_backup_set(const Observed& observed, const ConfigState& state, const std::string& slurm_key_digest) {
  const kube::ObjectMeta& meta = observed.object->meta;
  core::Json out = owned_child(kube::resources::kStatefulSet, {meta.ns, backup_object_name(meta.name)}, resources::kController,
                               meta, backup_labels(meta.name));
  out["spec"] = {{"replicas", backups(observed)},
                 {"podManagementPolicy", "Parallel"},
                 {"revisionHistoryLimit", 0},
                 {"serviceName", backup_object_name(meta.name)},
                 {"selector", {{"matchLabels", selector_labels(kAppBackup, meta.name)}}},
                 {"template", pod_template(observed, state, slurm_key_digest, Role::kBackup)}};
  return out;
}

/// True if the claim is as wanted although the StatefulSet's template is not: users can resize a claim if its StorageClass
/// allows that.
bool claim_follows(const Observed& observed, core::Json wanted) {
  if (!observed.claim) return false;
  // If the spec names no volume, the volume to which the claim is bound is accepted.
  if (core::get_string(wanted, {"volumeName"}).empty()) wanted.erase("volumeName");
  return core::contains(observed.claim->body, {{"spec", std::move(wanted)}});
}

std::vector<Problem> immutable_problems(const Observed& observed) {
  if (!observed.stateful_set) return {};
  const core::Json* claims = core::find(observed.stateful_set->body, {"spec", "volumeClaimTemplates"});
  const bool has = claims != nullptr && claims->is_array() && !claims->empty();
  if (has != makes_claim(observed.controller.spec.persistence)) {
    return {{"PersistenceFixed", "spec.persistence: whether the state has its own claim cannot be changed while StatefulSet " +
                                     observed.stateful_set->meta.name + " exists"}};
  }
  const core::Json wanted = claim_template(observed)["spec"];
  if (has && !core::contains((*claims)[0], {{"spec", wanted}}) && !claim_follows(observed, wanted)) {
    // Only the size of an existing claim can be changed.
    core::Json rest = wanted;
    rest.erase("resources");
    const std::string claim = "PersistentVolumeClaim statesave-" + observed.stateful_set->meta.name + "-0";
    return {
        {"PersistenceFixed",
         "spec.persistence: " +
             (core::contains((*claims)[0], {{"spec", rest}})
                  ? "the size of " + claim +
                        " cannot be changed here: if its StorageClass allows expansion, set "
                        "spec.resources.requests.storage of the claim itself"
                  : claim + " exists, and only its size can be changed: set the other fields back to their previous values")}};
  }
  return {};
}

}  // namespace op::controller
