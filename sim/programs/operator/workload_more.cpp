// Events that the workload draws from separate random sources: accidents that only some histories have, taints, and changes of
// the scalingMode.
#include <fmt/format.h>

#include "api/well_known.hpp"
#include "sim/programs/operator/workload.hpp"
#include "sim/programs/operator/workload_parts.hpp"
#include "slinky/names.hpp"

namespace sim {

using core::Duration;
using core::Json;
namespace kinds = kube::resources;

void OperatorWorkload::taint(const std::string& node, const std::string& effect, const std::string& key) {
  const Json* object = world_.find(kinds::kNode, node);
  if (object == nullptr) return;
  const Json before = (*object)["spec"].value("taints", Json::array());
  Json taints = before;
  std::erase_if(taints.get_ref<Json::array_t&>(), [&](const Json& taint) { return taint["key"] == key; });
  if (!effect.empty()) taints.push_back({{"key", key}, {"effect", effect}});
  if (taints == before) return;
  world_.merge(kinds::kNode, node, {{"spec", {{"taints", taints.empty() ? Json(nullptr) : taints}}}});
}

void OperatorWorkload::fill_more() {
  const auto kube_node = [this] {
    return "kube-" + std::to_string(more_.below(static_cast<std::uint64_t>(world_.options().kube_nodes)));
  };
  extra_.push_back({4, [this] {
                      SimSlurm* slurm = world_.slurm();
                      if (slurm == nullptr) return;
                      JobRequest job;
                      job.partition = kNodeSets[more_.below(kNodeSets.size())];
                      job.duration = Duration{more_.between(500, 40000)};
                      (more_.chance(0.5) ? job.prolog_fails : job.epilog_fails) = true;
                      (void)slurm->submit(job);
                    }});
  extra_.push_back({2, [=, this] {
                      const double drawn = more_.unit();
                      taint(kube_node(), drawn < 0.4 ? "" : drawn < 0.75 ? "NoSchedule" : "NoExecute");
                    }});
  extra_.push_back({3, [this] {
                      const std::vector<std::string> workers = world_.workers();
                      if (workers.empty()) return;
                      const std::string& pod = workers[more_.below(workers.size())];
                      world_.oracles().note("a pod of a higher priority needs the place of " + pod);
                      world_.kube().nodes().preempt({World::kNamespace, pod});
                    }});
  extra_.push_back({2, [=, this] {
                      // Under load, only probes fail. slurmctld and the clients of slurmd wait longer than the load lasts.
                      const std::string node = kube_node();
                      world_.oracles().note("machine " + node + " is under load");
                      world_.kube().nodes().load_node(node, true);
                      world_.loop().after(Duration{more_.between(5000, 100000)},
                                          [this, node] { world_.kube().nodes().load_node(node, false); });
                    }});
  extra_.push_back({1, [=, this] {
                      // Cuts a machine off while long jobs run, for longer than Kubernetes by default leaves pods on an
                      // unreachable machine.
                      const std::string node = kube_node();
                      if (SimSlurm* slurm = world_.slurm()) {
                        JobRequest job;
                        job.duration = Duration{more_.between(450000, 600000)};
                        for (const std::string& nodeset : kNodeSets) {
                          job.partition = nodeset;
                          (void)slurm->submit(job);
                        }
                        world_.loop().run_for(Duration{5000});
                      }
                      world_.oracles().note("machine " + node + " is cut off for long");
                      world_.kube().nodes().cut_node(node);
                      world_.loop().after(Duration{more_.between(320000, 400000)},
                                          [this, node] { world_.kube().nodes().heal_node(node); });
                    }});
  extra_.push_back({1, [this] {
                      // Slurm is slow for minutes. Each answer still comes before the client gives up.
                      history_.set_latency(Duration{more_.between(2000, 5000)});
                      world_.oracles().note(fmt::format("Slurm takes {} ms for each answer", history_.latency().count()));
                      world_.loop().after(Duration{more_.between(60000, 240000)}, [this] { history_.reset_latency(); });
                    }});
}

/// Changes the scalingMode of one NodeSet only. Two NodeSets would want the same Kubernetes nodes, and so the same Slurm names.
void OperatorWorkload::fill_modes() {
  const auto label = [this](const std::string& host, bool on) {
    world_.merge(kinds::kNode, host, {{"metadata", {{"labels", {{kPool, on ? Json("slurm") : Json(nullptr)}}}}}});
  };
  const auto host = [this] {
    return "kube-" + std::to_string(modes_.below(static_cast<std::uint64_t>(world_.options().kube_nodes)));
  };
  mode_actions_.push_back({4, [=, this] {
                             if (world_.find(slinky::resources::kNodeSet, kDaemons) == nullptr) return;
                             const bool daemons = modes_.chance(0.6);
                             const Json selector = daemons ? Json{{kPool, "slurm"}} : Json(nullptr);
                             world_.merge(slinky::resources::kNodeSet, kDaemons,
                                          {{"spec",
                                            {{"scalingMode", daemons ? "DaemonSet" : "StatefulSet"},
                                             {"template", {{"spec", {{"nodeSelector", selector}}}}}}}});
                           }});
  mode_actions_.push_back({6, [=, this] { label(host(), modes_.chance(0.7)); }});
  mode_actions_.push_back(
      {2, [=, this] {
         const std::string name = host();
         const Json hostname = modes_.chance(0.5) ? Json("rack-" + name) : Json(nullptr);
         world_.merge(kinds::kNode, name,
                      {{"metadata", {{"annotations", {{std::string(api::kAnnotationNodeHostnameOverride), hostname}}}}}});
       }});
}

}  // namespace sim
