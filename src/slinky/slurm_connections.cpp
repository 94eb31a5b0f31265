#include "slinky/slurm_connections.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "api/controller.hpp"
#include "api/restapi.hpp"
#include "core/base64.hpp"
#include "slinky/names.hpp"
#include "slinky/serving.hpp"

namespace slinky {
namespace {

/// The delay before the key of a failing connection, or a missing key, is read again.
constexpr core::Duration kReadAgain{5000};

}  // namespace

struct SlurmConnections::Impl : std::enable_shared_from_this<SlurmConnections::Impl> {
  Impl(core::Loop& l, core::Logger& g, kube::Client& k, slurm::Clusters& s, Wiring& w, std::function<void()> h)
      : loop(l),
        log(g),
        client(k),
        clusters(s),
        wiring(w),
        controllers(w.cache(caches::kControllers)),
        restapis(w.cache(caches::kRestApis)),
        pods(w.cache(caches::kPods)),
        heard(std::move(h)) {
    wiring.rights.add(kube::resources::kSecret, {"get"});
  }
  ~Impl() { clusters.unlisten(listener); }

  struct Cluster {
    explicit Cluster(core::Loop& loop) : again(loop) {}
    Serving serving;
    bool reading = false;
    core::Timer again;
  };

  core::Loop& loop;
  core::Logger& log;
  kube::Client& client;
  slurm::Clusters& clusters;
  Wiring& wiring;
  kube::Cache<kube::Object>&controllers, &restapis;
  kube::Cache<kube::PodRecord>& pods;
  std::function<void()> heard;
  slurm::Clusters::ListenerId listener = 0;
  std::map<kube::Key, Cluster> known;
  std::set<kube::Key> dirty;  ///< Controllers to examine once the caches have settled.

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

  /// Polls a daemon at once when it becomes ready, instead of at the end of a backoff, and again soon if it does not answer
  /// yet.
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
    if (is_ready) clusters.poll_often(controller.str());
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
    const auto current = known.find(key);
    if (current != known.end()) out.before = current->second.serving.restapi;
    return out;
  }

  void look(const kube::Key& key) {
    const std::optional<Serving> serving = plan_serving(observe(key));
    if (!serving) {
      if (known.erase(key) > 0) clusters.remove(key.str());
      return;
    }
    const auto [it, added] = known.try_emplace(key, loop);
    if (added || !(it->second.serving == *serving) || !clusters.contains(key.str())) {
      it->second.serving = *serving;
      read_key(key);
    }
  }

  void read_key(const kube::Key& key) {
    const auto it = known.find(key);
    if (it == known.end() || it->second.reading) return;
    it->second.reading = true;
    it->second.again.cancel();
    client.get(kube::resources::kSecret, {key.ns, it->second.serving.key.secret},
               [weak = weak_from_this(), key, asked = it->second.serving](core::Result<core::Json> secret) {
                 if (const auto self = weak.lock()) self->key_read(key, asked, secret);
               });
  }

  void key_read(const kube::Key& key, const Serving& asked, const core::Result<core::Json>& secret) {
    const auto it = known.find(key);
    if (it == known.end()) return;
    Cluster& cluster = it->second;
    cluster.reading = false;
    if (!(cluster.serving == asked)) return read_key(key);
    std::string bytes;
    if (secret) {
      if (const auto decoded = core::base64_decode(core::get_string(*secret, {"data", asked.key.key}))) bytes = *decoded;
    }
    if (!bytes.empty()) {
      clusters.set(key.str(), asked.endpoint, std::move(bytes));
      return;
    }
    // The Controller reports a missing key; this only retries. The previous key stays in use meanwhile.
    cluster.again.set(kReadAgain, [weak = weak_from_this(), key] {
      if (const auto self = weak.lock()) self->read_key(key);
    });
  }

  /// A connection may fail because somebody has replaced the key.
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
    }
    wiring.slurm_changed(change);
    heard();
  }
};

SlurmConnections::SlurmConnections(core::Loop& loop, core::Logger& log, kube::Client& client, slurm::Clusters& clusters,
                                   Wiring& wiring, std::function<void()> heard)
    : impl_(std::make_shared<Impl>(loop, log, client, clusters, wiring, std::move(heard))) {}
SlurmConnections::~SlurmConnections() = default;
void SlurmConnections::start() {
  impl_->start();
}

}  // namespace slinky
