#include "sim/programs/operator/oracles/oracles.hpp"

#include <fmt/format.h>

#include <utility>

#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/final_state.hpp"
#include "sim/programs/operator/oracles/objects.hpp"

namespace sim {

OperatorOracles::OperatorOracles(Oracles& all, core::Loop& loop, KubeApi& api, SlurmSite& site)
    : all_(all),
      api_(api),
      site_(site),
      jobs_(
          loop, api, site, [this](std::string text) { all_.violation(std::move(text)); },
          [this](std::string text) { all_.note(std::move(text)); }),
      service_(loop, api, site, [this](std::string text) { all_.violation(std::move(text)); }),
      drains_(loop, api, [this](std::string text) { all_.violation(std::move(text)); }),
      looks_(loop, api, site),
      abandoned_(loop, api, site),
      holds_(loop, api, looks_, [this](std::string text) { all_.violation(std::move(text)); }),
      workers_(loop, api, site, looks_, jobs_, [this](std::string text) { all_.violation(std::move(text)); }),
      replicas_(loop, api, [this](std::string text) { all_.violation(std::move(text)); }),
      claims_(loop, api, [this](std::string text) { all_.violation(std::move(text)); }),
      secrets_(api, [this](std::string text) { all_.violation(std::move(text)); }),
      tokens_(api, [this](std::string text) { all_.violation(std::move(text)); }),
      writes_(loop, api, [this](std::string text) { all_.violation(std::move(text)); }),
      declared_state_(loop, api, site, holds_, abandoned_) {
  site_.on_cluster = [this](SlurmSite::Cluster& cluster) { watch_cluster(cluster); };
  site_.on_slurmd_end = [this](const SlurmSite::Cluster& cluster, const std::string& node) {
    workers_.slurmd_ends(cluster, node);
  };
  all_.add(*this);
}

void OperatorOracles::limit_to(const std::vector<std::string>& namespaces) {
  service_.limit_to(namespaces);
  writes_.limit_to(namespaces);
  declared_state_.limit_to(namespaces);
}

// --- Requests of operators --------------------------------------------------------------------------------------------

void OperatorOracles::request(const net::HttpRequest& request, bool to_slurm, const std::string& identity) {
  service_.request(to_slurm);
  to_slurm ? request_to_slurm(request, identity) : request_to_kube(request, identity);
}

void OperatorOracles::request_to_slurm(const net::HttpRequest& request, const std::string& identity) {
  secrets_.learn_token_of(request);
  if (const std::size_t at = request.target.rfind("/node/"); request.method == "GET" && at != std::string::npos)
    looks_.look(request.target.substr(at + 6));
  if (request.method == "GET" && request.target.find("/reconfigure") == std::string::npos) return;
  all_.note("slurm " + request.method + " " + request.target + " " + request.body);
  secrets_.search_secrets(request.body, "a request to Slurm");
  writes_.to_slurm(request, identity);
}

void OperatorOracles::request_to_kube(const net::HttpRequest& request, const std::string& identity) {
  if (request.method == "GET") return;
  if (request.target.find("/leases") != std::string::npos) return;
  writes_.to_kube(request, identity);
  const bool secret = request.target.find("/secrets") != std::string::npos;
  all_.note("kube " + request.method + " " + request.target + " " + (secret ? "(secret)" : request.body.substr(0, 3000)));
  secrets_.search_secrets(request.target, "a request's path");
  if (!secret) secrets_.search_secrets(request.body, "a request to " + request.target);
  if (request.method == "DELETE") writes_.deletion(request);
}

// --- Slurm ------------------------------------------------------------------------------------------------------------

void OperatorOracles::watch_cluster(SlurmSite::Cluster& cluster) {
  jobs_.watch(cluster);
  cluster.slurm->on_update = [this, &cluster](const SimNode& node, const SimNodeUpdate& update, const std::string& user) {
    if (update.state)
      all_.note(fmt::format("node {} {} by {}: {}", node.name, *update.state, user, update.reason.value_or("")));
    if (user == "slurm" && update.state == "DRAIN" && !node.drain) drains_.drained(cluster, node, update.reason.value_or(""));
    if (user == kSlurmAdmin && frees_node(update)) jobs_.freed(node);
    holds_.updated(cluster, node, update, user);
    looks_.updated(cluster, node, update, user);
  };
  cluster.slurm->on_new = [this, &cluster](const SimNode& node) { holds_.made(cluster, node); };
  cluster.slurm->on_return = [this, &cluster](const SimNode& node) { holds_.returned(cluster, node); };
  cluster.slurm->on_delete = [this, &cluster](const SimNode& node, const std::vector<const SimJob*>& jobs,
                                              const std::string& user) {
    all_.note("node " + node.name + " deleted from Slurm");
    abandoned_.forget(cluster, node);
    bool carried = false;
    if (!jobs.empty()) {
      workers_.record_deletion_under(node, *jobs.front());
    } else if (!user.empty() && user != kSlurmAdmin) {
      carried = holds_.record_deletion(cluster, node);
      workers_.record_deletion(cluster, node);
      jobs_.fenced(node);
    }
    if (!carried) holds_.forget(cluster, node, !user.empty() && user != kSlurmAdmin);
  };
}

// --- The final state --------------------------------------------------------------------------------------------------

core::Json OperatorOracles::final_state() const {
  return sim::final_state(api_, site_);
}

core::Json OperatorOracles::starts() const {
  return sim::starts(site_, replicas_.made());
}

}  // namespace sim
