// The actions of users on their cluster, and of administrators on Kubernetes nodes.
#include <fmt/format.h>

#include <algorithm>

#include "api/well_known.hpp"
#include "sim/programs/operator/workload.hpp"
#include "sim/programs/operator/workload_parts.hpp"
#include "sim/slurm/text.hpp"
#include "slinky/names.hpp"

namespace sim {

using core::Json;
namespace kinds = kube::resources;

void OperatorWorkload::touch_logins() {
  const kube::Resource& kind = slinky::resources::kLoginSet;
  const auto edit = [&](const Json& spec) { world_.merge(kind, kLogin, {{"spec", spec}}); };
  if (world_.find(kind, kLogin) == nullptr) return world_.apply(loginset_json(static_cast<int>(logins_.between(0, 2))));
  switch (logins_.below(10)) {
    case 0:
      return world_.remove(kind, kLogin, logins_.chance(0.5) ? "Background" : "Foreground");
    case 1:
      return edit({{"login", {{"image", logins_.chance(0.5) ? Json(kNoImage) : Json(nullptr)}}}});
    case 2:
      return edit({{"extraSshdConfig", fmt::format("MaxSessions {}\n", logins_.between(1, 9))}});
    case 3:
      return world_.remove(kinds::kSecret, slinky::ssh_host_keys_name(kLogin));
    case 4:
    case 5:
      return edit(
          {{"rootSshAuthorizedKeys", fmt::format("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA root{}\n", logins_.between(1, 9))}});
    case 6:
      return edit({{"replicas", logins_.between(0, 3)}});
    case 7:
      if (world_.find(kinds::kEndpointSlice, slinky::login_hosts_name(kLogin)) == nullptr) return;
      return logins_.chance(0.5)
                 ? world_.remove(kinds::kEndpointSlice, slinky::login_hosts_name(kLogin))
                 : world_.merge(kinds::kEndpointSlice, slinky::login_hosts_name(kLogin), {{"endpoints", Json::array()}});
    default:
      return touch_sshd(kNodeSets[logins_.below(kNodeSets.size())]);
  }
}

/// Changes sshd on the workers of a NodeSet, if it exists.
void OperatorWorkload::touch_sshd(const std::string& nodeset) {
  if (world_.find(slinky::resources::kNodeSet, nodeset) == nullptr) return;
  if (logins_.chance(0.3)) return world_.remove(kinds::kSecret, slinky::worker_ssh_host_keys_name(nodeset));
  const Json ssh = logins_.chance(0.3) ? Json(nullptr) : Json{{"enabled", logins_.chance(0.8)}};
  world_.merge(slinky::resources::kNodeSet, nodeset, {{"spec", {{"ssh", ssh}}}});
}

void OperatorWorkload::touch_accounting() {
  const kube::Resource& kind = slinky::resources::kAccounting;
  const bool there = world_.find(kind, kAccounting) != nullptr;
  const auto names = [&](const Json& ref) {
    if (world_.find(slinky::resources::kController, World::kCluster) != nullptr)
      world_.merge(slinky::resources::kController, World::kCluster, {{"spec", {{"accountingRef", ref}}}});
  };
  switch (accounting_.below(5)) {
    case 0:
      return there ? world_.remove(kind, kAccounting) : world_.apply(accounting_json());
    case 1:
      if (there) world_.merge(kind, kAccounting, {{"spec", {{"externalConfig", {{"port", accounting_.between(7000, 7003)}}}}}});
      return;
    case 2:
      return names(nullptr);
    default:
      return names({{"name", kAccounting}});
  }
}

void OperatorWorkload::fill_user_actions() {
  const auto any_nodeset = [this] { return some(world_.names(slinky::resources::kNodeSet)); };
  actions_.push_back({14, [=, this] {
                        const std::string name = any_nodeset();
                        if (!name.empty())
                          world_.merge(slinky::resources::kNodeSet, name, {{"spec", {{"replicas", random_.between(0, 5)}}}});
                      }});
  actions_.push_back({6, [=, this] {
                        const std::string name = any_nodeset();
                        if (!name.empty()) change_mind(name);
                      }});
  actions_.push_back({6, [=, this] {
                        const std::string name = any_nodeset();
                        const Json conf(fmt::format("CPUs=2 RealMemory=1000 TmpDisk={}", ++edits_));
                        if (!name.empty()) world_.merge(slinky::resources::kNodeSet, name, {{"spec", {{"extraConf", conf}}}});
                      }});
  actions_.push_back(
      {6, [=, this] {
         const std::string name = any_nodeset();
         const Json image = random_.chance(0.5) ? Json(nullptr) : random_.chance(0.7) ? Json(kNoImage) : Json(kOtherSlurmd);
         if (!name.empty()) world_.merge(slinky::resources::kNodeSet, name, {{"spec", {{"slurmd", {{"image", image}}}}}});
       }});
  actions_.push_back({6, [=, this] {
                        const std::string name = any_nodeset();
                        const Json config(random_.chance(0.5) ? "State=UP" : "MaxTime=60");
                        if (!name.empty())
                          world_.merge(slinky::resources::kNodeSet, name, {{"spec", {{"partition", {{"config", config}}}}}});
                      }});
  actions_.push_back({2, [=, this] {
                        const std::string name = any_nodeset();
                        if (!name.empty())
                          world_.remove(slinky::resources::kNodeSet, name, random_.chance(0.5) ? "Background" : "Foreground");
                      }});
  actions_.push_back({1, [=, this] {
                        const std::string name = any_nodeset();
                        if (!name.empty()) world_.remove(slinky::resources::kNodeSet, name, "Orphan");
                      }});
  actions_.push_back({1, [=, this] {
                        const std::string name = any_nodeset();
                        const Json enabled(random_.chance(0.6));
                        if (!name.empty())
                          world_.merge(slinky::resources::kNodeSet, name, {{"spec", {{"partition", {{"enabled", enabled}}}}}});
                      }});
  actions_.push_back(
      {1, [this] {
         world_.merge(slinky::resources::kRestApi, World::kCluster, {{"spec", {{"replicas", random_.between(1, 2)}}}});
       }});
  actions_.push_back(
      {1, [this] {
         const Json image = random_.chance(0.5) ? Json(kOtherSlurmctld) : Json(nullptr);
         world_.merge(slinky::resources::kController, World::kCluster, {{"spec", {{"slurmctld", {{"image", image}}}}}});
       }});
  actions_.push_back({4, [this] {
                        const std::string name = some(kNodeSets);
                        if (world_.find(slinky::resources::kNodeSet, name) == nullptr)
                          world_.apply(nodeset(name, static_cast<int>(random_.between(0, 3))));
                      }});
  actions_.push_back({1, [this] { world_.remove(slinky::resources::kRestApi, World::kCluster); }});
  actions_.push_back({1, [this] {
                        if (random_.chance(0.3)) {
                          world_.remove(slinky::resources::kController, World::kCluster,
                                        random_.chance(0.4) ? "Orphan" : "Background");
                        }
                      }});
  actions_.push_back({1, [this] {
                        if (random_.chance(0.2)) world_.tear_away(slinky::resources::kController, World::kCluster);
                      }});
  actions_.push_back({2, [this] {
                        if (world_.find(slinky::resources::kRestApi, World::kCluster) == nullptr) world_.apply(restapi_json());
                        if (world_.find(slinky::resources::kController, World::kCluster) == nullptr) world_.apply(controller());
                      }});
  actions_.push_back({2, [this] {
                        const Json conf(fmt::format("MessageTimeout={}\n", 10 + ++edits_));
                        world_.merge(slinky::resources::kController, World::kCluster, {{"spec", {{"extraConf", conf}}}});
                      }});
  actions_.push_back({1, [this] {
                        // slurmctld refuses this configuration, which the operator cannot know.
                        const Json conf(kRefusedConf);
                        world_.merge(slinky::resources::kController, World::kCluster, {{"spec", {{"extraConf", conf}}}});
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

void OperatorWorkload::fill_drains() {
  draining_.push_back({3, [this] {
                         const std::vector<std::string> nodesets = world_.names(slinky::resources::kNodeSet);
                         if (nodesets.empty()) return;
                         const std::string& name = nodesets[drains_.below(nodesets.size())];
                         const char* const whens[] = {"0s", "20s", "1m30s"};
                         const char* const whats[] = {"Wait", "Requeue", "Cancel"};
                         const Json when(whens[drains_.below(3)]), what(whats[drains_.below(3)]);
                         const bool any = drains_.chance(0.8);
                         const Json policy = any ? Json{{"timeout", when}, {"onTimeout", what}} : Json(nullptr);
                         world_.merge(slinky::resources::kNodeSet, name, {{"spec", {{"drainPolicy", policy}}}});
                       }});
  draining_.push_back({4, [this] {
                         const std::string node =
                             "kube-" + std::to_string(drains_.below(static_cast<std::uint64_t>(world_.options().kube_nodes)));
                         const std::string key(api::kDrainTaints[drains_.below(api::kDrainTaints.size())]);
                         taint(node, drains_.chance(0.5) ? "NoSchedule" : "", key);
                       }});
  draining_.push_back({1, [this] {
                         const std::vector<std::string> workers = world_.workers();
                         if (workers.empty()) return;
                         const Json value = drains_.chance(0.5) ? Json("true") : Json(nullptr);
                         world_.merge(
                             kinds::kPod, workers[drains_.below(workers.size())],
                             {{"metadata", {{"annotations", {{std::string(api::kAnnotationPodCordonRequested), value}}}}}});
                       }});
}

/// Uses a canary, a pause, or maintenance windows while templates change.
void OperatorWorkload::fill_updates() {
  const auto edit = [this](const Json& spec) {
    const std::vector<std::string> names = world_.names(slinky::resources::kNodeSet);
    if (!names.empty()) world_.merge(slinky::resources::kNodeSet, names[updates_.below(names.size())], {{"spec", spec}});
  };
  updating_.push_back({3, [=, this] {
                         const Json partition(updates_.between(0, 4));
                         edit({{"updateStrategy", {{"rollingUpdate", {{"partition", partition}}}}}});
                       }});
  updating_.push_back(
      {3, [=, this] {
         const std::vector<std::string> names = world_.names(slinky::resources::kNodeSet);
         if (names.empty()) return;
         const std::string& name = names[updates_.below(names.size())];
         const std::string now = core::get_string(*world_.find(slinky::resources::kNodeSet, name), {"spec", "extraConf"});
         std::string conf;
         for (const std::string& word : split(now, ' ')) {
           if (!word.starts_with("Features=") && !word.starts_with("Weight=")) conf += word + " ";
         }
         const Json extra(conf + fmt::format("Features=f{} Weight={}", updates_.below(3), 1 + updates_.below(3)));
         world_.merge(slinky::resources::kNodeSet, name, {{"spec", {{"extraConf", extra}}}});
       }});
  updating_.push_back({2, [this] {
                         const char* const specs[] = {"zone-a", "zone-b, fast"};
                         const auto of = static_cast<std::uint64_t>(world_.options().kube_nodes);
                         const std::string node = "kube-" + std::to_string(updates_.below(of));
                         const Json spec = updates_.chance(0.25) ? Json(nullptr) : Json(specs[updates_.below(2)]);
                         world_.merge(kinds::kNode, node,
                                      {{"metadata", {{"annotations", {{std::string(api::kAnnotationFeaturesSpec), spec}}}}}});
                       }});
  updating_.push_back({2, [=, this] {
                         if (updates_.chance(0.3)) return edit({{"updateStrategy", {{"type", "RollingUpdate"}}}});
                         const core::Duration in{1000 * updates_.between(-60, 240)};
                         Json flags = Json::array();
                         if (updates_.chance(0.3)) flags.push_back(updates_.chance(0.7) ? "HOURLY" : "DAILY");
                         edit({{"updateStrategy",
                                {{"type", "ScheduledUpdate"},
                                 {"scheduledUpdate",
                                  {{"startTime", core::format_rfc3339(world_.loop().clock().wall() + in)},
                                   {"duration", fmt::format("{}m", updates_.between(1, 6))},
                                   {"flags", std::move(flags)}}}}}});
                       }});
  updating_.push_back({1, [=, this] {
                         const Json paused(updates_.chance(0.4));
                         edit({{"updateStrategy", {{"paused", paused}}}});
                       }});
  updating_.push_back({2, [=, this] {
                         const Json image = updates_.chance(0.4) ? Json(nullptr) : Json(kOtherSlurmd);
                         edit({{"slurmd", {{"image", image}}}});
                       }});
}

}  // namespace sim
