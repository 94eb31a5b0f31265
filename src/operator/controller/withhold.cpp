#include "operator/controller/withhold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "api/well_known.hpp"
#include "core/hostlist.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/config_map.hpp"
#include "slinky/status.hpp"
#include "slurm/conf/loaded.hpp"

namespace op::controller {
namespace {

namespace conf = slurm::conf;

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

conf::Conf parse_conf(const std::map<std::string, std::string>& files) {
  return conf::parse(conf::Kind::kSlurm, slurm_conf(files)).conf;
}

const std::string* find_setting(const conf::Entry& entry, std::string_view key) {
  const auto found = std::ranges::find(entry.settings, key, &conf::Setting::key);
  return found == entry.settings.end() ? nullptr : &found->value;
}

/// True if the user wants the item `what` removed even if jobs still use it.
bool to_go_now(const Observed& observed, const std::string& what) {
  const auto listed = split_list(observed.object->meta.annotation(api::kAnnotationRemoveNow));
  return std::ranges::find(listed, what) != listed.end();
}

/// Adds a NodeSet's partition with State=DRAIN. Leaves out the settings that users gave this partition.
void add_drained(conf::Conf& out, const std::string& name) {
  out.add_record("NodeSet", name, "Feature=" + name);
  out.add_record("PartitionName", name, "Nodes=" + name + " State=DRAIN");
}

/// Calls add_drained() for all partitions of NodeSets that are in `offered` but not in `out`.
void add_drained_of(conf::Conf& out, const conf::Conf& offered) {
  for (const conf::Entry& entry : offered.entries()) {
    const std::string& name = entry.head().value;
    if (!entry.record() || entry.head().key != "NodeSet" || offered.record("PartitionName", name) == nullptr) continue;
    if (out.record("PartitionName", name) == nullptr) add_drained(out, name);
  }
}

/// Returns the configuration that slurmctld is assumed to have loaded.
conf::Conf read_before(const Observed& observed, const ConfigState& state) {
  if (!state.accepted_hash.empty()) {
    conf::Conf out = parse_conf(state.accepted_files());
    if (state.offered_hash == state.accepted_hash) return out;
    const bool answers = slurm::has_answered(observed.snapshot) && observed.snapshot->complete();
    const conf::Conf offered = parse_conf(state.offered);
    // slurmctld does not start with the offered file. But after it loaded the accepted file, it may have loaded a third file
    // that was never recorded. The offered file also has the NodeSet partitions of the unrecorded file.
    if (!answers && slurmctld_crashes(observed) && !observed.restapis.empty()) {
      add_drained_of(out, offered);
      return out;
    }
    // slurmctld may have loaded the offered file before the state records the load. If Slurm answers, its answer shows which of
    // the offered partitions slurmctld has.
    for (const conf::Entry& entry : offered.entries()) {
      const conf::Setting& head = entry.head();
      if (entry.record() && out.record(head.key, head.value) == nullptr &&
          (head.key != "PartitionName" || !answers || observed.snapshot->partitions.contains(head.value)))
        out.add(entry);
    }
    // slurmctld has not loaded these partitions yet, but might still load them: see may_come().
    add_drained_of(out, offered);
    return out;
  }
  conf::Conf offered = parse_conf(state.offered);
  if (!slurmctld_crashes(observed)) return offered;
  // Without a RestApi, the operator does not know with which file slurmctld runs, and a single crash proves nothing.
  if (observed.restapis.empty() && has_run(observed, state)) return offered;
  // If slurmctld never started with the offered file, no job has run. If slurmctld did start with the offered file, retain the
  // partitions of NodeSets without the users' settings, because slurmctld might be unable to read these settings.
  conf::Conf out;
  if (has_run(observed, state)) add_drained_of(out, offered);
  return out;
}

/// True if Slurm knows all nodes of the partition, and each node has a feature with the partition's name. Also true if the
/// partition has no nodes.
bool of_its_feature(const slurm::Snapshot& snapshot, const slurm::Partition& partition) {
  const auto names = core::expand_hostlist(partition.nodes);
  return partition.nodes.empty() ||
         (names && std::ranges::all_of(*names, [&](const std::string& name) {
            const slurm::Node* node = snapshot.node(name);
            return node != nullptr && std::ranges::find(node->features, partition.name) != node->features.end();
          }));
}

/// Returns the known part of slurmctld's configuration after the ConfigMap was deleted or edited. Slurm does not report how a
/// partition was configured, so this rebuilds only the partitions of NodeSets, without other settings.
conf::Conf read_loaded(const Observed& observed) {
  conf::Conf out;
  if (!observed.stateful_set) return out;
  if (!slurm::has_answered(observed.snapshot)) {
    // Slurm does not answer. So each NodeSet might have had a partition with jobs: even without workers, jobs can be pending.
    std::set<std::string> names;
    for (const NodeSetFacts& nodeset : observed.nodesets) names.insert(nodeset.slurm_name);
    for (const auto& [name, object] : observed.left_nodesets) names.insert(name);
    for (const std::string& name : names) add_drained(out, name);
    return out;
  }
  for (const auto& [name, partition] : observed.snapshot->partitions) {
    if (conf::is_marker(slurm::Owner::kOperator, name) || !of_its_feature(*observed.snapshot, partition)) continue;
    out.add_record("NodeSet", name, "Feature=" + name);
    out.add_record("PartitionName", name, "Nodes=" + name + " State=" + partition.state);
  }
  return out;
}

/// Adds the GRES types that jobs use. Licenses cannot be added, because jobs do not show the total number of a license.
void add_loaded_gres(conf::Conf& out, const Observed& observed) {
  if (!observed.stateful_set || !slurm::has_answered(observed.snapshot)) return;
  std::string list = out.get("GresTypes").value_or("");
  for (const auto& [id, job] : observed.snapshot->jobs) {
    for (const std::string& name : job->gres) list += (list.empty() ? "" : ",") + name;
  }
  if (!list.empty()) out.set("GresTypes", list);
}

/// True if no accepted content is known, for example because somebody deleted or edited the ConfigMap. Then the file in the
/// ConfigMap might be newer than the file with which slurmctld runs.
bool was_lost(const ConfigState& state) {
  return state.accepted_hash.empty();
}

conf::Conf read_partitions_before(const Observed& observed, const ConfigState& state) {
  if (!state.exists()) return read_loaded(observed);
  conf::Conf out = read_before(observed, state);
  if (!was_lost(state) || !slurm::has_answered(observed.snapshot)) return out;
  const conf::Conf loaded = read_loaded(observed);
  for (const conf::Entry& entry : loaded.entries()) {
    if (out.record(entry.head().key, entry.head().value) == nullptr) out.add(entry);
  }
  return out;
}

conf::Conf read_resources_before(const Observed& observed, const ConfigState& state) {
  conf::Conf out;
  if (state.exists()) out = read_before(observed, state);
  if (was_lost(state)) add_loaded_gres(out, observed);
  return out;
}

bool fresh(const Observed& observed) {
  return slurm::has_answered(observed.snapshot) && observed.snapshot->fresh(observed.context.mono);
}

using Uses = std::vector<std::string> (*)(const slurm::Job&);

/// Adds to `item` the jobs that use `name` and have not ended. The function `uses` returns the names that a job uses.
void find_jobs(Withheld& item, const Observed& observed, std::string_view name, Uses uses) {
  if (!slurm::has_answered(observed.snapshot)) return;
  for (const auto& [id, job] : observed.snapshot->jobs) {
    if (!job->in_queue()) continue;
    // A job that could not be read might use any name.
    const std::vector<std::string> used = uses(*job);
    if (job->id >= 0 && std::ranges::find(used, name) == used.end()) continue;
    item.jobs.push_back(id);
    item.unlimited = item.unlimited || (job->holds_nodes() && !job->end);
  }
}

/// True if the snapshot shows that slurmctld accepts no jobs in the partition, or does not have the partition. The snapshot
/// must have been requested after the reconfigure that set the partition to this state.
bool takes_no_jobs(const Observed& observed, const std::string& name) {
  const auto found = observed.snapshot->partitions.find(name);
  if (found == observed.snapshot->partitions.end()) return true;
  if (found->second.state != "DRAIN" && found->second.state != "INACTIVE") return false;
  const std::optional<core::MonoTime> loaded_at = reconfigured_at(observed);
  return !loaded_at || observed.snapshot->requested_at >= *loaded_at;
}

/// True if a NodeSet's partition is offered but slurmctld has not loaded the offered file. Until then, any reconfigure or start
/// might load the offered file, or an earlier file in which the partition was UP, because the kubelet delivers files late. So
/// jobs can arrive that no answer shows yet.
bool may_come(const Observed& observed, const ConfigState& state, const std::string& name) {
  if (!state.exists() || loaded_config_hash(observed) == state.offered_hash) return false;
  // slurmctld does not load a file that it has refused, so the partition cannot appear.
  if (state.left_out.contains(name) || (state.offered_hash == state.refused_hash && !state.can_roll_back())) return false;
  const conf::Conf offered = parse_conf(state.offered);
  return offered.record("NodeSet", name) != nullptr && offered.record("PartitionName", name) != nullptr;
}

/// Returns why the partition has to stay. nullopt: the partition can be removed.
std::optional<Withheld> judge_partition(const Observed& observed, const ConfigState& state, const std::string& name) {
  Withheld item{.what = "partition/" + name};
  if (to_go_now(observed, item.what)) return {};
  const bool comes = may_come(observed, state, name);
  if (!comes && slurm::has_answered(observed.snapshot) && observed.snapshot->complete() &&
      !observed.snapshot->partitions.contains(name))
    return {};
  find_jobs(item, observed, name, [](const slurm::Job& job) { return split_list(job.partition); });
  if (!item.jobs.empty()) return item;
  // An earlier pass decided to remove the partition: the offered file lacks it, and slurmctld has not loaded that file yet.
  if (state.exists() && state.offered_hash != state.accepted_hash && !state.accepted_hash.empty() &&
      parse_conf(state.offered).record("PartitionName", name) == nullptr)
    return {};
  if (!comes && fresh(observed) && takes_no_jobs(observed, name)) return {};
  item.unknown = !fresh(observed);
  return item;
}

/// Adds the nodes and NodeSets of the partition to `into`, except those in `other`, because slurmctld refuses unknown names.
void keep_members(conf::Conf& into, const conf::Conf& other, const conf::Conf& before, const conf::Entry& partition) {
  const std::string* nodes = find_setting(partition, "Nodes");
  if (nodes == nullptr) return;
  for (const std::string& name : split_list(*nodes)) {
    for (const char* kind : {"NodeSet", "NodeName"}) {
      const conf::Entry* entry = before.record(kind, name);
      if (entry != nullptr && into.record(kind, name) == nullptr && other.record(kind, name) == nullptr) into.add(*entry);
    }
  }
}

/// True if the operator rendered the partition for a NodeSet. Such partitions precede a user's PartitionName=DEFAULT line, so
/// that the DEFAULT line does not affect them.
bool made_for_nodeset(const conf::Entry& partition, const conf::Conf& before) {
  const std::string& name = partition.head().value;
  const std::string* nodes = find_setting(partition, "Nodes");
  const conf::Entry* set = before.record("NodeSet", name);
  return nodes != nullptr && *nodes == name && set != nullptr;
}

std::string name_of_item(const std::string& item) {
  return item.substr(0, item.find_first_of(":("));
}

/// Returns the wanted partitions that the offered file lacks.
std::set<std::string> lacking_partitions(const ConfigState& state, const Rendered& wanted) {
  std::set<std::string> out;
  if (!wanted.ok()) return out;
  const conf::Conf offered = parse_conf(state.offered), asked = parse_conf(wanted.files);
  for (const conf::Entry& entry : asked.entries()) {
    const conf::Setting& head = entry.head();
    const bool partition =
        entry.record() && head.key == "PartitionName" && !conf::is_marker(slurm::Owner::kOperator, head.value);
    if (partition && offered.record(head.key, head.value) == nullptr) out.insert(head.value);
  }
  // Also returns partitions of NodeSets that were left out because slurmctld may have refused them.
  for (const auto& [name, config] : wanted.partitions) {
    if (offered.record("PartitionName", name) == nullptr) out.insert(name);
  }
  return out;
}

}  // namespace

std::vector<Withheld> withhold_partitions(conf::Conf& ours, conf::Conf& user, const Observed& observed,
                                          const ConfigState& state) {
  std::vector<Withheld> out;
  const conf::Conf before = read_partitions_before(observed, state);
  for (const conf::Entry& entry : before.entries()) {
    const conf::Setting& head = entry.head();
    if (!entry.record() || head.key != "PartitionName" || entry.defaults() ||
        conf::is_marker(slurm::Owner::kOperator, head.value))
      continue;
    if (ours.record(head.key, head.value) != nullptr || user.record(head.key, head.value) != nullptr) continue;
    std::optional<Withheld> item = judge_partition(observed, state, head.value);
    if (!item) continue;
    const bool of_nodeset = made_for_nodeset(entry, before);
    // If a NodeSet has the name of a node, slurmctld refuses the whole file.
    if (of_nodeset && slurm::has_answered(observed.snapshot) && observed.snapshot->node(head.value) != nullptr) continue;
    conf::Conf& into = of_nodeset ? ours : user;
    keep_members(into, of_nodeset ? user : ours, before, entry);
    into.add(drained(entry));
    out.push_back(*std::move(item));
  }
  return out;
}

std::vector<Withheld> withhold_resources(conf::Conf& wanted, const Observed& observed, const ConfigState& state) {
  std::vector<Withheld> out;
  const conf::Conf before = read_resources_before(observed, state);
  const auto keep = [&](std::string_view key, std::string_view kind, Uses uses) {
    std::string list = wanted.get(key).value_or("");
    std::set<std::string> there;
    for (const std::string& item : split_list(list)) there.insert(name_of_item(item));
    for (const std::string& item : split_list(before.get(key).value_or(""))) {
      const std::string name = name_of_item(item);
      Withheld held{.what = std::string(kind) + "/" + name};
      if (there.contains(name) || to_go_now(observed, held.what)) continue;
      find_jobs(held, observed, name, uses);
      held.unknown = !fresh(observed);
      if (held.jobs.empty() && !held.unknown) continue;
      there.insert(name);
      list += (list.empty() ? "" : ",") + item;
      wanted.set(key, list);
      out.push_back(std::move(held));
    }
  };
  keep("Licenses", "license", [](const slurm::Job& job) { return job.licenses; });
  keep("GresTypes", "gres", [](const slurm::Job& job) { return job.gres; });
  return out;
}

void withhold_tables(conf::Conf& wanted, const Observed& observed, const ConfigState& state, std::vector<Problem>& warnings) {
  if (!state.exists() || (!observed.workers_registered && !slurm::has_answered(observed.snapshot))) return;
  const conf::Conf before = parse_conf(state.accepted_hash.empty() ? state.offered : state.accepted_files());
  const auto keep = [&](const char* key, std::int64_t usual, std::size_t rows, const char* what) {
    const auto number = [&](const conf::Conf& conf) {
      const std::string text = conf.get(key).value_or("");
      std::int64_t out = usual;
      std::from_chars(text.data(), text.data() + text.size(), out);
      return out;
    };
    const std::int64_t was = number(before), wish = number(wanted);
    const bool seen = slurm::has_answered(observed.snapshot) && observed.snapshot->complete();
    if (wish >= was || (seen && wish > static_cast<std::int64_t>(rows))) return;
    wanted.set(key, std::to_string(was));
    warnings.push_back(
        {std::string(kTableTooSmall), fmt::format("spec.extraConf: {}={} is not applied yet, and {} is kept: {}; slurmctld "
                                                  "would drop the entries beyond the limit, with their jobs",
                                                  key, wish, was,
                                                  seen ? fmt::format("Slurm has {} {}", rows, what)
                                                       : std::string("it is not known how many ") + what + " Slurm has")});
  };
  const bool any = slurm::has_answered(observed.snapshot);
  keep("MaxNodeCount", 0, any ? observed.snapshot->nodes.size() : 0, "nodes");
  keep("MaxJobCount", 10000, any ? observed.snapshot->jobs.size() : 0, "jobs (ended ones included)");
}

conf::Entry drained(conf::Entry entry) {
  std::string state = "UP";
  std::erase_if(entry.settings, [&](const conf::Setting& setting) {
    if (setting.key == "State") state = setting.value;
    return setting.key == "State" || setting.key == "Default";
  });
  std::ranges::transform(state, state.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  // If a partition is DOWN, slurmctld accepts jobs for it but starts none. So such a partition becomes INACTIVE.
  entry.settings.push_back({"State", state == "UP" || state == "DRAIN" ? "DRAIN" : "INACTIVE"});
  return entry;
}

std::vector<Withheld> told_of(const std::vector<Withheld>& withheld) {
  std::vector<Withheld> out;
  std::ranges::copy_if(withheld, std::back_inserter(out),
                       [](const Withheld& item) { return !item.jobs.empty() || item.unknown; });
  return out;
}

std::string describe(const Observed& observed, const std::vector<Withheld>& withheld) {
  std::string text, all;
  for (const Withheld& item : withheld) {
    std::vector<std::string> jobs;
    for (const std::int64_t id : item.jobs) jobs.push_back(std::to_string(id));
    text += (text.empty() ? "" : "; ") + item.what;
    if (!jobs.empty()) text += std::string(": job") + (jobs.size() > 1 ? "s " : " ") + some_of(jobs);
    if (item.unlimited) text += ", without a time limit";
    if (jobs.empty()) {
      text += observed.restapis.empty() ? ": without a RestApi its jobs cannot be seen"
                                        : ": Slurm does not report its jobs at the moment";
    }
    all += (all.empty() ? "" : ",") + item.what;
  }
  return "is kept in slurm.conf until no job needs it, because slurmctld would end these jobs or lose track of what they "
         "use: " +
         text + "; to remove it at once, annotate the Controller with " + std::string(api::kAnnotationRemoveNow) + "=" + all;
}

bool lacks_withheld(const ConfigState& state, const Rendered& wanted) {
  if (std::ranges::all_of(wanted.withheld, [](const Withheld& item) { return item.jobs.empty(); })) return false;
  const std::set<std::string> lacking = lacking_partitions(state, wanted);
  return std::ranges::any_of(wanted.withheld, [&](const Withheld& item) {
    return !item.jobs.empty() &&
           std::ranges::any_of(lacking, [&](const std::string& name) { return item.what == "partition/" + name; });
  });
}

std::set<std::string> load_ends_jobs(const Observed& observed, const ConfigState& state, const Rendered& wanted) {
  if (!slurm::has_answered(observed.snapshot)) return {};
  std::set<std::string> lacking = lacking_partitions(state, wanted);
  std::erase_if(lacking, [&](const std::string& name) { return to_go_now(observed, "partition/" + name); });
  std::set<std::string> out;
  for (const auto& [id, job] : observed.snapshot->jobs) {
    if (lacking.empty() || !job->in_queue()) continue;
    // A job that could not be read might be in any partition.
    if (id < 0) return lacking;
    for (const std::string& name : split_list(job->partition)) {
      if (lacking.contains(name)) out.insert(name);
    }
  }
  return out;
}

void watch_withheld(const Observed& observed, const std::vector<Withheld>& withheld, plan::Plan& plan) {
  constexpr core::Duration kJobsMayHaveEnded{5000}, kSoon{1000};
  if (withheld.empty() || observed.restapis.empty()) return;
  // The next pass comes soon if a partition is being removed or the last answer is too old. A slow Slurm is polled every 15 s,
  // and its answer counts as fresh for only 2 s. If Slurm does not answer, no early pass is needed, because the next answer of
  // Slurm starts a pass.
  const bool soon = slurm::has_answered(observed.snapshot) && observed.snapshot->complete() &&
                    std::ranges::any_of(withheld, [](const Withheld& item) { return item.jobs.empty(); });
  plan.wake_after(soon ? kSoon : kJobsMayHaveEnded, "what is withheld may be removable");
  remember_reconfigure(observed, plan);
}

}  // namespace op::controller
