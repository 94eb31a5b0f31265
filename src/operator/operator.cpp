#include "operator/operator.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include "api/well_known.hpp"
#include "cluster/caches.hpp"
#include "cluster/config_map.hpp"
#include "cluster/names.hpp"
#include "cluster/slurm_connections.hpp"
#include "cluster/workers.hpp"
#include "operator/controller/observe.hpp"
#include "operator/nodeset/observe.hpp"
#include "operator/restapi/observe.hpp"
#include "operator/token/observe.hpp"
#include "slurm/rest/target.hpp"

namespace op {
namespace {

using kube::Key;
using kube::Object;
using kube::PodRecord;
using Keys = std::vector<Key>;

/// Index of pods by the Kubernetes node on which they run.
constexpr std::string_view kIndexNode = "node";

/// True when somebody changed what is wanted: the spec, or whether it is to go. Status alone does not count.
bool intent_changed(const Object& before, const Object& after) {
  return before.meta.generation != after.meta.generation || before.meta.terminating() != after.meta.terminating() ||
         before.meta.finalizers != after.meta.finalizers || before.meta.uid != after.meta.uid;
}

Key controller_ref(const Object& object) {
  return {object.meta.ns, core::get_string(object.body, {"spec", "controllerRef", "name"})};
}

Keys keys_of(const std::vector<kube::ObjectPtr>& objects) {
  Keys keys;
  for (const kube::ObjectPtr& object : objects) keys.push_back(object->meta.key());
  return keys;
}

}  // namespace

struct Operator::Impl {
  Impl(core::Loop& loop, core::Random& random, core::Logger& log, kube::Manager& kube_manager,
       slurm::Clusters::TransportFactory transport, OperatorOptions given)
      : manager(kube_manager),
        options(std::move(given)),
        // The Lease fences writes to Slurm too.
        clusters(loop, random, log, std::move(transport), {},
                 {.write_deadline = [this] { return manager.client().write_deadline(); }}),
        caches(make_caches()),
        nodes(manager.cache<kube::NodeRecord>(kube::resources::kNode)),
        target(loop, clusters),
        connections(loop, log, manager.client(), clusters, caches,
                    {[this](std::string_view name, const Key& key) { wake(name, key); }, [this] { manager.caches_changed(); },
                     [this](std::string_view ns) { return acts_in(ns); }}),
        controller(caches),
        restapi(caches),
        token(caches),
        nodeset(caches,
                [this](std::string_view name) -> std::optional<nodeset::KubeNode> {
                  const auto node = nodes.find({"", std::string(name)});
                  if (!node) return {};
                  return nodeset::KubeNode{node->unschedulable,
                                           std::string(node->meta.annotation(api::kAnnotationNodeCordonReason)), node->ready};
                },
                {options.cluster_domain, [this](const slurm::ClusterKey& cluster) { clusters.hurry(cluster); },
                 options.worker_priority_class}) {
    add_indices(caches);
    caches.pods.add_index(std::string(kIndexNode), [](const PodRecord& pod) {
      return pod.node_name.empty() ? std::vector<std::string>{} : std::vector{pod.node_name};
    });
    manager.add_target(target);
    manager.add(controller);
    manager.add(restapi);
    manager.add(token);
    manager.add(nodeset);
    watch_for_controllers();
    watch_for_restapis();
    watch<Object>(token, caches.tokens, kube::self<Object>());
    watch<kube::SecretRecord>(token, caches.token_secrets, kube::controller_owner<kube::SecretRecord>(resources::kToken.kind));
    watch_for_nodesets();
    connections.start();
    manager.on_leading([this] { clusters.distrust(); });
  }

  [[nodiscard]] bool acts_in(std::string_view ns) const {
    return options.namespaces.empty() || std::ranges::find(options.namespaces, ns) != options.namespaces.end();
  }

  void wake(std::string_view name, const Key& key) {
    if (acts_in(key.ns)) manager.wake(name, key);
  }

  template <class Record>
  kube::Cache<Record>& cache(const kube::Resource& resource, std::string_view label_selector = "") {
    kube::Scope scope;
    scope.label_selector = label_selector;
    if (options.namespaces.size() == 1) scope.ns = options.namespaces.front();
    return manager.cache<Record>(resource, scope);
  }

  Caches make_caches() {
    namespace core_kinds = kube::resources;
    return {cache<Object>(resources::kController),
            cache<Object>(resources::kRestApi),
            cache<Object>(resources::kNodeSet),
            cache<Object>(resources::kToken),
            cache<PodRecord>(core_kinds::kPod, kChildSelector),
            cache<Object>(core_kinds::kService, kChildSelector),
            cache<Object>(core_kinds::kConfigMap, kChildSelector),
            cache<Object>(core_kinds::kStatefulSet, kChildSelector),
            cache<Object>(core_kinds::kDeployment, kChildSelector),
            cache<Object>(core_kinds::kPodDisruptionBudget, kChildSelector),
            cache<Object>(core_kinds::kControllerRevision, kChildSelector),
            cache<Object>(core_kinds::kPersistentVolumeClaim, kClaimSelector),
            cache<kube::SecretRecord>(core_kinds::kSecret, kTokenSelector),
            [this](const slurm::ClusterKey& cluster) { return clusters.snapshot(cluster); }};
  }

  template <class Record>
  void watch(kube::Controller& who, kube::Cache<Record>& source, std::function<Keys(const Record&)> map,
             kube::Manager::Filter<Record> filter = {}) {
    manager.watch<Record>(
        who, source,
        [this, map = std::move(map)](const Record& record) {
          return acts_in(record.meta.ns) || record.meta.ns.empty() ? map(record) : Keys{};
        },
        std::move(filter));
  }

  void watch_for_controllers() {
    watch<Object>(controller, caches.controllers, kube::self<Object>());
    const auto referenced = [](const Object& object) { return Keys{controller_ref(object)}; };
    watch<Object>(controller, caches.nodesets, referenced, intent_changed);
    watch<Object>(controller, caches.restapis, referenced, intent_changed);
    for (kube::Cache<Object>* children :
         {&caches.services, &caches.config_maps, &caches.stateful_sets, &caches.pod_disruption_budgets}) {
      watch<Object>(controller, *children, kube::controller_owner<Object>(resources::kController.kind));
    }
    watch<Object>(controller, caches.claims, [](const Object& claim) {
      return Keys{{claim.meta.ns, std::string(claim.meta.label(api::kLabelInstance))}};
    });
    watch<PodRecord>(controller, caches.pods, [](const PodRecord& pod) -> Keys {
      if (pod.meta.label(api::kLabelName) != kAppController) return {};
      return {{pod.meta.ns, std::string(pod.meta.label(api::kLabelInstance))}};
    });
    watch_ending_workers(controller, [](const Key& key) { return Keys{key}; });
    // Those whose NodeSet is gone keep its partition.
    watch<PodRecord>(
        controller, caches.pods,
        [this](const PodRecord& pod) -> Keys {
          if (pod.meta.label(api::kLabelName) != kAppWorker) return {};
          const Key key{pod.meta.ns, std::string(pod.meta.label(api::kLabelCluster))};
          const kube::ObjectPtr owner = caches.nodesets.find({pod.meta.ns, std::string(pod.meta.label(api::kLabelInstance))});
          return owner && controller_ref(*owner) == key ? Keys{} : Keys{key};
        },
        [](const PodRecord&, const PodRecord&) { return false; });
  }

  /// Workers that appear or go matter to a Controller that waits for the last of them, and to its RestApis.
  void watch_ending_workers(kube::Controller& who, const std::function<Keys(const Key&)>& of_controller) {
    watch<PodRecord>(
        who, caches.pods,
        [this, of_controller](const PodRecord& pod) -> Keys {
          if (pod.meta.label(api::kLabelName) != kAppWorker) return {};
          const Key key{pod.meta.ns, std::string(pod.meta.label(api::kLabelCluster))};
          const kube::ObjectPtr owner = caches.controllers.find(key);
          return owner && owner->meta.terminating() ? of_controller(key) : Keys{};
        },
        [](const PodRecord&, const PodRecord&) { return false; });
  }

  void watch_for_restapis() {
    watch<Object>(restapi, caches.restapis, kube::self<Object>());
    const auto of_controller = [this](const Key& key) {
      return keys_of(caches.restapis.by_index(kIndexController, cluster_key(key.ns, key.name)));
    };
    watch<Object>(
        restapi, caches.controllers, [of_controller](const Object& object) { return of_controller(object.meta.key()); },
        intent_changed);
    watch<Object>(
        restapi, caches.nodesets, [of_controller](const Object& object) { return of_controller(controller_ref(object)); },
        intent_changed);
    watch_ending_workers(restapi, of_controller);
    // slurmrestd starts once there is a slurm.conf; of later ones only what slurmctld restarts for is its concern.
    watch<Object>(
        restapi, caches.config_maps,
        [of_controller](const Object& object) -> Keys {
          const kube::OwnerReference* owner = object.meta.controller_owner();
          if (owner == nullptr || owner->kind != resources::kController.kind) return {};
          return of_controller({object.meta.ns, owner->name});
        },
        [](const Object& before, const Object& after) {
          const auto digest = [](const Object& map) {
            return restart_digest(core::get_string(map.body, {"data", kSlurmConf}));
          };
          return digest(before) != digest(after);
        });
    for (kube::Cache<Object>* children : {&caches.services, &caches.deployments}) {
      watch<Object>(restapi, *children, kube::controller_owner<Object>(resources::kRestApi.kind));
    }
    watch<PodRecord>(restapi, caches.pods, [](const PodRecord& pod) -> Keys {
      if (pod.meta.label(api::kLabelName) != kAppRestApi) return {};
      return {{pod.meta.ns, std::string(pod.meta.label(api::kLabelInstance))}};
    });
  }

  void watch_for_nodesets() {
    watch<Object>(nodeset, caches.nodesets, kube::self<Object>());
    watch<Object>(
        nodeset, caches.controllers,
        [this](const Object& object) {
          return keys_of(caches.nodesets.by_index(kIndexController, cluster_key(object.meta.ns, object.meta.name)));
        },
        [](const Object& before, const Object& after) {
          return intent_changed(before, after) || tells_end(before) != tells_end(after) ||
                 stops_deletions(before.meta) != stops_deletions(after.meta);
        });
    // Partitions that slurmctld refuses are told by their NodeSets.
    watch<Object>(
        nodeset, caches.config_maps,
        [this](const Object& object) -> Keys {
          const kube::OwnerReference* owner = object.meta.controller_owner();
          if (owner == nullptr || owner->kind != resources::kController.kind) return {};
          return keys_of(caches.nodesets.by_index(kIndexController, cluster_key(object.meta.ns, owner->name)));
        },
        [](const Object& before, const Object& after) { return read_left_out(before) != read_left_out(after); });
    watch<PodRecord>(nodeset, caches.pods, kube::controller_owner<PodRecord>(resources::kNodeSet.kind));
    // The end of an orphan makes room for its successor.
    watch<PodRecord>(nodeset, caches.pods, [this](const PodRecord& pod) -> Keys {
      if (pod.meta.controller_owner() != nullptr || pod.meta.label(api::kLabelName) != kAppWorker) return {};
      const Key key{pod.meta.ns, std::string(pod.meta.label(api::kLabelInstance))};
      return caches.nodesets.find(key) == nullptr ? Keys{} : Keys{key};
    });
    watch<Object>(nodeset, caches.controller_revisions, kube::controller_owner<Object>(resources::kNodeSet.kind));
    watch<kube::NodeRecord>(
        nodeset, nodes,
        [this](const kube::NodeRecord& node) {
          Keys keys;
          for (const kube::PodPtr& pod : caches.pods.by_index(kIndexNode, node.meta.name)) {
            const kube::OwnerReference* owner = pod->meta.controller_owner();
            if (owner != nullptr && owner->kind == resources::kNodeSet.kind && acts_in(pod->meta.ns)) {
              keys.push_back({pod->meta.ns, owner->name});
            }
          }
          return keys;
        },
        [](const kube::NodeRecord& before, const kube::NodeRecord& after) {
          return before.unschedulable != after.unschedulable || before.ready != after.ready ||
                 before.meta.annotations != after.meta.annotations;
        });
  }

  kube::Manager& manager;
  OperatorOptions options;
  slurm::Clusters clusters;
  Caches caches;
  kube::Cache<kube::NodeRecord>& nodes;
  slurm::Target target;
  SlurmConnections connections;
  controller::ControllerController controller;
  restapi::RestApiController restapi;
  token::TokenController token;
  nodeset::NodeSetController nodeset;
};

Operator::Operator(core::Loop& loop, core::Random& random, core::Logger& log, kube::Manager& manager,
                   slurm::Clusters::TransportFactory slurm_transport, OperatorOptions options)
    : impl_(std::make_unique<Impl>(loop, random, log, manager, std::move(slurm_transport), std::move(options))) {}
Operator::~Operator() = default;

slurm::Clusters& Operator::clusters() {
  return impl_->clusters;
}

}  // namespace op
