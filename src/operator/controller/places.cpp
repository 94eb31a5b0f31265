#include "operator/controller/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "api/well_known.hpp"
#include "core/hostlist.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/named_nodes.hpp"
#include "operator/controller/prologs.hpp"
#include "operator/controller/topology.hpp"
#include "slinky/worker_names.hpp"
#include "slinky/workers.hpp"
#include "slurm/acts.hpp"
#include "slurm/conf/conf.hpp"

namespace op::controller {
namespace {

/// New workers form a group. The group is complete when no worker has joined for kQuiet, or kGather after its first worker
/// joined.
constexpr core::Duration kQuiet{3000}, kGather{30000};
/// Further workers move Places::due to a later time, but only if the new time is later by at least kRenewal.
constexpr core::Duration kRenewal{10000};
/// The time between two checks whether jobs are still starting: kOften at first, and kSeldom after a minute. No event starts a
/// pass when a job has started.
constexpr core::Duration kOften{1000}, kSeldom{5000};
constexpr core::Duration kLongestPlacesGap{30 * 60 * 1000};
constexpr const char* kForPlaces = "for the places of workers";

/// The user's file that assigns places.
struct TopologyOfUser {
  enum class Kind {
    kNone,        ///< There is no file, or the file names no nodes.
    kUnknown,     ///< It is unknown whether there is a file.
    kUnreadable,  ///< The file cannot be parsed, because of `why`.
    kTooNew,      ///< This slurmctld does not read this kind of file.
    kNames,
  };
  Kind kind = Kind::kNone;
  std::string file, why;
  core::HostSet nodes;
  bool all = false;  ///< Nodes that the file does not name also have a place.
};

/// True if slurmctld reads topology.conf. slurmctld does so only with certain values of TopologyPlugin in slurm.conf.
bool reads_topology_conf(const ConfigState& state) {
  const auto plugin = slurm::conf::parse(slurm::conf::Kind::kSlurm, slurm_conf(state.offered)).conf.get("TopologyPlugin");
  return plugin && *plugin != "topology/flat" && *plugin != "topology/default";
}

TopologyOfUser topology_of_user(const Observed& observed, const ConfigState& state) {
  using Kind = TopologyOfUser::Kind;
  TopologyOfUser out;
  if (observed.controller.spec.topology) return out;
  const std::string *yaml = nullptr, *conf = nullptr;
  if (knows_files(state.offered)) {
    // This code reads the copies, because slurmctld may have refused the present files of the user's ConfigMaps.
    yaml = file_copy(state, kTopologyYaml);
    conf = file_copy(state, "topology.conf");
  } else {
    if (mounts_copies(observed, state)) return {.kind = Kind::kUnknown, .file = {}, .why = {}, .nodes = {}};
    // The ConfigMaps are visited in the order of their names, in which they are also projected into the pod.
    std::map<std::string, const NamedFiles*> maps;
    for (const NamedFiles& map : observed.config_files) {
      if (map.presence != kube::Presence::kPresent) return {.kind = Kind::kUnknown, .file = {}, .why = {}, .nodes = {}};
      maps[map.name] = &map;
    }
    for (const auto& [name, map] : maps) {
      if (const auto it = map->files.find(std::string(kTopologyYaml)); it != map->files.end()) yaml = &it->second;
      if (const auto it = map->files.find("topology.conf"); it != map->files.end()) conf = &it->second;
    }
  }
  NamedNodes named;
  if (conf != nullptr && reads_topology_conf(state)) {
    named = nodes_of_conf(*conf);
    out.file = "topology.conf";
  }
  if (yaml != nullptr && !release_without_topology_yaml(observed).empty()) {
    if (named.lists.empty()) return {.kind = Kind::kTooNew, .file = std::string(kTopologyYaml), .why = {}, .nodes = {}};
    yaml = nullptr;
  }
  if (yaml != nullptr) {
    core::Result<NamedNodes> read = nodes_of_yaml(*yaml);
    out.file = kTopologyYaml;
    if (!read) {
      out.kind = Kind::kUnreadable;
      out.why = read.error().message;
      return out;
    }
    std::ranges::move(read->lists, std::back_inserter(named.lists));
    named.all = read->all;
  }
  for (const std::string& list : named.lists) out.nodes.add(list);
  out.all = named.all;
  if (!named.lists.empty()) out.kind = Kind::kNames;
  return out;
}

/// The registered workers, grouped by whether they have their places.
struct Census {
  std::vector<std::string> waiting;   ///< The workers that the file names and that do not have their places yet.
  std::vector<std::string> nameless;  ///< The workers that the file does not name and that have no place from elsewhere.
  core::WallTime oldest{}, newest{};  ///< The earliest and latest time since when Slurm has had a new worker. Valid if `fresh`.
  bool fresh = false;                 ///< Some workers, named in the file or not, have registered since `given_until`.
  bool unseen = false;  ///< Slurm has the node of a worker, but the condition on the worker's pod is still missing.
};

Census take_census(const Observed& observed, const TopologyOfUser& topology, const std::optional<Places>& places) {
  Census out;
  const std::optional<core::WallTime> given = places ? places->given_until : std::nullopt;
  for (const kube::PodPtr& pod : observed.worker_pods) {
    if (pod->meta.terminating() || pod->phase == "Failed" || pod->phase == "Succeeded") continue;
    const std::string name = slurm_node_name(*pod);
    const slurm::Node* node = observed.snapshot->node(name);
    if (node == nullptr) continue;
    const std::optional<core::WallTime> since = registered_since(*pod);
    if (!since && !seen_in_slurm(*pod)) {
      out.unseen = true;
      continue;
    }
    // A worker that the file does not name can still have a place, because somebody set a topology string for its node.
    const bool named = topology.nodes.has(name);
    if (!named && !topology.all && node->topology.empty()) out.nameless.push_back(name);
    if (given && (!since || *since < *given)) continue;
    if (named) out.waiting.push_back(name);
    const core::WallTime at = since.value_or(pod->meta.created);
    out.oldest = out.fresh ? std::min(out.oldest, at) : at;
    out.newest = out.fresh ? std::max(out.newest, at) : at;
    out.fresh = true;
  }
  return out;
}

/// Returns how much longer the operator waits for further workers of the group.
core::Duration left_to_gather(const Observed& observed, const Census& census) {
  // If the clock was set back, do not wait.
  const core::Duration all = kGather - (observed.context.now - census.oldest);
  const core::Duration quiet = kQuiet - (observed.context.now - census.newest);
  if (all > kGather || quiet > kQuiet) return core::Duration{0};
  return std::max(core::Duration{0}, census.unseen ? all : std::min(quiet, all));
}

plan::StepId places_id(core::WallTime due) {
  return kReconfigure.of(kForPlaces, core::format_rfc3339(due));
}

/// Returns the last try if it is too early for another try, and sets `left` to the time until then. Null: a try can begin now.
const std::pair<const plan::StepId, plan::Outcome>* recent_try(const Observed& observed, core::Duration* left = nullptr) {
  for (const auto& entry : observed.context.outcomes) {
    const auto& [id, outcome] = entry;
    if (!id.is(kReconfigure) || id.name != kForPlaces) continue;
    const core::Duration gap =
        outcome.state == plan::Outcome::State::kDone ? kPlacesGap : wait_of_try(outcome.count, kPlacesGap, kLongestPlacesGap);
    const core::Duration rest = outcome.last + gap - observed.context.mono;
    if (rest.count() <= 0) continue;
    if (left != nullptr) *left = rest;
    return &entry;
  }
  return nullptr;
}

bool has_given(const Observed& observed, core::WallTime due) {
  const auto found = observed.context.outcomes.find(places_id(due));
  return found != observed.context.outcomes.end() && found->second.state == plan::Outcome::State::kDone;
}

}  // namespace

void note_places(const Observed& observed, ConfigState& next, plan::Plan& plan) {
  using Kind = TopologyOfUser::Kind;
  if (const auto* tried = recent_try(observed)) plan.remember(tried->first);
  const TopologyOfUser topology = topology_of_user(observed, next);
  if (topology.kind == Kind::kUnknown) return;
  if (topology.kind != Kind::kNames || observed.restapis.empty()) return next.places.reset();
  const core::WallTime now = core::whole_seconds(observed.context.now);
  if (next.places && next.places->due && has_given(observed, *next.places->due)) next.places = Places{next.places->due, {}};
  // Without workers, no worker can lack a place.
  if (!next.places && observed.worker_pods.empty()) next.places = Places{now, {}};
  if (!answers(observed)) return;

  const Census census = take_census(observed, topology, next.places);
  if (!census.fresh) {
    if (!next.places) next.places = census.unseen ? Places{{}, now} : Places{now, {}};
    return;
  }
  if (const core::Duration left = left_to_gather(observed, census); left.count() > 0)
    return plan.wake_after(left, "workers that register at about the same time are placed together");
  const core::WallTime until = std::max(now, census.newest > now ? census.newest + core::Duration{1000} : now);
  if (!next.places) next.places = Places{};
  std::optional<core::WallTime>& due = next.places->due;
  if (!due && census.waiting.empty()) {
    next.places->given_until = until;
  } else if (!due || (census.newest >= *due && until - *due >= kRenewal)) {
    due = until;
  }
}

void add_places_step(const Observed& observed, const ConfigState& state, plan::Plan& plan) {
  if (!state.places || !state.places->due) return;
  // If the mounted files are not the accepted files, slurmctld might refuse the mounted files. The user must correct them
  // first.
  const bool reads_refused = !state.refused_hash.empty() && !mounts_copies(observed, state);
  if (reads_refused || state.tries_partition() || !holds_offered(observed, state)) return;
  core::Duration left{0};
  if (recent_try(observed, &left) != nullptr) return plan.wake_after(left, "workers are placed once a minute at most");
  const core::WallTime due = *state.places->due;
  if (plan.lanes().contains("load") || !starting_jobs(observed.snapshot).empty()) {
    const bool waits_long = observed.context.now - due > kPrologLimit;
    return plan.wake_after(waits_long ? kSeldom : kOften, "workers are placed when no job is starting");
  }
  plan.lane("load")
      .add({kLookForStarting.of("", kForPlaces), "a reconfigure would cut them short",
            slurm::confirm_none_starts(observed.cluster)})
      .then()
      .add({places_id(due), "workers have registered that have no place in the topology yet",
            slurm::reconfigure(observed.cluster)});
}

void set_places_condition(Conditions& conditions, const Observed& observed, const ConfigState& state, bool frozen) {
  using Kind = TopologyOfUser::Kind;
  const TopologyOfUser topology = topology_of_user(observed, state);
  const std::string file = topology.file + " of spec.configFileRefs";
  const auto set = [&](api::ConditionStatus status, std::string_view reason, std::string message) {
    conditions.set(api::kConditionPlaced, status, reason, std::move(message));
  };
  if (topology.kind == Kind::kNone) return;
  if (topology.kind == Kind::kUnreadable) {
    return set(api::ConditionStatus::kUnknown, "TopologyUnreadable",
               file +
                   " cannot be read, so workers that register get no place before the next change of the configuration or "
                   "`scontrol reconfigure`: " +
                   one_line(topology.why));
  }
  if (topology.kind == Kind::kTooNew) {
    return set(api::ConditionStatus::kFalse, "TopologyNotSupported",
               file + ": Slurm " + release_without_topology_yaml(observed) +
                   " does not read it, so no worker has a place: use 25.05 or later, or a topology.conf");
  }
  if (observed.restapis.empty()) {
    return set(api::ConditionStatus::kUnknown, "NoRestApi",
               "without a RestApi, workers that register get the places that " + file +
                   " gives them only with the next change of the configuration or `scontrol reconfigure`");
  }
  // The places are unknown now, so the condition does not change.
  if (topology.kind == Kind::kUnknown || !answers(observed)) {
    if (const api::Condition* told = api::find_condition(observed.controller.status.conditions, api::kConditionPlaced))
      set(told->status, told->reason, told->message);
    return;
  }
  const Census census = take_census(observed, topology, state.places);
  if (!census.waiting.empty()) {
    const auto* tried = recent_try(observed);
    const std::string words = tried != nullptr && refused(&tried->second) ? tried->second.error->message : "";
    return set(
        api::ConditionStatus::kFalse, "Placing",
        "these workers, which " + file +
            " places, have no place in Slurm until slurmctld is reconfigured: " + some_of(census.waiting) +
            (observed.stopped
                 ? fmt::format(". The reconfigure waits until the annotation {} is removed", api::kAnnotationStopDeletions)
             : frozen        ? ". The reconfigure waits until the new slurm.key is in force, see condition KeyChanged"
             : words.empty() ? ". The reconfigure waits until no job is starting, and for a minute after the previous one"
                             : "; slurmctld refuses it: " + one_line(words) + log_hint(observed, words)));
  }
  if (!census.nameless.empty()) {
    return set(api::ConditionStatus::kFalse, "WorkersNotNamed",
               file +
                   " does not name these workers, so they have no place, and Slurm may refuse jobs of several nodes there: " +
                   some_of(census.nameless));
  }
  set(api::ConditionStatus::kTrue, "Placed", "");
}

}  // namespace op::controller
