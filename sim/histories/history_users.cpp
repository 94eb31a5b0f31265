// What users do to their cluster, and administrators to Kubernetes nodes.
#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "cluster/names.hpp"
#include "sim/histories/history.hpp"
#include "sim/histories/history_parts.hpp"

namespace sim {

using core::Json;
namespace kinds = kube::resources;

void History::fill_user_actions() {
  const auto any_nodeset = [this] { return some(world_.names(op::resources::kNodeSet)); };
  actions_.push_back({14, [=, this] {
                        const std::string name = any_nodeset();
                        if (!name.empty())
                          world_.merge(op::resources::kNodeSet, name, {{"spec", {{"replicas", random_.between(0, 5)}}}});
                      }});
  actions_.push_back({6, [=, this] {
                        const std::string name = any_nodeset();
                        if (!name.empty()) change_mind(name);
                      }});
  actions_.push_back({6, [=, this] {
                        const std::string name = any_nodeset();
                        const Json conf(fmt::format("CPUs=2 RealMemory=1000 Weight={}", ++edits_));
                        if (!name.empty()) world_.merge(op::resources::kNodeSet, name, {{"spec", {{"extraConf", conf}}}});
                      }});
  actions_.push_back(
      {6, [=, this] {
         const std::string name = any_nodeset();
         const Json image = random_.chance(0.5) ? Json(nullptr) : random_.chance(0.7) ? Json(kNoImage) : Json(kOtherSlurmd);
         if (!name.empty()) world_.merge(op::resources::kNodeSet, name, {{"spec", {{"slurmd", {{"image", image}}}}}});
       }});
  actions_.push_back({6, [=, this] {
                        const std::string name = any_nodeset();
                        const Json config(random_.chance(0.5) ? "State=UP" : "MaxTime=60");
                        if (!name.empty())
                          world_.merge(op::resources::kNodeSet, name, {{"spec", {{"partition", {{"config", config}}}}}});
                      }});
  actions_.push_back({2, [=, this] {
                        const std::string name = any_nodeset();
                        if (!name.empty())
                          world_.remove(op::resources::kNodeSet, name, random_.chance(0.5) ? "Background" : "Foreground");
                      }});
  actions_.push_back({1, [=, this] {
                        const std::string name = any_nodeset();
                        if (!name.empty()) world_.remove(op::resources::kNodeSet, name, "Orphan");
                      }});
  actions_.push_back({1, [=, this] {
                        const std::string name = any_nodeset();
                        const Json enabled(random_.chance(0.6));
                        if (!name.empty())
                          world_.merge(op::resources::kNodeSet, name, {{"spec", {{"partition", {{"enabled", enabled}}}}}});
                      }});
  actions_.push_back(
      {1, [this] {
         world_.merge(op::resources::kRestApi, World::kCluster, {{"spec", {{"replicas", random_.between(1, 2)}}}});
       }});
  actions_.push_back(
      {1, [this] {
         const Json image = random_.chance(0.5) ? Json(kOtherSlurmctld) : Json(nullptr);
         world_.merge(op::resources::kController, World::kCluster, {{"spec", {{"slurmctld", {{"image", image}}}}}});
       }});
  actions_.push_back({4, [this] {
                        const std::string name = some(kNodeSets);
                        if (world_.find(op::resources::kNodeSet, name) == nullptr)
                          world_.apply(nodeset_json(name, static_cast<int>(random_.between(0, 3))));
                      }});
  actions_.push_back({1, [this] { world_.remove(op::resources::kRestApi, World::kCluster); }});
  actions_.push_back({1, [this] {
                        if (random_.chance(0.3)) {
                          world_.remove(op::resources::kController, World::kCluster,
                                        random_.chance(0.4) ? "Orphan" : "Background");
                        }
                      }});
  actions_.push_back({1, [this] {
                        if (random_.chance(0.2)) world_.tear_away(op::resources::kController, World::kCluster);
                      }});
  actions_.push_back({2, [this] {
                        if (world_.find(op::resources::kRestApi, World::kCluster) == nullptr) world_.apply(restapi_json());
                        if (world_.find(op::resources::kController, World::kCluster) == nullptr) world_.apply(controller());
                      }});
  actions_.push_back({2, [this] {
                        const Json conf(fmt::format("MessageTimeout={}\n", 10 + ++edits_));
                        world_.merge(op::resources::kController, World::kCluster, {{"spec", {{"extraConf", conf}}}});
                      }});
  actions_.push_back({1, [this] {
                        // slurmctld refuses it; the operator cannot know.
                        const Json conf(kRefusedConf);
                        world_.merge(op::resources::kController, World::kCluster, {{"spec", {{"extraConf", conf}}}});
                      }});
  actions_.push_back({4, [this] {
                        const std::string pod = some(world_.workers());
                        if (!pod.empty()) world_.remove(kinds::kPod, pod);
                      }});
  actions_.push_back({1, [this] {
                        const std::string pod = some(world_.workers());
                        if (!pod.empty()) world_.evict(pod);
                      }});
  actions_.push_back({2, [this] {
                        std::vector<std::string> others;
                        const std::vector<std::string> mine = world_.workers();
                        for (const std::string& name : world_.names(kinds::kPod)) {
                          if (std::find(mine.begin(), mine.end(), name) == mine.end()) others.push_back(name);
                        }
                        const std::string pod = some(others);
                        if (!pod.empty()) world_.remove(kinds::kPod, pod);
                      }});
  actions_.push_back({3, [this] {
                        const std::string node =
                            "kube-" + std::to_string(random_.below(static_cast<std::uint64_t>(world_.options().kube_nodes)));
                        world_.merge(kinds::kNode, node, {{"spec", {{"unschedulable", random_.chance(0.4)}}}});
                      }});
  actions_.push_back(
      {3, [this] {
         const std::string pod = some(world_.workers());
         if (pod.empty()) return;
         const Json value = random_.chance(0.6) ? Json("true") : Json(nullptr);
         world_.merge(kinds::kPod, pod, {{"metadata", {{"annotations", {{std::string(api::kAnnotationPodCordon), value}}}}}});
       }});
  actions_.push_back({1, [this] {
                        const std::string pod = some(world_.workers());
                        const Json cost(std::to_string(random_.between(-5, 5)));
                        if (!pod.empty()) {
                          world_.merge(
                              kinds::kPod, pod,
                              {{"metadata", {{"annotations", {{std::string(api::kAnnotationPodDeletionCost), cost}}}}}});
                        }
                      }});
}

}  // namespace sim
