// Workers that are lost with their host: Kubernetes and Slurm both hear nothing, and nothing runs there for Slurm.
//
// Workers outlast the absence of their kubelet, so Kubernetes itself replaces none. All cut off together are not all lost: that
// is the fault of whoever asks.
#include <algorithm>

#include "operator/nodeset/pass.hpp"

namespace op::nodeset {
namespace {

constexpr int kPercentAtOnce = 5;
/// One that was deleted longer ago has its successor.
constexpr core::Duration kReplaced{2 * 60 * 1000};

bool host_lost(const Pass& pass, const Worker& worker) {
  if (worker.pod->node_name.empty()) return false;
  const auto host = pass.in.nodes.find(worker.pod->node_name);
  return host == pass.in.nodes.end() || !host->second.ready;
}

bool silent(const Pass& pass, const Worker& worker) {
  return worker.life == Life::kLive && !worker.lost && host_lost(pass, worker) && worker.record != nullptr &&
         !worker.has_flag("RESERVED") && !keeps_others_word(*worker.record) && silence_of(pass, worker);
}

/// Of the cluster's nodes beside one that is silent, whoever they belong to.
bool most_others_answer(const Pass& pass) {
  const auto& nodes = pass.in.snapshot->nodes;
  const auto silent =
      std::count_if(nodes.begin(), nodes.end(), [](const auto& item) { return item.second->state.has("NOT_RESPONDING"); });
  const auto others = static_cast<std::ptrdiff_t>(nodes.size()) - 1;
  return others == 0 || 2 * (silent - 1) < others;
}

/// Until slurmctld has run for that long, it does not know who answers.
bool slurmctld_knows(Pass& pass) {
  const ControllerView& controller = *pass.in.controller;
  if (!controller.ready_since) return false;
  const core::Duration left = controller.slurmd_timeout - (pass.in.now - *controller.ready_since);
  if (left.count() >= 0) pass.out.wake_after(left + core::Duration{1000}, "slurmctld has not run for SlurmdTimeout yet");
  return left.count() < 0;
}

}  // namespace

std::optional<plan::Evidence> silence_of(const Pass& pass, const Worker& worker) {
  return slurm::SnapshotWitness::silent(*pass.in.snapshot, worker.node, worker.pod->meta.uid, worker.pod->node_name,
                                        pass.in.mono);
}

void find_silent(Pass& pass) {
  if (pass.goal != Goal::kServe || !pass.slurm_known()) return;
  std::vector<Worker*> candidates;
  std::size_t under_way = 0;
  for (Worker& worker : pass.workers) {
    if (silent(pass, worker)) candidates.push_back(&worker);
    if (worker.life != Life::kTerminating || !host_lost(pass, worker)) continue;
    const core::Duration left = kReplaced - (pass.in.mono - pass.in.seen.terminating_since.at(worker.pod->meta.uid));
    if (left.count() <= 0) continue;
    ++under_way;
    pass.out.wake_after(left, "a worker whose host is lost is replaced by then");
  }
  if (candidates.empty() || !slurmctld_knows(pass) || !most_others_answer(pass)) return;
  const std::size_t at_once = std::max<std::size_t>(1, pass.workers.size() * kPercentAtOnce / 100);
  for (std::size_t i = 0; i < candidates.size() && i + under_way < at_once; ++i) {
    candidates[i]->silent = candidates[i]->lost = true;
  }
}

}  // namespace op::nodeset
