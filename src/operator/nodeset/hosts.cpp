// scalingMode DaemonSet: judges Kubernetes nodes as places for workers, and switches from one scalingMode to the other.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include "api/well_known.hpp"
#include "core/hostlist.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/daemon_nodes.hpp"
#include "operator/nodeset/parts.hpp"
#include "slinky/worker_names.hpp"

namespace op::nodeset {
namespace {

/// The time until the operator looks again at workers that cannot be replaced yet, although the scalingMode or the names of the
/// Kubernetes nodes have changed. Events might not wake the NodeSet when such a worker can be replaced.
constexpr Change kSwitchAgain{core::Duration{30000}, "workers of the other scalingMode may be replaced"};
constexpr Change kRenameAgain{core::Duration{30000}, "workers may get the names that their Kubernetes nodes give them"};
constexpr std::size_t kNamesTold = 3;
/// The time that the scheduler has to place a new worker.
constexpr core::Duration kScheduled{60000};

const Host* find_host(const View& view, std::string_view kube_node) {
  const auto found = view.in.hosts.find(kube_node);
  return found == view.in.hosts.end() ? nullptr : &found->second;
}

/// True if the host's worker cannot use Host::slurm_node as its name.
bool name_unusable(const View& view, const Host& host) {
  if (uses_host_network(view.in.nodeset.spec)) return false;
  return !host.twin.empty() || !hostname_problem(host.slurm_node).empty();
}

/// Returns the settings by users that would be lost if the worker's successor had another name in Slurm. "": no such settings.
std::string said_by_people(const View& view, const Slot& worker) {
  if (worker.user_cordon) return "pod " + pod_text(worker) + " was cordoned, and its successor would not be";
  if (worker.record != nullptr && outlives_worker(view, *worker.record))
    return "somebody took " + worker.node + " out of service, and its successor would be back in service";
  return {};
}

/// True if the Kubernetes node now gives its worker another name, and a worker can have that name.
bool wants_name(const View& view, const Slot& worker) {
  const Host* host = find_host(view, worker.key.kube_node);
  if (host == nullptr || !host->fit.starts) return false;
  // A pod that already has the name is not renamed. This also holds if the pod's slurmd registered under another name.
  return !uses_host_network(view.in.nodeset.spec) && !worker.pod->host_network && worker.node != host->slurm_node &&
         worker.pod->hostname != host->slurm_node && !name_unusable(view, *host);
}

/// True if wants_name() holds and the new name is free: this NodeSet has no worker of that name, and nobody else owns the name.
bool is_renamed(const View& view, const Slot& worker) {
  return wants_name(view, worker) && !view.has_worker(view.node_name(worker.key)) &&
         view.owner_of_name(worker.key) == NameOwner::kUs;
}

/// Returns the Kubernetes node where the worker of a record ran. "": it is unknown, or the record is not ours.
std::string host_of(const View& view, const slurm::Node& record) {
  if (stamped_by_us(view, record)) return core::get_string(*worker_comment(record.comment), {"node"});
  const auto seen = view.in.seen.gone.find(record.name);
  return seen == view.in.seen.gone.end() ? "" : seen->second.kube_node;
}

/// Returns the records that somebody took out of service and whose workers are gone. The key is the Kubernetes node. The next
/// worker on that Kubernetes node would have another name, so it would accept jobs.
std::map<std::string, const slurm::Node*, std::less<>> find_held_records(const View& view) {
  std::map<std::string, const slurm::Node*, std::less<>> out;
  if (!view.by_host() || uses_host_network(view.in.nodeset.spec) || !slurm::has_answered(view.in.snapshot)) return out;
  for (const auto& [name, record] : view.in.snapshot->nodes) {
    if (!outlives_worker(view, *record) || view.has_worker(name) || view.is_of_other_pod(name)) continue;
    const std::string kube_node = host_of(view, *record);
    const Host* host = find_host(view, kube_node);
    if (host != nullptr && host->slurm_node != name) out.emplace(kube_node, record.get());
  }
  return out;
}

/// Returns why a worker whose place is a Kubernetes node must be deleted. kNone: the worker stays.
Fate::Cause why_bound_goes(const View& view, const Worker& worker) {
  const Host* host = find_host(view, worker.key.kube_node);
  if (host == nullptr) {
    // Kubernetes itself deletes the pods of a deleted node, except pods that were never scheduled to the node. A node that is
    // missing in the cache might still exist.
    return worker.pod->node_name.empty() ? Fate::Cause::kUnplaced : Fate::Cause::kNone;
  }
  if (!host->fit.stays) return Fate::Cause::kUnplaced;
  return is_renamed(view, worker) ? Fate::Cause::kRenamed : Fate::Cause::kNone;
}

std::string reason_of(const View& view, const Worker& worker, Fate::Cause cause) {
  if (cause == Fate::Cause::kRenamed)
    return fmt::format("Kubernetes node {} gives its worker the name {} now", worker.key.kube_node, view.node_name(worker.key));
  return find_host(view, worker.key.kube_node) == nullptr
             ? "Kubernetes node " + worker.key.kube_node + " is gone"
             : "Kubernetes node " + worker.key.kube_node + " does not match any more";
}

/// Returns the rank of a worker among the workers on one host. The worker with the smallest rank is kept: workers that run jobs
/// come first, then workers that serve, then ready workers, then older workers.
auto rank_on_host(const Worker& worker) {
  return std::tuple(!worker.busy(), !worker.usable(), !worker.ready(), worker.pod->meta.created, worker.pod->meta.name);
}

/// Returns the live workers of the other scalingMode that are kept so far.
std::vector<Worker*> of_other_mode(const View& view, Workers& workers) {
  std::vector<Worker*> out;
  for (Worker& worker : workers) {
    if (worker.life == Life::kLive && !worker.goes() && !view.of_mode(worker.key)) out.push_back(&worker);
  }
  return out;
}

/// Returns what would be lost if the worker's successor had another name. "": nothing. `begun`: the drain of this worker for
/// the renaming has begun.
std::string why_name_kept(const View& view, const Worker& worker, bool begun, Fates& fates) {
  std::string said = said_by_people(view, worker);
  return said.empty() ? why_record_stays(view, worker, begun, fates) : said;
}

/// Returns why the switch of the scalingMode does not replace the worker now, or "". `begun`: the worker is already drained for
/// the switch, so only users' settings, jobs, reservations and the successor's name still count. `replaced`: a successor is
/// created on the worker's Kubernetes node.
std::string why_not_switched(const View& view, const Worker& worker, bool begun, bool replaced, Fates& fates) {
  if (std::string why = why_name_kept(view, worker, begun, fates); !why.empty()) return why;
  const Host* host = find_host(view, worker.pod->node_name);
  const bool binds = replaced && view.by_host() && host != nullptr;
  if (std::string why = binds ? why_unnamed(view, {-1, worker.pod->node_name}) : ""; begun || !why.empty()) return why;
  if (worker.host_lost()) return "the Kubernetes node of " + pod_text(worker) + " does not respond";
  if (binds && !host->fit.starts)
    return "the Kubernetes node of " + pod_text(worker) + " has a taint that keeps its successor away";
  if (worker.record != nullptr && reserved(*worker.record)) return worker.node + std::string(kReservedText);
  return {};
}

/// Returns the workers in `others` for which the new scalingMode has no place. Each matching Kubernetes node has a place for
/// one worker.
std::unordered_set<const Worker*> without_place(const View& view, const Workers& workers, const std::vector<Worker*>& others) {
  std::unordered_set<const Worker*> out;
  if (!view.by_host() || view.in.node_loss.holds()) return out;
  std::unordered_set<std::string_view> taken;
  for (const Worker& worker : workers) {
    if (worker.life == Life::kLive && !worker.goes() && !worker.key.numbered()) taken.insert(worker.key.kube_node);
  }
  for (const Worker* worker : others) {
    // An unknown Kubernetes node might match, so its worker might have a place.
    if (worker->unplaced()) continue;
    const Host* host = find_host(view, worker->pod->node_name);
    const bool matches = host != nullptr && (host->wanted || host->fit.stays);
    if (!matches || !taken.insert(worker->pod->node_name).second) out.insert(worker);
  }
  return out;
}

/// Returns the number of places whose workers are missing or not serving yet.
std::size_t places_empty(const View& view, const Workers& workers) {
  std::size_t out = places_missing(view, workers);
  std::unordered_set<std::string_view> served;  // Kubernetes nodes with a numbered worker that stays.
  for (const Worker& worker : workers) {
    if (worker.life == Life::kLive && !worker.goes() && worker.key.numbered()) served.insert(worker.pod->node_name);
  }
  for (const Worker& worker : workers) {
    if (worker.life != Life::kLive || worker.goes()) continue;
    if (!view.of_mode(worker.key) || is_available(view, worker) || set_aside(worker)) continue;
    // A pending worker counts as missing only for a while, because the scheduler might never find room for it. A worker that is
    // bound to its Kubernetes node waits until the worker that it replaces is gone.
    const bool waits = worker.pod->node_name.empty() && (worker.key.numbered() || served.contains(worker.key.kube_node));
    if (!waits || view.in.now - worker.pod->meta.created < kScheduled) ++out;
  }
  return out;
}

/// Returns the Kubernetes nodes with a worker that stays.
std::unordered_set<std::string_view> filled_hosts(const Workers& workers) {
  std::unordered_set<std::string_view> out;
  for (const Worker& worker : workers) {
    if (worker.life != Life::kLive || worker.goes()) continue;
    out.insert(worker.key.numbered() ? std::string_view(worker.pod->node_name) : worker.key.kube_node);
  }
  return out;
}

std::string first_of(const std::vector<std::string>& items) {
  std::string out = fmt::format("{}", fmt::join(std::span(items).first(std::min(items.size(), kNamesTold)), ", "));
  if (items.size() > kNamesTold) out += fmt::format(" and {} more", items.size() - kNamesTold);
  return out;
}

}  // namespace

std::string why_unnamed(const View& view, const SlotKey& place) {
  if (uses_host_network(view.in.nodeset.spec)) return {};
  const std::string name = view.node_name(place);
  if (const Host* host = find_host(view, place.kube_node)) {
    if (!host->twin.empty())
      return fmt::format("Kubernetes nodes {} and {} give their workers the same name ({})", host->twin, place.kube_node, name);
    if (const std::string problem = hostname_problem(name); !problem.empty())
      return "Kubernetes node " + place.kube_node + ": " + problem;
  }
  const NameOwner owner = view.owner_of_name(place);
  if (owner == NameOwner::kUs) return {};
  return name + (owner == NameOwner::kOtherNode ? " is a node that is not of this NodeSet"
                                                : " is already the name of a NodeSet in Slurm");
}

std::string leave_reason(const View& view, const Worker& worker) {
  if (worker.fate.cause == Fate::Cause::kSwitched) return switch_reason(view);
  if (worker.fate.cause == Fate::Cause::kUnplaced || worker.fate.cause == Fate::Cause::kRenamed)
    return place_reason(view.in.meta(), worker.fate.reason);
  return scale_in_reason(view);
}

void judge_places(const View& view, Fates& fates) {
  std::map<std::string_view, Worker*> best;
  const auto lose = [&](Worker& worker, Fate::Cause cause, std::string reason, bool place_taken) {
    worker.fate = {Fate::Kind::kScaleIn, cause, std::move(reason), place_taken};
  };
  for (Worker& worker : fates.workers) {
    if (worker.life != Life::kLive || worker.goes() || worker.key.numbered()) continue;
    const Fate::Cause cause = why_bound_goes(view, worker);
    if (cause == Fate::Cause::kUnplaced && view.in.node_loss.holds()) continue;
    if (cause != Fate::Cause::kNone) {
      std::string reason = reason_of(view, worker, cause), kept;
      const bool renamed = cause == Fate::Cause::kRenamed;
      const bool begun = drained_for(worker, place_reason(view.in.meta(), reason));
      if (renamed) kept = why_name_kept(view, worker, begun, fates);
      if (kept.empty()) {
        lose(worker, cause, std::move(reason), renamed);
        continue;
      }
      fates.names_kept.push_back(std::move(kept));
    }
    const auto [found, added] = best.try_emplace(worker.key.kube_node, &worker);
    if (added) continue;
    Worker& other = *found->second;
    const bool better = rank_on_host(worker) < rank_on_host(other);
    lose(better ? other : worker, Fate::Cause::kUnplaced, "Kubernetes node " + worker.key.kube_node + " has another worker",
         true);
    if (better) found->second = &worker;
  }
  if (!fates.names_kept.empty()) fates.changes.push_back(kRenameAgain);
}

Switching switch_mode(const View& view, const ExtraConf& extra_conf, Fates& fates) {
  Workers& workers = fates.workers;
  Switching out;
  if (view.goal != Goal::kServe) return out;
  const std::vector<Worker*> others = of_other_mode(view, workers);
  out.left = others.size();
  if (others.empty()) return out;
  const std::string reason = switch_reason(view);
  std::size_t under_way = places_empty(view, workers);
  if (!can_create(view, extra_conf) || !view.slurm_known()) return out;
  const std::unordered_set<const Worker*> placeless = without_place(view, workers, others);
  std::vector<std::pair<std::tuple<bool, bool, bool, std::int64_t, SlotKey>, Worker*>> ranked;
  std::vector<Worker*> drained;
  for (Worker* worker : others) {
    const bool begun = drained_for(*worker, reason), replaced = !placeless.contains(worker);
    if (std::string why = why_not_switched(view, *worker, begun, replaced, fates); !why.empty()) {
      out.kept.push_back(std::move(why));
    } else if (begun) {
      drained.push_back(worker);
    } else if (!view.stops() &&
               (worker->record != nullptr || worker->evidence.never_started || worker->evidence.never_registered)) {
      ranked.emplace_back(std::tuple(worker->usable(), worker->busy(), replaced, deadline_rank(*worker), worker->key), worker);
    } else {
      out.change = kSwitchAgain;
    }
  }
  if (!out.kept.empty() || !ranked.empty()) out.change = kSwitchAgain;
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const std::size_t most = max_unavailable(view);
  under_way += drained.size();
  auto idle = std::ranges::count_if(ranked, [](const auto& item) { return item.second->usable() && !item.second->busy(); });
  for (Worker* worker : drained) {
    // A job that has just begun can run for days, so resume its worker. Once that worker serves again, an idle worker is
    // drained instead.
    const bool gives_way = under_way >= most && idle > 0 && worker->busy() && worker->ready() && worker->drained_for &&
                           *worker->drained_for < kJustDrained;
    if (gives_way) {
      --idle;
    } else {
      worker->fate = {Fate::Kind::kScaleIn, Fate::Cause::kSwitched, reason};
    }
  }
  for (const auto& [order, worker] : ranked) {
    // A usable worker counts as serving even before minReadySeconds are over, because it already accepts jobs.
    const bool serves = worker->usable();
    if (serves && under_way >= most) {
      out.waits = true;
      break;
    }
    worker->fate = {Fate::Kind::kScaleIn, Fate::Cause::kSwitched, reason};
    if (serves) ++under_way;
  }
  return out;
}

std::set<SlotKey> hosts_to_fill(const View& view, const Workers& workers) {
  const std::unordered_set<std::string_view> filled = filled_hosts(workers);
  std::set<SlotKey> out;
  for (const auto& [name, host] : view.in.hosts) {
    if (host.fit.starts && !name_unusable(view, host) && !filled.contains(name)) out.insert({-1, name});
  }
  for (const kube::PodPtr& orphan : view.in.orphans) {
    const std::optional<SlotKey> place = place_of(*orphan, view.in.meta().name);
    if (place && to_be_adopted(orphan)) out.erase(*place);
  }
  const auto held = find_held_records(view);
  std::erase_if(
      out, [&](const SlotKey& place) { return view.owner_of_name(place) != NameOwner::kUs || held.contains(place.kube_node); });
  return out;
}

std::size_t places_missing(const View& view, const Workers& workers) {
  auto missing = view.desired - std::ranges::count_if(
                                    workers, [](const Worker& worker) { return worker.life == Life::kLive && !worker.goes(); });
  if (missing > 0 && view.by_host()) {
    const std::unordered_set<std::string_view> filled = filled_hosts(workers);
    const std::set<SlotKey> to_fill = hosts_to_fill(view, workers);
    missing -= std::ranges::count_if(view.in.hosts, [&](const auto& item) {
      const auto& [name, host] = item;
      return host.wanted && host.fit.starts && !filled.contains(name) && !to_fill.contains({-1, name});
    });
  }
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, missing));
}

Vacancies find_free_hosts(const View& view, const Fates& fates, Draft& draft) {
  Vacancies out;
  std::unordered_set<std::string_view> taken, renaming, names;
  const bool alone = !view.in.nodeset.spec.oversubscribe_node || uses_host_network(view.in.nodeset.spec);
  const auto take = [&](const kube::PodRecord& pod, const SlotKey& place) {
    if (!place.numbered()) taken.insert(pod.pinned_to.empty() ? pod.node_name : pod.pinned_to);
    // A new pod on the same node would stay pending, and the scheduler could preempt the existing pod in favor of a new pod of
    // higher priority.
    if (alone) taken.insert(pod.node_name);
  };
  for (const Worker& worker : fates.workers) {
    take(*worker.pod, worker.key);
    if (worker.life != Life::kLive || worker.goes() || worker.key.numbered()) continue;
    names.insert(worker.node);
    if (wants_name(view, worker)) renaming.insert(worker.key.kube_node);
  }
  for (const auto* pods : {&view.in.orphans, &view.in.unmanaged}) {
    for (const kube::PodPtr& pod : *pods) {
      if (const std::optional<SlotKey> place = place_of(*pod, view.in.meta().name)) take(*pod, *place);
    }
  }
  const auto held = find_held_records(view);
  std::vector<std::string> renames = fates.names_kept, switches;
  for (const auto& [name, host] : view.in.hosts) {
    const bool free = !taken.contains(name);
    if (!host.fit.starts || (!free && !renaming.contains(name)) || name_unusable(view, host)) continue;
    const SlotKey place{-1, name};
    if (const auto record = held.find(name); free && record != held.end()) {
      const std::optional<SlotKey> former = view.place_of(record->second->name);
      (former && former->numbered() ? switches : renames)
          .push_back(fmt::format("somebody took {} out of service, so Kubernetes node {} gets no worker with another name "
                                 "until {} is resumed or deleted in Slurm",
                                 record->second->name, name, record->second->name));
      continue;
    }
    if (uses_host_network(view.in.nodeset.spec)) {
      out.places.insert(place);
      continue;
    }
    // While modes or names change, another worker of ours might still have the name.
    if (view.has_worker(host.slurm_node)) {
      if (names.contains(host.slurm_node))
        draft.wrong(
            "HostnameConflict",
            fmt::format("Kubernetes node {} gives its worker the name {}, which another worker of this NodeSet has: set the "
                        "annotation {} of the Node",
                        name, host.slurm_node, api::kAnnotationNodeHostnameOverride),
            "Create");
      continue;
    }
    const NameOwner owner = view.owner_of_name(place);
    if (owner == NameOwner::kUs && free) out.places.insert(place);
    if (owner == NameOwner::kOtherWorker || owner == NameOwner::kOtherNode) {
      const Rival* rival = view.rival_of(host.slurm_node);
      out.taken.emplace(host.slurm_node, rival == nullptr ? "a node that is not of this NodeSet" : "NodeSet " + rival->nodeset);
    }
    if (owner == NameOwner::kOtherNodeSet)
      draft.wrong("HostnameConflict",
                  fmt::format("Kubernetes node {}: its worker would be called {}, which is the name of a NodeSet in Slurm: set "
                              "the annotation {} of the Node",
                              name, host.slurm_node, api::kAnnotationNodeHostnameOverride),
                  "Create");
  }
  if (!renames.empty())
    draft.up_to_users("RenameHeld", "workers keep the names that they have in Slurm for now: " + first_of(renames));
  if (!switches.empty()) draft.up_to_users("SwitchHeld", first_of(switches));
  return out;
}

void tell_hosts(const View& view, Draft& draft) {
  if (!view.by_host() || view.goal != Goal::kServe) return;
  if (view.desired == 0)
    draft.up_to_users("NoMatchingNodes",
                      "no Kubernetes node matches spec.template.spec (nodeSelector, required node affinity, tolerations)");
  if (uses_host_network(view.in.nodeset.spec)) return;
  std::vector<std::string> twins, invalid;
  for (const auto& [name, host] : view.in.hosts) {
    if (!host.fit.starts) continue;
    if (!host.twin.empty()) {
      twins.push_back(fmt::format("{} and {} ({})", host.twin, name, host.slurm_node));
    } else if (const std::string problem = hostname_problem(host.slurm_node); !problem.empty()) {
      invalid.push_back("Kubernetes node " + name + ": " + problem);
    }
  }
  const std::string how =
      fmt::format(": set the annotation {} of the Node to another name", api::kAnnotationNodeHostnameOverride);
  if (!twins.empty()) {
    draft.wrong(
        "HostnameConflict",
        "these Kubernetes nodes give their workers the same name, so only the first of each has one: " + first_of(twins) + how,
        "Create");
  }
  if (!invalid.empty()) draft.wrong("InvalidHostname", first_of(invalid) + how, "Create");
}

void tell_switch(const View& view, const Fates& fates, Draft& draft) {
  const Switching& switching = fates.switching;
  if (switching.left == 0 || view.goal != Goal::kServe) return;
  draft.wake(switching.change);
  std::vector<std::string> waiting;
  for (const Worker& worker : fates.workers) {
    if (worker.fate.cause == Fate::Cause::kSwitched && worker.record != nullptr) waiting.push_back(what_holds(view, worker));
  }
  std::string text = fmt::format("{} worker{} of the other scalingMode {} still there", switching.left,
                                 switching.left == 1 ? "" : "s", switching.left == 1 ? "is" : "are");
  if (switching.left == switching.kept.size())
    return draft.up_to_users("SwitchHeld", text + ", and not replaced: " + first_of(switching.kept));
  if (!waiting.empty()) text += "; waiting: " + first_of(waiting);
  if (switching.waits) text += fmt::format("; no more than {} are replaced at once (maxUnavailable)", max_unavailable(view));
  if (!switching.kept.empty()) text += "; left out: " + first_of(switching.kept);
  draft.waiting("SwitchingMode", std::move(text));
}

void tell_renames(const View& view, const Workers& workers, Draft& draft) {
  std::vector<std::string> names, waiting;
  for (const Worker& worker : workers) {
    if (worker.fate.cause != Fate::Cause::kRenamed) continue;
    names.push_back(fmt::format("{} becomes {}", worker.node, view.node_name(worker.key)));
    if (worker.record != nullptr) waiting.push_back(what_holds(view, worker));
  }
  if (names.empty()) return;
  std::string text = "workers are replaced, because their Kubernetes nodes give them other names now: " + first_of(names);
  if (!waiting.empty()) text += "; waiting: " + first_of(waiting);
  draft.waiting("Renaming", std::move(text));
}

}  // namespace op::nodeset
