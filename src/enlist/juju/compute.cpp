#include "enlist/juju/compute.hpp"

#include <algorithm>

#include "core/hash.hpp"
#include "enlist/rules/key_file.hpp"
#include "enlist/rules/node_conf.hpp"
#include "enlist/rules/text.hpp"
#include "slurm/conf/conf.hpp"

namespace enlist::juju {
namespace {

using core::ErrorCode;

std::string text_at(const core::Json& json, std::initializer_list<std::string_view> path) {
  return core::get_string(json, path);
}

constexpr std::string_view kGateWords = " State=DRAIN Reason=\"";

/// Returns the value of --conf. `own_conf`: the unit's own settings. Error: why slurmd cannot run with this value.
core::Result<std::string> conf_wanted(const ComputeSeen& seen, const std::string& own_conf) {
  const auto given = merged_conf(*seen.detected, seen.node_conf);
  if (!given) return std::unexpected(given.error().with("node-config"));
  const auto own = merged_conf(*given, own_conf);
  if (!own) return std::unexpected(own.error().with("the parameters of this unit"));
  return merged_conf(*own, "Features=" + seen.event.app);
}

/// Returns the arguments with which slurmd has to run. Error: why slurmd cannot run with them.
core::Result<Launch> launch_wanted(const ComputeSeen& seen, const std::vector<std::string>& controllers) {
  auto words = conf_wanted(seen, seen.memory.own_conf);
  if (!words) return std::unexpected(words.error());
  return Launch{node_of(seen.event.unit), *std::move(words), controllers, instance_of(seen.event)};
}

/// Returns the settings with which a new node record starts drained, for this reason; "": no reason. Slurm knows no escapes, so
/// double quotes are replaced.
std::string gate_of(std::string reason) {
  if (reason.empty()) return {};
  std::ranges::replace(reason, '"', '\'');
  return std::string(kGateWords) + reason + "\"";
}

Launch without_gate(Launch launch) {
  launch.conf.resize(std::min(launch.conf.find(kGateWords), launch.conf.size()));
  return launch;
}

std::string features_of(std::string_view conf) {
  for (const slurm::conf::Setting& setting : slurm::conf::parse_node_conf(conf).settings) {
    if (same_word(setting.key, "Features")) return setting.value;
  }
  return {};
}

/// Reports whether two values of --conf differ only in their features, or not at all.
bool same_but_features(std::string_view a, std::string_view b) {
  std::vector<slurm::conf::Setting> one = slurm::conf::parse_node_conf(a).settings,
                                    other = slurm::conf::parse_node_conf(b).settings;
  for (auto* settings : {&one, &other}) {
    std::erase_if(*settings, [](const slurm::conf::Setting& setting) { return same_word(setting.key, "Features"); });
    std::ranges::sort(*settings, {}, &slurm::conf::Setting::key);
  }
  return std::ranges::equal(one, other, [](const slurm::conf::Setting& x, const slurm::conf::Setting& y) {
    return x.key == y.key && x.value == y.value;
  });
}

core::Json key_json(const KeySeen& key) {
  return {{"file", key.file}, {"digest", key.digest}};
}

KeySeen key_from(const core::Json& json, const char* key) {
  return {text_at(json, {key, "file"}), text_at(json, {key, "digest"})};
}

/// Decides what the leader publishes.
void plan_publication(const ComputeSeen& seen, ComputePlan& plan) {
  if (!seen.leader) return;
  const core::Result<Databag> data = compute_data(seen.event.app, seen.partition_conf);
  if (!data) {
    plan.not_published = blocked("partition-config: " + data.error().message);
  } else if (!seen.relation.empty() && std::ranges::any_of(*data, [&](const auto& entry) {
               const auto found = seen.published.find(entry.first);
               return found == seen.published.end() || found->second != entry.second;
             })) {
    plan.publish = *data;
  }
}

/// Decides what is done about slurmd. Returns why slurmd cannot run; nullopt: there is no obstacle.
std::optional<Status> plan_slurmd(const ComputeSeen& seen, ComputePlan& plan) {
  if (!seen.detected)
    return blocked("slurmd is not ready to run: " + seen.detected.error().message + ". Install Slurm's slurmd on this machine");
  if (seen.relation.empty()) {
    if (seen.slurmd && seen.slurmd->running && is_ours(seen.event, *seen.slurmd))
      return blocked(
          "slurmd still runs, but Juju shows no relation to slurmctld: integrate the application again, or "
          "remove the unit");
    return blocked("integrate the application with slurmctld");
  }
  const auto data = controller_data_from(seen.theirs);
  if (!data) return blocked("slurmctld: " + data.error().message);
  if (!*data) return waiting("slurmctld has not published its key and its controllers yet");
  if (!seen.shared_key) return waiting("the key of the cluster is not read yet");
  if (!*seen.shared_key) return waiting("the key of the cluster cannot be read: " + seen.shared_key->error().message);
  const KeySeen& key = **seen.shared_key;
  if (key.file != "slurm.key" && key.file != "slurm.jwks") return blocked("slurmctld shares no key of auth/slurm");
  if (!seen.local_key) return blocked(seen.local_key.error().message);
  if (!seen.slurmd) return blocked("slurmd: " + seen.slurmd.error().message);
  if (seen.slurmd->running && !seen.slurmd->arguments)
    return blocked("slurmd runs already, and this charm has not started it: stop and disable it");
  const core::Result<Launch> want = launch_wanted(seen, (*data)->controllers);
  if (!want) return blocked(want.error().message);

  if (!seen.other_key) return blocked(seen.other_key.error().message);
  const auto ours = [&](const KeySeen& file) { return file == seen.memory.key || file == seen.memory.former; };
  // Somebody else's key may be that of another cluster, whose daemons use it.
  if (*seen.local_key != key && !seen.local_key->file.empty() && seen.memory.key.file != key.file && !ours(*seen.local_key))
    return blocked(key.file + " has another key, which this charm has not written: move it away if nothing needs it");
  if (seen.other_key->file == kJwksFile && !ours(*seen.other_key)) {
    return blocked(
        "slurm.jwks is there, which this charm has not written, and Slurm prefers it to the slurm.key of the "
        "cluster: move it away if nothing needs it");
  }
  plan.write_key = *seen.local_key != key || !seen.memory.former.file.empty() ||
                   (!seen.memory.key.file.empty() && seen.memory.key.file != key.file);
  std::optional<Launch> runs;
  if (seen.slurmd->running) runs = launch_of(*seen.slurmd->arguments);
  const bool keeps_other_file = seen.memory.loaded.file != key.file;
  if (!runs || without_gate(*runs) != *want || keeps_other_file) {
    plan.start = *want;
    plan.start->conf += gate_of(seen.memory.kept_by);
  } else {
    plan.reload = seen.memory.loaded != key;
  }
  return {};
}

}  // namespace

core::Json to_json(const ComputeMemory& memory) {
  return {{"key", key_json(memory.key)},
          {"former", key_json(memory.former)},
          {"loaded", key_json(memory.loaded)},
          {"detected", memory.detected},
          {"leaving", memory.leaving},
          {"ownConf", memory.own_conf},
          {"nextConf", memory.next_conf ? core::Json(*memory.next_conf) : core::Json()},
          {"keptBy", memory.kept_by}};
}

core::Result<ComputeMemory> compute_memory_from(const core::Json& json) {
  if (!json.is_object()) return core::fail(ErrorCode::kInvalid, "is not an object");
  ComputeMemory out{.key = key_from(json, "key"),
                    .former = key_from(json, "former"),
                    .loaded = key_from(json, "loaded"),
                    .detected = text_at(json, {"detected"}),
                    .leaving = core::find(json, {"leaving"}) != nullptr && *core::find(json, {"leaving"}) == true,
                    .own_conf = text_at(json, {"ownConf"}),
                    .next_conf = {},
                    .kept_by = text_at(json, {"keptBy"})};
  if (const core::Json* next = core::find(json, {"nextConf"}); next != nullptr && next->is_string())
    out.next_conf = next->get<std::string>();
  return out;
}

core::Result<std::string> own_conf(const ComputeSeen& seen, std::string_view words, bool reset) {
  const std::string before = reset ? "" : seen.memory.next_conf.value_or(seen.memory.own_conf);
  auto out = merged_conf(before, words);
  if (!out || !seen.detected) return out;
  if (const auto all = conf_wanted(seen, *out); !all) return all;
  return out;
}

core::Result<ConfChange> conf_change(const ComputeSeen& seen, const std::string& own_conf) {
  ConfChange out;
  if (!seen.slurmd) return std::unexpected(seen.slurmd.error());
  if (seen.relation.empty() || !is_ours(seen.event, *seen.slurmd) || !seen.detected) {
    out.stored_only = true;
    return out;
  }
  const std::string runs = without_gate(launch_of(*seen.slurmd->arguments)).conf;
  const auto want = conf_wanted(seen, own_conf);
  if (!want) return std::unexpected(want.error());
  const bool other_features = features_of(runs) != features_of(*want);
  // Without a running slurmd, scontrol does not work on this machine, so it cannot change the features of the record.
  out.anew = !same_but_features(runs, *want) || (other_features && !seen.slurmd->running);
  if (!out.anew && other_features) out.features = features_of(*want);
  return out;
}

bool is_ours(const Event& event, const SlurmdSeen& slurmd) {
  return slurmd.arguments && launch_of(*slurmd.arguments).instance == instance_of(event);
}

std::string instance_of(const Event& event) {
  return core::short_digest(event.model + " " + event.unit);
}

ComputePlan plan_compute(const ComputeSeen& seen) {
  ComputePlan out;
  plan_publication(seen, out);
  out.obstacle = plan_slurmd(seen, out);
  return out;
}

core::Result<std::optional<Registered>> registered_from(const core::Json& json) {
  const core::Json* nodes = core::find(json, {"nodes"});
  if (nodes == nullptr || !nodes->is_array()) return core::fail(ErrorCode::kInternal, "scontrol shows no list of nodes");
  if (nodes->empty()) return std::nullopt;
  const core::Json& node = nodes->front();
  Registered out{.instance = text_at(node, {"instance_id"}), .state = "", .reason = text_at(node, {"reason"})};
  const auto texts = [&node](const char* key) {
    std::vector<std::string> items;
    const core::Json* list = core::find(node, {key});
    if (list == nullptr || !list->is_array()) return items;
    for (const core::Json& item : *list) {
      if (item.is_string()) items.push_back(item.get<std::string>());
    }
    return items;
  };
  for (const std::string& flag : texts("state")) {
    if (flag == "INVALID_REG") out.invalid = true;
    if (flag != "DYNAMIC_NORM") out.state += (out.state.empty() ? "" : "+") + flag;
  }
  out.partitions = texts("partitions");
  return out;
}

Status status_of(const Event& event, const core::Result<SlurmdSeen>& slurmd,
                 const core::Result<std::optional<Registered>>& record, bool waited) {
  const std::string node = node_of(event.unit);
  if (!slurmd) return blocked("slurmd: " + slurmd.error().message);
  if (!slurmd->running) return slurmd->changing ? waiting("slurmd starts") : blocked("slurmd does not run: " + slurmd->error);
  if (!record) return waiting("slurmd runs; Slurm does not report the state of " + node + ": " + record.error().message);
  if (!*record || (*record)->instance != instance_of(event)) {
    if (!waited) return waiting("slurmd runs; Slurm does not show " + node + " yet");
    return blocked(*record ? "Slurm shows another slurmd under the name " + node
                           : "Slurm has not accepted " + node +
                                 " and gives no reason: see the logs of slurmctld and slurmd (MaxNodeCount, the auth key)");
  }
  const Registered& seen = **record;
  if (seen.invalid) return blocked("Slurm has marked the registration of " + node + " as invalid: " + seen.reason);
  if (std::ranges::find(seen.partitions, event.app) == seen.partitions.end())
    return waiting("Slurm has " + node + " outside of the partition " + event.app);
  return active(node + " is " + seen.state + (seen.reason.empty() ? "" : ": " + seen.reason));
}

}  // namespace enlist::juju
