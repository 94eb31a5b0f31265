#include "enlist/coordinator/slurmrestd.hpp"

#include <utility>

namespace enlist {

Command slurmrestd_command(const SlurmrestdOptions& options) {
  return {.arguments = {options.program, "-a", "rest_auth/jwt", "-s", "openapi/slurmctld", "unix:" + options.socket.string()},
          .environment = {"SLURM_CONF=" + options.slurm_conf.string(), "SLURM_JWT=daemon",
                          // Without these two, slurmrestd exits in a container that forbids unshare(2).
                          "SLURMRESTD_SECURITY=disable_unshare_files,disable_unshare_sysv",
                          // Otherwise slurmrestd logs each request, and logs a reply without changes as an error. At this
                          // level, it still logs why it cannot start.
                          "SLURMRESTD_DEBUG=fatal"},
          .user = options.user,
          .folder = options.socket.parent_path()};
}

Slurmrestd::Slurmrestd(core::Loop& loop, core::Logger& log, Host& host, Supervise supervise, slurm::Clusters& clusters,
                       slurm::ClusterKey cluster, SlurmrestdOptions options)
    : loop_(loop),
      log_(log),
      host_(host),
      supervise_(std::move(supervise)),
      options_(std::move(options)),
      connection_(loop, clusters, std::move(cluster)) {}

void Slurmrestd::use(const SlurmFacts& facts) {
  // slurmrestd reads slurm.conf only when it starts, so other controllers need a restart.
  const bool moved = facts_ && facts_->controllers != facts.controllers;
  const bool other_key = !facts_ || facts_->jwt_key != facts.jwt_key || facts_->cluster_name != facts.cluster_name ||
                         facts_->slurm_user != facts.slurm_user;
  facts_ = facts;
  if (facts.jwt_key.empty()) log_.error("slurm.conf has no jwt_key in AuthAltParameters; run slurm-enlist coordinator init");
  if (moved && process_) {
    process_->stop();
    process_.reset();
  }
  if (!process_) process_ = supervise_(slurmrestd_command(options_), [this] { process_changed(); });
  if (!other_key) return;
  connection_.connect(
      {.host = options_.socket.string(), .cluster_name = facts.cluster_name},
      [this, file = std::filesystem::path(facts.jwt_key)](slurm::KeyedCluster::KeyDone done) {
        const auto key = std::make_shared<core::Result<std::string>>();
        loop_.offload([&host = host_, file, key] { *key = host.read(file); },
                      [this, key, done = std::move(done)] {
                        if (!*key) log_.error("no connection to Slurm", {core::error_field(key->error())});
                        done(std::move(*key));
                      });
      },
      facts.slurm_user);
}

void Slurmrestd::process_changed() {
  if (!process_) return;
  if (const std::string why = error(); !why.empty())
    log_.error("slurmrestd has ended; the coordinator starts it again", {{"why", why}});
}

void Slurmrestd::stop() {
  connection_.disconnect();
  if (process_) process_->stop();
}

std::string Slurmrestd::error() const {
  return process_ && !process_->running() ? process_->last_error() : std::string();
}

}  // namespace enlist
