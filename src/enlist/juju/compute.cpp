#include "enlist/juju/compute.hpp"

#include <algorithm>

#include "core/hash.hpp"
#include "enlist/rules/node_conf.hpp"

namespace enlist::juju {
namespace {

using core::ErrorCode;

std::string text_at(const core::Json& json, std::initializer_list<std::string_view> path) {
  return core::get_string(json, path);
}

/// Returns how slurmd has to run. Error: why it cannot run like that.
core::Result<Launch> launch_wanted(const ComputeSeen& seen, const std::vector<std::string>& controllers) {
  const auto given = merged_conf(*seen.detected, seen.node_conf);
  if (!given) return std::unexpected(given.error().with("node-config"));
  auto words = merged_conf(*given, "Features=" + seen.event.app);
  if (!words) return std::unexpected(words.error());
  return Launch{node_of(seen.event.unit), *std::move(words), controllers, instance_of(seen.event)};
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

/// Decides what is done about slurmd. Returns what keeps it from running.
std::optional<Status> plan_slurmd(const ComputeSeen& seen, ComputePlan& plan) {
  if (!seen.detected)
    return blocked("slurmd is not ready to run: " + seen.detected.error().message + ". Install Slurm's slurmd on this machine");
  if (seen.relation.empty()) return blocked("integrate the application with slurmctld");
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

  if (*seen.local_key != key) {
    // The key of another cluster may be in use by its daemons.
    if (!seen.local_key->file.empty() && seen.memory.key.file != key.file)
      return blocked(key.file + " has another key, which this charm has not written: move it away if nothing needs it");
    plan.write_key = true;
  }
  std::optional<Launch> runs;
  if (seen.slurmd->running) runs = launch_of(*seen.slurmd->arguments);
  if (runs != *want) {
    plan.start = *want;
  } else {
    plan.reload = seen.memory.loaded_key != key.digest;
  }
  return {};
}

}  // namespace

core::Json to_json(const ComputeMemory& memory) {
  return {{"key", {{"file", memory.key.file}, {"digest", memory.key.digest}}},
          {"loadedKey", memory.loaded_key},
          {"detected", memory.detected},
          {"leaving", memory.leaving}};
}

core::Result<ComputeMemory> compute_memory_from(const core::Json& json) {
  if (!json.is_object()) return core::fail(ErrorCode::kInvalid, "is no object");
  return ComputeMemory{{text_at(json, {"key", "file"}), "", text_at(json, {"key", "digest"})},
                       text_at(json, {"loadedKey"}),
                       text_at(json, {"detected"}),
                       json.value("leaving", false)};
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
  if (!record) return waiting("slurmd runs; Slurm does not tell about " + node + ": " + record.error().message);
  if (!*record || (*record)->instance != instance_of(event)) {
    if (!waited) return waiting("slurmd runs; Slurm does not show " + node + " yet");
    return blocked(*record ? "Slurm shows another slurmd under the name " + node
                           : "Slurm has not taken " + node +
                                 " and does not tell why: see the logs of slurmctld and slurmd (MaxNodeCount, the auth key)");
  }
  const Registered& seen = **record;
  if (seen.invalid) return blocked("Slurm has marked the registration of " + node + " as invalid: " + seen.reason);
  if (std::ranges::find(seen.partitions, event.app) == seen.partitions.end())
    return waiting("Slurm has " + node + " outside of the partition " + event.app);
  return active(node + " is " + seen.state + (seen.reason.empty() ? "" : ": " + seen.reason));
}

}  // namespace enlist::juju
