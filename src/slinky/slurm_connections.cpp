#include "slinky/slurm_connections.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "api/controller.hpp"
#include "api/restapi.hpp"
#include "slinky/names.hpp"
#include "slinky/secret_key.hpp"
#include "slinky/serving.hpp"
#include "slurm/snapshot/keyed_cluster.hpp"

namespace slinky {

struct SlurmConnections::Impl : std::enable_shared_from_this<SlurmConnections::Impl> {
  Impl(core::Loop& l, kube::Client& k, slurm::Clusters& s, Wiring& w, std::function<void()> h, std::optional<kube::Key> o)
      : loop(l),
        client(k),
        clusters(s),
        wiring(w),
        controllers(w.cache(caches::kControllers)),
        restapis(w.cache(caches::kRestApis)),
        pods(w.cache(caches::kPods)),
        heard(std::move(h)),
        only(std::move(o)) {
    wiring.rights.add(kube::resources::kSecret, {"get"});
  }
  ~Impl() { clusters.unlisten(listener); }

  struct Cluster {
    Cluster(Impl& home, kube::Key of)
        : controller(std::move(of)), connection(home.loop, home.clusters, cluster_key(controller.ns, controller.name)) {}
    kube::Key controller;
    Serving serving;
    slurm::KeyedCluster connection;
  };

  core::Loop& loop;
  kube::Client& client;
  slurm::Clusters& clusters;
  Wiring& wiring;
  kube::Cache<kube::Object>&controllers, &restapis;
  kube::Cache<kube::PodRecord>& pods;
  std::function<void()> heard;
  std::optional<kube::Key> only;
  slurm::Clusters::ListenerId listener = 0;
  std::map<slurm::ClusterKey, Cluster> known;
  std::set<kube::Key> dirty;  ///< Controllers to examine in the next iteration of the loop.

  void start() {
    controllers.listen(
        [this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) { mark((after ? after : before)->meta.key()); });
    restapis.listen([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
      for (const kube::ObjectPtr& object : {before, after}) {
        if (object) mark(controller_ref(*object));
      }
    });
    pods.listen([this](const kube::PodPtr& before, const kube::PodPtr& after) { pod_moved(before, after); });
    listener = clusters.listen([this](const slurm::Change& change) { slurm_moved(change); });
  }

  void mark(const kube::Key& key) {
    if (only && key != *only) return;
    if (dirty.empty()) {
      loop.after(core::Duration{0}, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->settle();
      });
    }
    dirty.insert(key);
  }

  void settle() {
    for (const kube::Key& key : std::exchange(dirty, {})) look(key);
  }

  /// Polls a daemon at once when its pod becomes ready, instead of at the end of a backoff. Polls again soon if the daemon
  /// does not answer yet.
  void pod_moved(const kube::PodPtr& before, const kube::PodPtr& after) {
    const kube::PodRecord& pod = after ? *after : *before;
    const std::string_view app = pod.meta.label(api::kLabelName);
    if (app != kAppController && app != kAppRestApi) return;
    const bool was_ready = before && before->ready();
    const bool is_ready = after && after->ready();
    if (was_ready == is_ready) return;
    kube::Key controller{pod.meta.ns, std::string(pod.meta.label(api::kLabelInstance))};
    if (app == kAppRestApi) {
      const kube::ObjectPtr restapi = restapis.find(controller);
      if (!restapi) return;
      controller = controller_ref(*restapi);
    }
    mark(controller);
    if (is_ready) clusters.poll_often(cluster_key(controller.ns, controller.name));
  }

  [[nodiscard]] bool has_ready_pod(const kube::ObjectMeta& restapi) const {
    const auto its = pods.by_index(kIndexInstance, instance_key(restapi.ns, kAppRestApi, restapi.name));
    return std::ranges::any_of(its, [](const kube::PodPtr& pod) { return pod->ready() && !pod->meta.terminating(); });
  }

  [[nodiscard]] ServingObserved observe(const kube::Key& key) const {
    ServingObserved out;
    const kube::ObjectPtr object = controllers.find(key);
    if (!object || !wiring.acts_in(key.ns)) return out;
    out.meta = object->meta;
    if (auto controller = api::from_json<api::Controller>(object->body)) out.controller = std::move(*controller);
    for (const kube::ObjectPtr& restapi : restapis.by_index(kIndexController, key.str())) {
      Server& server = out.servers.emplace_back(Server{restapi->meta, std::nullopt, has_ready_pod(restapi->meta)});
      if (auto read = api::from_json<api::RestApi>(restapi->body)) server.restapi = std::move(*read);
    }
    const auto current = known.find(cluster_key(key.ns, key.name));
    if (current != known.end()) out.before = current->second.serving.restapi;
    return out;
  }

  void look(const kube::Key& key) {
    const slurm::ClusterKey cluster = cluster_key(key.ns, key.name);
    const std::optional<Serving> serving = plan_serving(observe(key));
    if (!serving) {
      const auto gone = known.find(cluster);
      if (gone == known.end()) return;
      // Disconnects before the entry is erased, so that slurm_moved() still finds the Controller for the last change.
      gone->second.connection.disconnect();
      known.erase(gone);
      return;
    }
    const auto [it, added] = known.try_emplace(cluster, *this, key);
    Cluster& own = it->second;
    if (!added && own.serving == *serving) return own.connection.read_missing_key();
    own.serving = *serving;
    own.connection.connect(serving->endpoint, secret_key(client, {key.ns, serving->key.secret}, serving->key.key));
  }

  void slurm_moved(const slurm::Change& change) {
    const auto it = known.find(change.cluster);
    if (it != known.end()) {
      it->second.connection.changed(change);
      wiring.slurm_changed(change, it->second.controller);
    }
    heard();
  }
};

SlurmConnections::SlurmConnections(core::Loop& loop, kube::Client& client, slurm::Clusters& clusters, Wiring& wiring,
                                   std::function<void()> heard, std::optional<kube::Key> only)
    : impl_(std::make_shared<Impl>(loop, client, clusters, wiring, std::move(heard), std::move(only))) {}
SlurmConnections::~SlurmConnections() = default;
void SlurmConnections::start() {
  impl_->start();
}

}  // namespace slinky
