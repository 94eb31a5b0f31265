#include "enlist/coordinator/leaving.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "enlist/coordinator/pools_plan.hpp"
#include "enlist/rules/leave.hpp"

namespace enlist {
namespace {

using core::ErrorCode;

/// The largest number of jobs that a message names.
constexpr std::size_t kMostNamed = 20;

core::Result<void> check_nodes(const Contents& now, const std::vector<std::string>& nodes) {
  std::string unknown;
  for (const std::string& name : nodes) {
    if (!now.nodes.contains(name)) unknown += (unknown.empty() ? "" : ", ") + name.substr(0, 100);
  }
  if (nodes.empty()) return core::fail(ErrorCode::kInvalid, "name at least one node");
  if (unknown.empty()) return {};
  return core::fail(ErrorCode::kNotFound, "there is no node " + unknown + "; slurm-enlist node list shows all");
}

void withdraw_tokens(const Contents& now, const std::string& pool, Changes& changes) {
  for (const auto& [digest, token] : now.tokens) {
    if (token.pool == pool) changes.tokens.emplace(digest, std::nullopt);
  }
}

}  // namespace

core::Result<Changes> leave(const Contents& now, const std::vector<std::string>& nodes, bool force, core::WallTime at) {
  if (auto good = check_nodes(now, nodes); !good) return std::unexpected(good.error());
  Changes changes;
  for (const std::string& name : nodes) {
    Node node = now.nodes.at(name);
    const bool asked = node.leaving.wanted && !node.leaving.dead;
    if (asked && (node.leaving.force || !force)) continue;
    if (!asked) node.leaving.since = core::whole_seconds(at);
    node.leaving.wanted = true;
    node.leaving.dead = false;
    node.leaving.force = node.leaving.force || force;
    if (!leaves(node.phase)) {
      node.phase = Phase::kDraining;
      node.message = "Slurm has not reported the jobs on the node yet";
    }
    changes.nodes.emplace(name, std::move(node));
  }
  return changes;
}

core::Result<Changes> keep(const Contents& now, const std::vector<std::string>& nodes) {
  if (auto good = check_nodes(now, nodes); !good) return std::unexpected(good.error());
  Changes changes;
  for (const std::string& name : nodes) {
    Node node = now.nodes.at(name);
    const bool leaves = node.leaving.wanted;
    if (!leaves && !node.configuring.restarts()) continue;
    if (node.key == kDepartedKey)
      return core::fail(ErrorCode::kConflict, fmt::format("node {} has left; its record in Slurm is deleted again", name));
    if (!leaves && node.configuring.stop)
      return core::fail(ErrorCode::kConflict,
                        fmt::format("node {} is about to start with its new parameters; set others with node config", name));
    if (node.leaving.stop)
      return core::fail(ErrorCode::kConflict, fmt::format("node {} cannot be kept: its host already stops slurmd; when the "
                                                          "node is gone, the host can join again with a new token",
                                                          name));
    if (const auto pool = now.pools.find(node.pool); pool != now.pools.end() && pool->second.removing)
      return core::fail(ErrorCode::kConflict, fmt::format("node {} leaves because pool {} is being removed", name, node.pool));
    if (leaves) {
      node.leaving = {};
    } else {
      node.configuring = {.taken_back = true};
    }
    node.phase = Phase::kConfirming;
    node.message = "it stays; Slurm has not reported its state yet";
    changes.nodes.emplace(name, std::move(node));
  }
  return changes;
}

core::Result<Changes> revoke(const Contents& now, const std::vector<std::string>& nodes) {
  if (auto good = check_nodes(now, nodes); !good) return std::unexpected(good.error());
  Changes changes;
  for (const std::string& name : nodes) {
    Node node = now.nodes.at(name);
    // The host may have a token for several hosts, and could join again with it.
    withdraw_tokens(now, node.pool, changes);
    if (node.revoked) continue;
    node.revoked = true;
    changes.nodes.emplace(name, std::move(node));
  }
  return changes;
}

core::Result<Changes> remove_pool(const Contents& now, const LiveJobs& live, const std::string& name, bool force) {
  std::map<std::string, Pool> found = found_pools(now.values);
  const auto of_file = found.extract(name);
  const auto known = now.pools.find(name);
  if (known == now.pools.end() && of_file.empty())
    return core::fail(ErrorCode::kNotFound,
                      fmt::format("there is no pool {}; slurm-enlist pool list shows all", name.substr(0, 100)));
  Pool pool = known != now.pools.end() ? known->second : of_file.mapped();
  if (pool.removing) return Changes{};
  if (!live)
    return core::fail(
        ErrorCode::kUnavailable,
        "Slurm does not answer the coordinator, so it is not known whether jobs use the pool; try again when it does");
  const std::vector<std::string> jobs = jobs_in(*live, name);
  if (!jobs.empty() && !force) {
    std::string list;
    for (std::size_t i = 0; i < std::min(jobs.size(), kMostNamed); ++i) list += (i == 0 ? "" : ", ") + jobs[i];
    if (jobs.size() > kMostNamed) list += fmt::format(" and {} more", jobs.size() - kMostNamed);
    return core::fail(ErrorCode::kConflict,
                      fmt::format("jobs use the partition {}: {}. With --force, the partition takes no new jobs, and the pool "
                                  "is removed when these jobs have ended; slurm-enlist destroy-jobs ends those that run",
                                  name, list));
  }
  pool.removing = true;
  Changes changes{.pools = {{name, std::move(pool)}}};
  if (!of_file.empty()) changes.values[kFoundValue] = found_value(found);
  withdraw_tokens(now, name, changes);
  return changes;
}

}  // namespace enlist
