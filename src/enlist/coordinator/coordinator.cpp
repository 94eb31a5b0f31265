#include "enlist/coordinator/coordinator.hpp"

#include <utility>

namespace enlist {
namespace {

constexpr core::Duration kStopGrace{10000};

ServerOptions with_cluster(ServerOptions options) {
  options.cluster = kCluster;
  return options;
}

SlurmrestdOptions with_conf(SlurmrestdOptions options, const std::filesystem::path& slurm_conf) {
  options.slurm_conf = slurm_conf;
  return options;
}

}  // namespace

Coordinator::Coordinator(core::Loop& loop, core::Random& random, core::Logger& log, Store& store, Host& host,
                         Supervise supervise, slurm::Clusters& clusters, CoordinatorOptions options, run::PassMetrics* metrics)
    : store_(store),
      clusters_(clusters),
      files_(loop, log, host, options.slurm_conf, [this] { files_changed(); }),
      slurmrestd_(loop, log, host, std::move(supervise), clusters, kCluster,
                  with_conf(std::move(options.slurmrestd), options.slurm_conf)),
      store_target_(store, [this](const std::string& node) { return nodes_.heard_at(node); }),
      pool_file_(loop, store, host, options.slurm_conf.parent_path() / kPoolFile,
                 [this](bool changed) {
                   pools_.looked(changed);
                   passes_.caches_changed();
                 }),
      rotation_target_(loop, random, log, store, host, files_),
      slurm_target_(loop, clusters),
      executor_(loop, router_),
      passes_(loop, random, log, executor_, {},
              {.may_begin = [] { return true; },
               .on_first = [](std::size_t) {},
               .on_ended = [this] { shutdown_.pass_ended(); },
               .on_waiting = [this](const std::string& system) { clusters_.poll_often(system); }},
              metrics),
      nodes_(
          loop, store, clusters, kCluster,
          [this](const run::Key& key) {
            passes_.wake({passes_.id_of("nodes"), key});
          },
          [this]() -> std::optional<std::size_t> { return files_.facts() ? files_.facts()->max_node_count : std::nullopt; },
          options.forget_dead_after),
      pools_(
          loop, store, clusters, kCluster, pool_file_,
          [this](const run::Key& key) {
            passes_.wake({passes_.id_of("pools"), key});
          },
          [this] { return files_.facts() ? files_.facts()->partitions : std::set<std::string>(); }),
      rotation_(loop, store, clusters, kCluster, files_, std::move(options.own_host),
                [this](const run::Key& key) {
                  passes_.wake({passes_.id_of("rotation"), key});
                }),
      server_(loop, random, log, store, clusters, files_, with_cluster(std::move(options.server)),
              {.reports = [this](const Node& node, const Report& report) { return nodes_.reports(node, report); },
               .heard = [this](const std::string& node) { nodes_.heard(node); },
               .rotation = [this] { return rotation_.status(); }}),
      shutdown_(loop, log, kStopGrace,
                {.passes = [this] { return passes_.under_way(); },
                 .stop_watches =
                     [this] {
                       files_.stop();
                       pool_file_.stop();
                       slurmrestd_.stop();
                     },
                 .send_events = [](const std::function<void()>& done) { done(); },
                 .give_up_lease = [](const std::function<void()>& done) { done(); }}),
      listener_(clusters.listen([this](const slurm::Change& change) {
        slurmrestd_.changed(change);
        nodes_.changed(change);
        pools_.changed(change);
        rotation_.changed(change);
        passes_.caches_changed();
      })) {
  router_.add(store_target_);
  router_.add(pool_file_);
  router_.add(rotation_target_);
  router_.add(slurm_target_);
  passes_.add(nodes_);
  passes_.add(pools_);
  passes_.add(rotation_);
  store_.listen([this](const Changes& changes) {
    nodes_.changed(changes);
    pools_.changed(changes);
    rotation_.changed(changes);
    server_.changed(changes);
  });
}

Coordinator::~Coordinator() {
  clusters_.unlisten(listener_);
}

void Coordinator::start() {
  files_.start();
  nodes_.start();
  pools_.start();
  rotation_.start();
  pool_file_.look();
}

void Coordinator::stop(std::function<void()> done) {
  server_.stop();
  passes_.stop();
  shutdown_.begin(std::move(done));
}

bool Coordinator::ready() const {
  return files_.facts() && files_.key_revision() && clusters_.snapshot(kCluster)->complete();
}

void Coordinator::files_changed() {
  if (files_.facts()) slurmrestd_.use(*files_.facts());
  nodes_.start();
  rotation_.files_changed();
  server_.changed();
  passes_.caches_changed();
}

}  // namespace enlist
