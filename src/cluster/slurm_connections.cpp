#include "cluster/slurm_connections.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "api/controller.hpp"
#include "api/restapi.hpp"
#include "cluster/names.hpp"
#include "core/base64.hpp"

namespace op {
namespace {

/// How soon a failing connection's key is read again, and how soon a missing one is.
constexpr core::Duration kReadAgain{5000};

struct Served {
  std::string restapi;  ///< The RestApi's name.
  slurm::Endpoint endpoint;
  KeyRef key;
  friend bool operator==(const Served&, const Served&) = default;
};

bool has_ready_pod(const Caches& caches, const kube::ObjectMeta& restapi) {
  const auto pods = caches.pods.by_index(kIndexInstance, instance_key(restapi.ns, kAppRestApi, restapi.name));
  return std::any_of(pods.begin(), pods.end(),
                     [](const kube::PodPtr& pod) { return pod->ready() && !pod->meta.terminating(); });
}

}  // namespace

struct SlurmConnections::Impl : std::enable_shared_from_this<SlurmConnections::Impl> {
  Impl(core::Loop& l, core::Logger& g, kube::Client& k, slurm::Clusters& s, const Caches& c, Hooks h)
      : loop(l), log(g), client(k), clusters(s), caches(c), hooks(std::move(h)) {}
  ~Impl() { clusters.unlisten(listener); }

  struct Cluster {
    explicit Cluster(core::Loop& loop) : again(loop) {}
    Served served;
    bool reading = false;
    core::Timer again;
  };

  core::Loop& loop;
  core::Logger& log;
  kube::Client& client;
  slurm::Clusters& clusters;
  const Caches& caches;
  Hooks hooks;
  slurm::Clusters::ListenerId listener = 0;
  std::map<kube::Key, Cluster> known;
  std::set<kube::Key> dirty;  ///< Controllers to look at again, once the caches have settled.

  void start() {
    caches.controllers.listen(
        [this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) { mark((after ? after : before)->meta.key()); });
    caches.restapis.listen([this](const kube::ObjectPtr& before, const kube::ObjectPtr& after) {
      for (const kube::ObjectPtr& object : {before, after}) {
        if (object) mark({object->meta.ns, core::get_string(object->body, {"spec", "controllerRef", "name"})});
      }
    });
    caches.pods.listen([this](const kube::PodPtr& before, const kube::PodPtr& after) { pod_moved(before, after); });
    listener = clusters.listen([this](const slurm::Change& change) { slurm_moved(change); });
  }

  void mark(const kube::Key& key) {
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

  /// A daemon that has just become ready is asked at once, instead of at the end of a backoff.
  void pod_moved(const kube::PodPtr& before, const kube::PodPtr& after) {
    const kube::PodRecord& pod = after ? *after : *before;
    const std::string_view app = pod.meta.label(api::kLabelName);
    if (app != kAppController && app != kAppRestApi) return;
    const bool was_ready = before && before->ready();
    const bool is_ready = after && after->ready();
    if (was_ready == is_ready) return;
    kube::Key controller{pod.meta.ns, std::string(pod.meta.label(api::kLabelInstance))};
    if (app == kAppRestApi) {
      const kube::ObjectPtr restapi = caches.restapis.find(controller);
      if (!restapi) return;
      controller.name = core::get_string(restapi->body, {"spec", "controllerRef", "name"});
    }
    mark(controller);
    if (is_ready) clusters.poke(controller.str());
  }

  [[nodiscard]] std::optional<Served> choose(const kube::Key& key) const {
    if (hooks.acts_in && !hooks.acts_in(key.ns)) return {};
    const kube::ObjectPtr object = caches.controllers.find(key);
    if (!object) return {};
    const auto controller = api::from_json<api::Controller>(object->body);
    if (!controller || controller->spec.external) return {};
    // The cluster ends without drain: nothing waits for its Slurm any more, which may be gone before us.
    const bool drains = controller->spec.deletion_policy == api::DeletionPolicy::kDrain;
    if (object->meta.terminating() && !drains) return {};
    std::vector<kube::ObjectPtr> restapis = caches.restapis.by_index(kIndexController, key.str());
    if (restapis.empty()) return {};
    const auto current = known.find(key);
    const std::string before = current == known.end() ? "" : current->second.served.restapi;
    const auto rank = [&](const kube::ObjectPtr& restapi) {
      const bool ready = has_ready_pod(caches, restapi->meta);
      return std::tuple(!ready, !ready && restapi->meta.name != before, restapi->meta.created, restapi->meta.name);
    };
    const kube::ObjectPtr best =
        *std::min_element(restapis.begin(), restapis.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    const auto restapi = api::from_json<api::RestApi>(best->body);
    if (!restapi) return {};
    const Endpoint endpoint = restapi_endpoint(restapi->spec, key.ns, best->meta.name);
    return Served{
        best->meta.name, {endpoint.host, static_cast<std::uint16_t>(endpoint.port)}, jwt_key_ref(controller->spec, key.name)};
  }

  void look(const kube::Key& key) {
    const std::optional<Served> served = choose(key);
    if (!served) {
      if (known.erase(key) > 0) clusters.remove(key.str());
      return;
    }
    const auto [it, added] = known.try_emplace(key, loop);
    if (added || !(it->second.served == *served) || !clusters.contains(key.str())) {
      it->second.served = *served;
      read_key(key);
    }
  }

  void read_key(const kube::Key& key) {
    const auto it = known.find(key);
    if (it == known.end() || it->second.reading) return;
    it->second.reading = true;
    it->second.again.cancel();
    client.get(kube::resources::kSecret, {key.ns, it->second.served.key.secret},
               [weak = weak_from_this(), key, asked = it->second.served](core::Result<core::Json> secret) {
                 if (const auto self = weak.lock()) self->key_read(key, asked, secret);
               });
  }

  void key_read(const kube::Key& key, const Served& asked, const core::Result<core::Json>& secret) {
    const auto it = known.find(key);
    if (it == known.end()) return;
    Cluster& cluster = it->second;
    cluster.reading = false;
    if (!(cluster.served == asked)) return read_key(key);
    std::string bytes;
    if (secret) {
      if (const auto decoded = core::base64_decode(core::get_string(*secret, {"data", asked.key.key}))) bytes = *decoded;
    }
    if (!bytes.empty()) {
      clusters.set(key.str(), asked.endpoint, std::move(bytes));
      return;
    }
    // The Controller reports a key that is missing; here it is only tried again. A key that was good stays in use meanwhile.
    cluster.again.set(kReadAgain, [weak = weak_from_this(), key] {
      if (const auto self = weak.lock()) self->read_key(key);
    });
  }

  /// A connection that fails may do so for its key: somebody may have replaced it.
  void check_key(const kube::Key& key, const slurm::Change& change) {
    const auto it = known.find(key);
    if (it == known.end() || change.now->complete() || it->second.again.pending() || it->second.reading) return;
    const bool refused = change.health && change.now->error_code == core::ErrorCode::kUnauthorized;
    it->second.again.set(refused ? core::Duration{0} : kReadAgain, [weak = weak_from_this(), key] {
      if (const auto self = weak.lock()) self->read_key(key);
    });
  }

  void slurm_moved(const slurm::Change& change) {
    const std::size_t slash = change.cluster.find('/');
    if (slash != std::string::npos) {
      const kube::Key key{change.cluster.substr(0, slash), change.cluster.substr(slash + 1)};
      check_key(key, change);
      if (change.health || change.partitions) hooks.wake("controller", key);
      if (change.health || change.partitions || !change.nodes.empty()) wake_nodesets(change, key);
    }
    hooks.moved();
  }

  void wake_nodesets(const slurm::Change& change, const kube::Key& controller) {
    std::map<std::string, kube::Key, std::less<>> by_feature;
    std::set<kube::Key> woken;
    const auto has = [](const slurm::SnapshotPtr& snapshot, const std::string& partition) {
      return snapshot != nullptr && snapshot->partitions.contains(partition);
    };
    for (const kube::ObjectPtr& object : caches.nodesets.by_index(kIndexController, change.cluster)) {
      const std::string name = slurm_node_set_name(*object);
      by_feature[name] = object->meta.key();
      // Its partition came or went.
      if (change.health || has(change.before, name) != has(change.now, name)) woken.insert(object->meta.key());
    }
    bool unclaimed = false;
    for (const std::string& name : change.nodes) {
      bool found = false;
      for (const slurm::SnapshotPtr& snapshot : {change.before, change.now}) {
        const slurm::Node* node = snapshot ? snapshot->node(name) : nullptr;
        if (node == nullptr) continue;
        for (const std::string& feature : node->features) {
          const auto it = by_feature.find(feature);
          if (it == by_feature.end()) continue;
          woken.insert(it->second);
          found = true;
        }
      }
      // A node that does not say whose it is may be anybody's; what NodeSets left behind is the Controller's to tidy up.
      if (!found) {
        unclaimed = true;
        for (const auto& [feature, key] : by_feature) woken.insert(key);
      }
    }
    for (const kube::Key& key : woken) hooks.wake("nodeset", key);
    if (unclaimed) hooks.wake("controller", controller);
  }
};

SlurmConnections::SlurmConnections(core::Loop& loop, core::Logger& log, kube::Client& client, slurm::Clusters& clusters,
                                   const Caches& caches, Hooks hooks)
    : impl_(std::make_shared<Impl>(loop, log, client, clusters, caches, std::move(hooks))) {}
SlurmConnections::~SlurmConnections() = default;
void SlurmConnections::start() {
  impl_->start();
}

}  // namespace op
