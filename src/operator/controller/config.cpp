#include "operator/controller/config.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "core/hash.hpp"
#include "core/hostlist.hpp"
#include "operator/common/partition.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/accounting.hpp"
#include "operator/controller/backups.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/metrics.hpp"
#include "operator/controller/named_nodes.hpp"
#include "operator/controller/rollout.hpp"
#include "operator/controller/topology.hpp"
#include "slinky/config_map.hpp"
#include "slinky/worker_names.hpp"
#include "slurm/conf/conf.hpp"
#include "slurm/conf/loaded.hpp"

namespace op::controller {
namespace {

namespace conf = slurm::conf;

constexpr std::string_view kEtc = "/etc/slurm/";
/// Files that only the operator writes. Files with these names in a user's ConfigMap are ignored.
constexpr std::string_view kReserved[] = {"slurm.conf", "slurmdbd.conf", "slurm.key", "jwt.key"};
bool is_reserved(std::string_view file) {
  return std::ranges::find(kReserved, file) != std::end(kReserved);
}

/// The largest total size of the files: the limit of a ConfigMap (MaxSecretSize in Kubernetes). File names do not count.
constexpr std::size_t kMostFiles = std::size_t{1024} * 1024;

/// The default SlurmctldTimeout, in seconds. A backup would take over if slurmctld took longer to read its state again in a
/// reconfigure. Then users must set a longer timeout.
constexpr int kSlurmctldTimeout = 6;

/// The default cgroup.conf, as in the Go operator. A user's file replaces it. IgnoreSystemd is set because a pod has no
/// systemd.
constexpr std::string_view kDefaultCgroupConf = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n";

void check_presence(const std::vector<NamedFiles>& maps, std::string_view field, std::string_view ns,
                    std::vector<Problem>& problems) {
  for (const NamedFiles& map : maps) {
    const std::string name = "ConfigMap " + std::string(ns) + "/" + map.name;
    if (map.presence == kube::Presence::kAbsent) {
      problems.push_back({"ConfigMapMissing", name + " does not exist (spec." + std::string(field) + ")"});
    } else if (map.presence == kube::Presence::kUnknown) {
      problems.push_back({"Waiting", name + " is being read", Problem::Kind::kComing});
    }
  }
}

/// Returns the ConfigMaps to which the user's spec refers, by name. They have no duplicates and are in the order of their
/// projection into /etc/slurm.
std::map<std::string_view, const NamedFiles*> maps_of_etc(const Observed& observed) {
  std::map<std::string_view, const NamedFiles*> out;
  for (const auto* maps :
       {&observed.config_files, &observed.prolog, &observed.epilog, &observed.prolog_slurmctld, &observed.epilog_slurmctld}) {
    for (const NamedFiles& map : *maps) out.emplace(map.name, &map);
  }
  return out;
}

void check_hidden(const Observed& observed, std::vector<Problem>& warnings) {
  struct Seen {
    std::string_view map, text;
  };
  std::map<std::string_view, Seen> seen;
  const auto check = [&](const std::string& map, const std::string& file, const std::string& text) {
    if (is_reserved(file)) {
      warnings.push_back({"FileReserved", "ConfigMap " + map + ": its file " + file +
                                              " is ignored, because the operator writes that file itself"});
      return;
    }
    const auto [other, first] = seen.try_emplace(file, Seen{map, text});
    if (!first && other->second.text != text) {
      warnings.push_back({"FileHidden", "ConfigMaps " + std::string(other->second.map) + " and " + map + " both have a file " +
                                            file + ": in /etc/slurm the one of " + map +
                                            " hides the other, so rename one of them"});
    }
    other->second = {map, text};
  };
  for (const auto& [name, map] : maps_of_etc(observed)) {
    for (const auto* files : {&map->files, &map->binary}) {
      for (const auto& [file, text] : *files) check(map->name, file, text);
    }
  }
}

/// Adds the users' files for slurmctld: see kUsers. If several ConfigMaps have a file of one name, the last ConfigMap wins.
void add_files(const Observed& observed, Rendered& out) {
  struct Source {
    std::string_view map;
    std::size_t size;
  };
  std::map<std::string_view, Source> sources;  // The key is the file's name.
  const std::string text_prefix(kUsers), binary_prefix = text_prefix + text_prefix;
  const auto add = [&](std::string_view map, std::string_view file, const std::string& content, bool binary) {
    if (is_reserved(file)) return;
    const std::string name(file);
    out.files.erase((binary ? text_prefix : binary_prefix) + name);
    out.files[(binary ? binary_prefix : text_prefix) + name] = content;
    sources.insert_or_assign(file, Source{map, binary ? content.size() / 4 * 3 : content.size()});
  };
  for (const auto& [name, map] : maps_of_etc(observed)) {
    for (const auto& [file, text] : map->files) add(name, file, text, false);
    for (const auto& [file, base64] : map->binary) add(name, file, base64, true);
  }
  if (observed.jwks)
    add(observed.jwks->name, "jwks.json", observed.jwks->files.at(observed.controller.spec.jwks_key_ref->key), false);
  out.files.emplace(kUsers, "");

  std::size_t size = 0;
  for (const auto& [file, source] : sources) size += source.size;
  if (size <= kMostFiles) return;
  const auto largest = std::ranges::max_element(sources, {}, [](const auto& item) { return item.second.size; });
  out.problems.push_back(
      {"FilesTooLarge", fmt::format("the files and scripts that the spec names have {} KiB together, and the operator keeps "
                                    "copies of {} KiB at most: the largest one is {} of ConfigMap {}/{}, with {} KiB",
                                    (size + 1023) / 1024, kMostFiles / 1024, largest->first, observed.object->meta.ns,
                                    largest->second.map, (largest->second.size + 1023) / 1024)});
}

std::vector<std::string> script_names(const std::vector<NamedFiles>& maps) {
  std::set<std::string> names;
  for (const NamedFiles& map : maps) {
    for (const auto& [name, text] : map.files) names.insert(name);
    for (const auto& [name, text] : map.binary) names.insert(name);
  }
  return {names.begin(), names.end()};
}

void set_cluster(conf::Conf& out, const Observed& observed, const std::string& host, int port) {
  const kube::ObjectMeta& meta = observed.object->meta;
  out.set("ClusterName", api::cluster_name(observed.controller.spec, meta.ns, meta.name));
  out.set("SlurmUser", "slurm");
  out.set("SlurmctldHost", host);
  out.set("SlurmctldPort", std::to_string(port));
}

/// Sets one SlurmctldHost for each slurmctld, with its own address. A standby connects to the primary at the primary's address.
void add_hosts(conf::Conf& out, const std::vector<std::string>& pods, const std::string& ns) {
  for (const std::string& pod : pods) {
    const std::string host = pod + "(" + slurmctld_address(pod, ns) + ")";
    if (pod == pods.front()) {
      out.set("SlurmctldHost", host);
    } else {
      out.add("SlurmctldHost", host);
    }
  }
  // SlurmctldTimeout is the time for which a backup waits for the primary's answer. The backup also checks the primary's
  // heartbeat, which the primary writes four times per SlurmctldTimeout, with pauses in whole seconds. With a timeout below 4,
  // the primary would write without pauses.
  out.set("SlurmctldTimeout", std::to_string(kSlurmctldTimeout));
}

void set_auth(conf::Conf& out, bool jwks) {
  out.set("AuthType", "auth/slurm");
  out.set("CredType", "cred/slurm");
  out.set("AuthAltTypes", "auth/jwt");
  out.set("AuthAltParameters", std::string("jwt_key=/etc/slurm/jwt.key") + (jwks ? ",jwks=/etc/slurm/jwks.json" : ""));
  out.set("AuthInfo", "use_client_ids");
}

conf::Conf base_conf(const Observed& observed) {
  conf::Conf out;
  const kube::ObjectMeta& meta = observed.object->meta;
  const api::ControllerSpec& spec = observed.controller.spec;
  const std::string object = controller_object_name(meta.name);
  set_cluster(out, observed, object + "-0(" + object + "." + meta.ns + ")", api::kPortSlurmctld);
  if (backups(observed) > 0) add_hosts(out, addressed_pods(observed), meta.ns);
  out.set("StateSaveLocation", state_directory(observed));
  out.set("SlurmdUser", "root");
  out.set("SlurmdPort", std::to_string(api::kPortSlurmd));
  out.set("SlurmdSpoolDir", "/var/spool/slurmd");
  // With 1, a node that is DOWN because it did not respond returns by itself, and a node that is DOWN for another reason stays
  // DOWN. With 2, a node that an administrator has set DOWN would return at its next registration, and each reconfigure makes
  // all slurmds register. If Slurm has set a node DOWN for another reason, the operator itself resumes the node.
  out.set("ReturnToService", "1");
  // Dynamic nodes need free entries in the node table. This is the largest size without special cases in Slurm.
  out.set("MaxNodeCount", "65533");
  // With --systemd, the daemons log to standard error, which is the container's log. Only a sidecar needs a log file.
  if (!spec.logfile.empty()) {
    out.set("SlurmctldLogFile", "/var/log/slurm/slurmctld.log");
    out.set("SlurmSchedLogFile", "/var/log/slurm/slurmctld.log");
  }
  set_auth(out, spec.jwks_key_ref.has_value());
  out.set("SlurmctldParameters", "enable_configless,reconfig_on_restart");
  out.set("AccountingStorageType", "accounting_storage/none");
  return out;
}

void add_scripts(conf::Conf& out, const Observed& observed) {
  const auto add = [&](std::string_view key, std::string_view directory, const std::vector<NamedFiles>& maps) {
    for (const std::string& name : script_names(maps)) out.add(key, std::string(directory) + name);
  };
  add("PrologSlurmctld", kEtc, observed.prolog_slurmctld);
  add("EpilogSlurmctld", kEtc, observed.epilog_slurmctld);
  // slurmd gets these scripts together with its slurm.conf and stores them next to it, so their names have no path.
  add("Prolog", "", observed.prolog);
  add("Epilog", "", observed.epilog);
}

/// Returns which object in Slurm already has the NodeSet's name: "a node", or "a worker of NodeSet ...". slurmctld does not
/// start with a slurm.conf in which a NodeSet has the name of a node. nullopt: the name is free. "": not known yet.
std::optional<std::string> find_namesake(const Observed& observed, const ConfigState& state, const std::string& name) {
  const auto maker = std::ranges::find_if(
      observed.nodesets, [&](const NodeSetFacts& nodeset) { return ordinal_of(name, nodeset.host_prefix).has_value(); });
  const bool workers_name = maker != observed.nodesets.end();
  std::string whose = workers_name ? "a worker of NodeSet " + maker->object : "a node";
  // While Slurm does not answer, its last answer counts. Otherwise the file would change, and be offered again, whenever Slurm
  // stops answering.
  if (slurm::has_answered(observed.snapshot) && observed.snapshot->node(name) != nullptr) return whose;
  // While Slurm has not answered, it might have a node of this name. If a loaded configuration is known, this might be any
  // node. Otherwise, it can only be a record of a worker.
  const bool unknown = !slurm::has_answered(observed.snapshot) && state.exists() && !observed.restapis.empty() &&
                       (workers_name || !state.accepted_hash.empty());
  if (!unknown && !observed.worker_nodes.contains(name)) return {};
  // If slurm.conf already has a NodeSet of this name, the line stays: Slurm then accepts no worker of this name.
  if (conf::parse(conf::Kind::kSlurm, slurm_conf(state.offered)).conf.record("NodeSet", name) != nullptr) return {};
  return unknown && !workers_name ? std::string() : whose;
}

void add_nodesets(conf::Conf& out, const Observed& observed, const ConfigState& state, Rendered& rendered) {
  std::map<std::string, std::string> seen;
  for (const NodeSetFacts& nodeset : observed.nodesets) {
    const std::string& name = nodeset.slurm_name;
    if (const auto [first, added] = seen.emplace(name, nodeset.object); !added) {
      rendered.warnings.push_back({std::string(kNodeSetNameTaken), "NodeSet " + nodeset.object + ": NodeSet " + first->second +
                                                                       " already uses the name " + name + " in Slurm"});
      continue;
    }
    if (const auto whose = find_namesake(observed, state, name)) {
      if (whose->empty()) continue;
      rendered.warnings.push_back(
          {std::string(kNodeSetNameTaken), "NodeSet " + nodeset.object + ": " + *whose + " has the name " + name +
                                               " in Slurm, so there cannot be a NodeSet or partition with that name"});
      continue;
    }
    out.add_record("NodeSet", name, "Feature=" + name);
    if (!nodeset.partition) continue;
    rendered.partitions[name] = nodeset.partition_config;
    // If Slurm would reject a partition, the previous line of the partition stays. Without the line, slurmctld would end the
    // partition's jobs. The rest of slurm.conf must still be updated.
    const core::Result<conf::Entry> line = nodeset.partition_error.empty()
                                               ? partition_line(name, nodeset.partition_config)
                                               : core::fail(core::ErrorCode::kInvalid, nodeset.partition_error);
    const bool left_out = state.leaves_out(name, nodeset.partition_config);
    if (line && !left_out) {
      // The partition of a NodeSet that is being deleted is drained, because newly submitted jobs would never start there.
      out.add(nodeset.ending ? drained(*line) : *line);
    } else {
      const auto files = left_out || !state.accepted_hash.empty() ? state.accepted_files() : state.offered;
      const conf::Conf before = conf::parse(conf::Kind::kSlurm, slurm_conf(files)).conf;
      if (const conf::Entry* entry = before.record("PartitionName", name)) {
        out.add(*entry);
      } else if (left_out && (state.accepted_hash.empty() ? has_run(observed, state)
                                                          : observed.workers_registered && slurmctld_crashes(observed))) {
        // The settings with which slurmctld runs are unknown, but slurmctld might have jobs in this partition. A partition line
        // without settings lets all of these jobs stay.
        out.add_record("PartitionName", name, "Nodes=" + name);
      }
    }
    std::string wrong = line ? "" : line.error().message;
    // The partition is the cause only if it was refused alone. Until then, the operator is still determining the cause.
    const LeftOut* known = state.known_against(name, nodeset.partition_config);
    if (line && known != nullptr && !known->refusal.empty()) {
      wrong = "slurmctld refuses it, and keeps the previous configuration: " + known->refusal +
              partition_doubts(name, nodeset.partition_config) + log_hint(observed, known->refusal);
    }
    if (line && left_out && known != nullptr && known->refusal.empty() && observed.restapis.empty()) {
      wrong =
          "slurmctld ended repeatedly with it, or with another partition, and without a RestApi the operator cannot tell "
          "which: the partition exists without these settings until you change them";
    }
    if (!wrong.empty()) {
      rendered.warnings.push_back(
          {"PartitionInvalid",
           "NodeSet " + nodeset.object + (nodeset.partition_error.empty() ? ", spec.partition.config: " : ", ") + wrong});
    }
  }
}

/// Retains the lines of NodeSets that are gone while some of their workers remain. This happens after `kubectl delete
/// --cascade=orphan`, or if somebody removes the finalizer. The lines stay as slurmctld accepted them, because slurmctld ends
/// the jobs of a partition whose line is removed.
void keep_left_nodesets(conf::Conf& out, const Observed& observed, const ConfigState& state, Rendered& rendered) {
  if (observed.left_nodesets.empty()) return;
  const auto files = state.accepted_hash.empty() ? state.offered : state.accepted_files();
  const auto text = files.find(std::string(kSlurmConf));
  if (text == files.end()) return;
  const conf::Conf before = conf::parse(conf::Kind::kSlurm, text->second).conf;
  for (const auto& [name, object] : observed.left_nodesets) {
    if (std::ranges::find(observed.nodesets, name, &NodeSetFacts::slurm_name) != observed.nodesets.end()) continue;
    const conf::Entry* line = before.record("NodeSet", name);
    if (line == nullptr) continue;
    out.add(*line);
    if (const conf::Entry* partition = before.record("PartitionName", name)) out.add(*partition);
    rendered.warnings.push_back({"Waiting",
                                 "NodeSet " + object +
                                     " no longer exists, but some of its workers do: its lines in slurm.conf are kept until "
                                     "these workers are deleted, because of their jobs",
                                 Problem::Kind::kComing});
  }
}

/// Returns a problem if the user's slurm.conf disables HTTP in slurmctld and slurmd while pods have HTTP probes. The kubelet
/// would consider these daemons dead and kill them together with their jobs.
std::optional<conf::Problem> probes_problem(const Observed& observed, const conf::Conf& user) {
  if (observed.http_probed.empty()) return {};
  constexpr std::string_view kKey = "CommunicationParameters", kWord = "disable_http";
  const auto has_word = [&](const std::string& value) {  // like Slurm, ignore case
    return !std::ranges::search(value, kWord, {}, [](unsigned char c) { return static_cast<char>(std::tolower(c)); }).empty();
  };
  for (const conf::Entry& entry : user.entries()) {
    const conf::Setting& head = entry.head();
    if (head.key == kKey && has_word(head.value))
      return conf::Problem{head.line, head.key,
                           std::string(kWord) + ": without HTTP, the kubelets' probes would fail and end " +
                               some_of(observed.http_probed) + ". Remove this parameter until these pods have been replaced"};
  }
  return {};
}

std::string cgroup_conf(const Observed& observed) {
  for (const NamedFiles& map : observed.config_files) {
    if (map.files.contains(std::string(kCgroupConf))) return "";
  }
  return std::string(kDefaultCgroupConf);
}

/// Returns all inputs of a reconfigure except slurm.conf.
std::string other_inputs(const Observed& observed, const std::string& topology) {
  core::Json out = core::Json::object();
  for (const NamedFiles& map : observed.config_files) out["files"][map.name] = map.files;
  for (const auto* maps : {&observed.config_files, &observed.prolog, &observed.epilog}) {
    for (const NamedFiles& map : *maps) {
      if (!map.binary.empty()) out["binary"][map.name] = map.binary;
    }
  }
  // slurmctld sends these scripts to slurmds with the configuration. In contrast, slurmctld reads its own scripts only when it
  // runs them.
  for (const NamedFiles& map : observed.prolog) out["prolog"][map.name] = map.files;
  for (const NamedFiles& map : observed.epilog) out["epilog"][map.name] = map.files;
  if (observed.jwks) out["jwks"] = observed.jwks->files;
  out["cgroup"] = cgroup_conf(observed);
  if (!topology.empty()) out["topology"] = topology;
  return core::canonical(out);
}

/// Returns the value of Rendered::asked: a digest of what users ask for.
std::string asked_digest(const Observed& observed, const std::string& slurmdbd) {
  core::Json asked = core::Json::object();
  if (const core::Json* spec = core::find(observed.object->body, {"spec"})) asked["spec"] = *spec;
  for (const auto& [name, map] : maps_of_etc(observed)) {
    asked["files"][std::string(name)] = map->files;
    if (!map->binary.empty()) asked["binary"][std::string(name)] = map->binary;
  }
  if (observed.jwks) asked["jwks"] = observed.jwks->files;
  for (const NodeSetFacts& nodeset : observed.nodesets) {
    asked["nodesets"][nodeset.slurm_name] = {nodeset.partition, nodeset.partition_config, nodeset.ending};
  }
  asked["places"] = observed.places;
  if (!slurmdbd.empty()) asked["slurmdbd"] = slurmdbd;
  asked["removeNow"] = observed.object->meta.annotation(api::kAnnotationRemoveNow);
  return core::short_digest(core::canonical(asked));
}

void check_cluster_name(const Observed& observed, Rendered& out) {
  const std::string cluster = api::cluster_name(observed.controller.spec, observed.object->meta.ns, observed.object->meta.name);
  if (cluster.size() > api::kMaxClusterName) {
    out.problems.push_back({"ClusterNameTooLong", "the cluster's name " + cluster + " has more than " +
                                                      std::to_string(api::kMaxClusterName) +
                                                      " characters: delete the Controller, and create it again with a shorter "
                                                      "spec.clusterName"});
  }
}

void add_problems(const std::vector<conf::Problem>& found, Rendered& out) {
  for (const conf::Problem& problem : found) {
    auto& list = problem.fatal ? out.problems : out.warnings;
    list.push_back({problem.fatal ? "ExtraConfInvalid" : "ExtraConfSuspect", "spec.extraConf, " + problem.str()});
  }
}

}  // namespace

std::string own_map_named(const Observed& observed) {
  const std::string& own = observed.object->meta.name;
  for (std::string name : {config_map_name(own), config_files_name(own), accepted_files_name(own)}) {
    if (maps_of_etc(observed).contains(name) || (observed.jwks && observed.jwks->name == name)) return name;
  }
  return "";
}

// The command in the hint filters out two kinds of lines that are not errors. Lines with ### are a banner, which slurmctld logs
// at each start if users other than its own can write to its volume. After a rollback, each slurmd has another slurm.conf for a
// moment, which slurmctld logs as an error of each node.
std::string log_hint(const Observed& observed, std::string_view refusal) {
  if (refusal.starts_with(kEndsWithIt)) return "";
  const kube::ObjectMeta& meta = observed.object->meta;
  return " (kubectl logs -n " + meta.ns + " " + controller_object_name(meta.name) +
         "-0 -c slurmctld | grep -E 'error|fatal' | grep -Ev '###|different slurm.conf' | tail -n 10)";
}

std::string topology_hint(const Observed& observed) {
  if (!observed.snapshot || !observed.snapshot->complete()) return "";
  std::vector<std::string> unknown;
  for (const NamedFiles& map : observed.config_files) {
    const auto file = map.files.find(std::string(kTopologyYaml));
    const auto named = file == map.files.end() ? core::Result<NamedNodes>() : nodes_of_yaml(file->second);
    if (!named) continue;
    for (const std::string& list : named->lists) {
      const auto names = core::expand_hostlist(list);
      if (!names) continue;
      for (const std::string& name : *names) {
        if (observed.snapshot->node(name) == nullptr) unknown.push_back(name);
      }
    }
  }
  if (unknown.empty()) return "";
  return "; topology.yaml names nodes that Slurm does not know: " + core::compress_hostlist(std::move(unknown));
}

std::string scripts_digest(const Observed& observed) {
  core::Json out = core::Json::object();
  for (const auto* maps : {&observed.prolog_slurmctld, &observed.epilog_slurmctld}) {
    for (const NamedFiles& map : *maps) {
      out[map.name] = map.files;
      if (!map.binary.empty()) out["binary/" + map.name] = map.binary;
    }
  }
  return out.empty() ? "" : core::short_digest(core::canonical(out));
}

Rendered render_config(const Observed& observed, const ConfigState& state) {
  Rendered out;
  const api::ControllerSpec& spec = observed.controller.spec;
  const std::string& ns = observed.object->meta.ns;
  check_presence(observed.config_files, "configFileRefs", ns, out.problems);
  check_presence(observed.prolog, "prologScriptRefs", ns, out.problems);
  check_presence(observed.epilog, "epilogScriptRefs", ns, out.problems);
  check_presence(observed.prolog_slurmctld, "prologSlurmctldScriptRefs", ns, out.problems);
  check_presence(observed.epilog_slurmctld, "epilogSlurmctldScriptRefs", ns, out.problems);
  if (observed.jwks) {
    check_presence({*observed.jwks}, "jwksKeyRef", ns, out.problems);
    if (observed.jwks->presence == kube::Presence::kPresent && !observed.jwks->files.contains(spec.jwks_key_ref->key)) {
      out.problems.push_back({"ConfigMapKeyMissing", "ConfigMap " + ns + "/" + observed.jwks->name +
                                                         " has no data under the key " + spec.jwks_key_ref->key});
    }
  }
  if (const std::string own = own_map_named(observed); !own.empty()) {
    out.problems.push_back(
        {"ConfigMapReserved", "ConfigMap " + ns + "/" + own +
                                  " is written by the operator: put your files into a ConfigMap with another "
                                  "name"});
  }
  check_hidden(observed, out.warnings);
  TopologyFile topology = topology_file(observed, state);
  out.topology_may_change = topology.may_change;
  out.keeps_pod = topology.keeps_pod;
  std::ranges::move(topology.problems, std::back_inserter(out.problems));
  std::ranges::move(topology.warnings, std::back_inserter(out.warnings));

  check_cluster_name(observed, out);

  conf::Conf ours = base_conf(observed);
  add_accounting(ours, observed, state, out);
  add_metrics(ours, observed, state);
  add_scripts(ours, observed);
  add_nodesets(ours, observed, state, out);
  keep_left_nodesets(ours, observed, state, out);
  conf::Parsed user = conf::parse(conf::Kind::kSlurm, spec.extra_conf);
  out.withheld = withhold_partitions(ours, user.conf, observed, state);
  conf::Merged merged = conf::merge(ours, user.conf);
  std::ranges::move(withhold_resources(merged.conf, observed, state), std::back_inserter(out.withheld));
  withhold_tables(merged.conf, observed, state, out.warnings);
  if (auto problem = probes_problem(observed, user.conf)) merged.problems.push_back(std::move(*problem));
  std::ranges::move(accounting_settings(observed, user.conf), std::back_inserter(merged.problems));
  for (const auto* problems : {&user.problems, &merged.problems}) add_problems(*problems, out);
  if (out.ok()) add_files(observed, out);
  if (!out.ok()) {
    out.files.clear();
    return out;
  }

  std::string text = merged.conf.render();
  if (observed.accounting) out.slurmdbd = slurmdbd_of(text);
  out.asked = asked_digest(observed, out.slurmdbd);
  out.hash = core::short_digest(text + "\n" + other_inputs(observed, topology.text));
  if (!text.empty() && text.back() != '\n') text += '\n';
  out.files[std::string(kSlurmConf)] = text + conf::marker_partition(slurm::Owner::kOperator, out.hash) + "\n";
  if (std::string cgroup = cgroup_conf(observed); !cgroup.empty()) out.files[std::string(kCgroupConf)] = std::move(cgroup);
  if (!topology.text.empty()) out.files[std::string(kTopologyYaml)] = std::move(topology.text);
  // The present pod is retained, and slurmctld would not start in this pod without topology.yaml.
  if (const std::string* kept = file_copy(state, kTopologyYaml); out.keeps_pod && kept != nullptr)
    out.files.emplace(std::string(kUsers) + std::string(kTopologyYaml), *kept);
  return out;
}

Rendered render_external(const Observed& observed) {
  Rendered out;
  check_cluster_name(observed, out);
  const api::ControllerSpec& spec = observed.controller.spec;
  const Endpoint slurmctld = controller_endpoint(spec, observed.object->meta.ns, observed.object->meta.name);
  conf::Conf ours;
  set_cluster(ours, observed, slurmctld.host, slurmctld.port);
  set_auth(ours, false);
  add_accounting(ours, observed, read_config_state(observed.config_map.get()), out);
  const conf::Parsed user = conf::parse(conf::Kind::kSlurm, spec.extra_conf);
  const conf::Merged merged = conf::merge(ours, user.conf);
  const std::vector<conf::Problem> twice = accounting_settings(observed, user.conf);
  for (const auto* problems : {&user.problems, &merged.problems, &twice}) add_problems(*problems, out);
  if (!out.ok()) return out;
  const std::string text = merged.conf.render();
  out.hash = core::short_digest(text);
  out.files[std::string(kSlurmConf)] = text;
  return out;
}

}  // namespace op::controller
