#include "bridge/bridge.hpp"

#include <utility>

#include "bridge/gangs/observe.hpp"
#include "bridge/jobs/observe.hpp"
#include "bridge/metrics.hpp"
#include "bridge/nodes/observe.hpp"
#include "run/shell/metric_families.hpp"
#include "slinky/names.hpp"
#include "slinky/secret_key.hpp"
#include "slinky/slurm_connections.hpp"
#include "slinky/wiring.hpp"
#include "slurm/rest/target.hpp"
#include "slurm/snapshot/keyed_cluster.hpp"

namespace bridge {
namespace {

Options with_cluster(Options options) {
  const auto& controller = options.controller;
  options.jobs.cluster = controller ? slinky::cluster_key(controller->ns, controller->name)
                                    : options.address->endpoint.host + ":" + std::to_string(options.address->endpoint.port);
  options.nodes.cluster = options.jobs.cluster;
  options.jobs.holds_native_jobs = options.runs_nodes;
  options.jobs.retires = options.nodes.retires = options.retires;
  options.nodes.pods = options.jobs;
  return options;
}

}  // namespace

struct Bridge::Impl {
  Impl(core::Loop& loop, core::Random& random, core::Logger& in_log, kube::Manager& in_manager,
       slurm::Clusters::TransportFactory slurm, const Options& options)
      : log(in_log),
        manager(in_manager),
        settings(options.jobs),
        // A replica without the Lease must not write to Slurm either.
        clusters(loop, random, log, std::move(slurm), {},
                 {.write_deadline = [this] { return manager.client().write_deadline(); }, .job_details = true}),
        target(loop, clusters),
        wiring(manager, clusters, {}),
        jobs(wiring, options.jobs),
        gangs(wiring, options.jobs) {
    if (options.runs_nodes) nodes.emplace(wiring, options.nodes);
    manager.add_target(target);
    manager.on_leading([this] {
      clusters.mark_stale();
      target.others_wrote();
    });
    manager.on_waiting([this](const std::string& system) { clusters.poll_often(system); });
    clusters.listen([this](const slurm::Change& change) { look_at(change); });
    if (kube::Metrics* all = manager.metrics()) measure(loop, all->families());
    options.controller ? connect(loop, *options.controller) : connect(loop, options.jobs.cluster, *options.address);
  }

  void measure(core::Loop& loop, run::MetricFamilies& families) {
    metrics.emplace(families);
    // Only the leader counts placed and ended pods, because other replicas see the same changes of pods.
    jobs.on_placed = [this, &loop](const JobId& job) {
      const core::WallTime submitted{std::chrono::seconds{job.submitted}};
      if (manager.leading()) metrics->placed(std::max(core::Duration{0}, loop.clock().wall() - submitted));
    };
    jobs.on_told_to_end = [this](const std::string& reason) {
      if (manager.leading()) metrics->ended(reason);
    };
    manager.on_collect([this, &loop] { metrics->counts(jobs.counts(loop.clock().wall())); });
  }

  void connect(core::Loop& loop, const kube::Key& controller) {
    connections.emplace(
        loop, manager.client(), clusters, wiring, [this] { manager.caches_changed(); }, controller);
    connections->start();
  }

  void connect(core::Loop& loop, const slurm::ClusterKey& cluster, const SlurmAddress& address) {
    wiring.rights.add(kube::resources::kSecret, {"get"});
    keyed.emplace(loop, clusters, cluster);
    keyed->connect(address.endpoint, slinky::secret_key(manager.client(), address.secret, address.data_key));
    clusters.listen([this](const slurm::Change& change) {
      keyed->changed(change);
      wiring.slurm_changed(change, {});
      manager.caches_changed();
    });
  }

  /// Logs for the administrator that this release of Slurm is too old. Users see the same message in the conditions of their
  /// pods.
  void look_at(const slurm::Change& change) {
    if (!change.health || !change.now->complete() || change.now->capabilities.external_jobs) return;
    log.error("this Slurm has no external nodes and jobs, so slurm-bridge does nothing: it needs 25.11 or newer",
              {{"cluster", change.cluster}, {"release", change.now->capabilities.release}});
  }

  core::Logger& log;
  kube::Manager& manager;
  Settings settings;
  slurm::Clusters clusters;
  slurm::Target target;
  slinky::ManagerWiring wiring;
  jobs::JobsController jobs;
  gangs::GangsController gangs;
  std::optional<Metrics> metrics;
  std::optional<nodes::NodesController> nodes;
  std::optional<slinky::SlurmConnections> connections;
  std::optional<slurm::KeyedCluster> keyed;
};

Bridge::Bridge(core::Loop& loop, core::Random& random, core::Logger& log, kube::Manager& manager,
               slurm::Clusters::TransportFactory slurm, Options options)
    : impl_(std::make_unique<Impl>(loop, random, log, manager, std::move(slurm), with_cluster(std::move(options)))) {}
Bridge::~Bridge() = default;

slurm::Clusters& Bridge::clusters() {
  return impl_->clusters;
}

std::optional<Left> Bridge::left() const {
  const slurm::SnapshotPtr snapshot = impl_->clusters.snapshot(impl_->settings.cluster);
  const kube::Manager& manager = impl_->manager;
  if (!manager.leading() || !manager.synced()) return {};
  Left out{impl_->jobs.left(), {}};
  if (impl_->nodes) {
    for (std::string& node : impl_->nodes->left()) out.names.push_back(std::move(node));
  }
  if (snapshot == nullptr) {
    out.slurm_away = "no slurmrestd is known";
  } else if (!snapshot->complete()) {
    out.slurm_away = snapshot->error.empty() ? "it has not answered yet" : snapshot->error;
  }
  // Nothing is listed, but the controllers might still have steps to do, such as undoing a drain.
  if (out.names.empty() && out.slurm_away.empty() && !manager.idle()) return {};
  return out;
}

std::string Bridge::too_old() const {
  const slurm::SnapshotPtr snapshot = impl_->clusters.snapshot(impl_->settings.cluster);
  if (!slurm::has_answered(snapshot) || snapshot->capabilities.external_jobs) return {};
  return snapshot->capabilities.release;
}

const Settings& Bridge::settings() const {
  return impl_->settings;
}

}  // namespace bridge
