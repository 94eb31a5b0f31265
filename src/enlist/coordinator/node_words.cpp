#include "enlist/coordinator/node_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "enlist/rules/judge.hpp"
#include "enlist/rules/leave.hpp"
#include "enlist/rules/node_conf.hpp"

namespace enlist {
namespace {

using core::ErrorCode;

core::Result<void> may_configure(const Contents& now, const std::string& name) {
  const auto found = now.nodes.find(name);
  if (found == now.nodes.end())
    return core::fail(ErrorCode::kNotFound,
                      fmt::format("there is no node {}; slurm-enlist node list shows all", name.substr(0, 100)));
  const Node& node = found->second;
  const auto pool = now.pools.find(node.pool);
  if (node.leaving.wanted || pool == now.pools.end() || pool->second.removing)
    return core::fail(ErrorCode::kConflict, fmt::format("node {} leaves", name));
  if (node.revoked) return core::fail(ErrorCode::kConflict, fmt::format("node {} is revoked", name));
  return {};
}

/// Sets Node::node_conf, and records in Node::live what must be changed in Slurm's record, which slurmd registered with the
/// former parameters.
void say_live(const std::string& pool_conf, const std::string& words, Node& node) {
  const std::string before = merged_conf(pool_conf, node.node_conf).value_or("");
  const std::string after = merged_conf(pool_conf, words).value_or("");
  if (weight_in(before) != weight_in(after)) node.live.weight = true;
  const std::vector<std::string> stay = features_in(after);
  for (const std::string& feature : features_in(before)) {
    const bool noted = std::ranges::find(node.live.dropped, feature) != node.live.dropped.end();
    if (!noted && std::ranges::find(stay, feature) == stay.end()) node.live.dropped.push_back(feature);
  }
  node.node_conf = words;
}

}  // namespace

core::Result<Changes> configure(const Contents& now, const SlurmNow& slurm, const std::string& name, const std::string& words,
                                core::WallTime at) {
  if (auto may = may_configure(now, name); !may) return std::unexpected(may.error());
  Node node = now.nodes.at(name);
  const std::string& pool_conf = now.pools.at(node.pool).node_conf;
  Configuring& wish = node.configuring;
  // Slurm may still have a record from before these parameters. It reads the parameters only for a new record.
  const slurm::Node* record = slurm.snapshot->node(name);
  const bool differs = record != nullptr && is_of(*record, node) && !differs_from_conf(*record, node.report).empty();
  const bool anew = !wish.wanted && (node.phase == Phase::kInvalid || differs) && words == node.node_conf;
  if (words == (wish.wanted ? wish.conf : node.node_conf) && !anew) return Changes{};
  // These parameters were checked before, and slurmd is not started with them again.
  const bool takes_back = words == node.node_conf && !wish.stop && !anew;
  if (!takes_back) {
    const std::string& release = slurm.snapshot->capabilities.release;
    if (release.empty())
      return core::fail(ErrorCode::kUnavailable,
                        "the release of Slurm is not known, so the parameters cannot be checked; try again");
    if (auto good = check_node_words(words, {release, node.report.slurm_version}); !good) return std::unexpected(good.error());
    if (auto merged = merged_conf(pool_conf, words); !merged) return std::unexpected(merged.error());
  }
  const bool restarted = wish.restarts();
  if (restarted && wish.stop) {
    wish.conf = words;
  } else if (takes_back) {
    wish = {.taken_back = true};
    node.message = "it keeps its parameters; Slurm has not reported its state yet";
  } else if (!anew &&
             differ_live(merged_conf(pool_conf, node.node_conf).value_or(""), merged_conf(pool_conf, words).value_or(""))) {
    say_live(pool_conf, words, node);
    wish = {.wanted = true,
            .live = true,
            .conf = words,
            .since = core::whole_seconds(at),
            .taken_back = restarted || wish.taken_back};
  } else {
    wish = {.wanted = true, .conf = words, .since = core::whole_seconds(at)};
    node.phase = Phase::kDraining;
    node.message = "it gets new parameters: Slurm has not reported the jobs on the node yet";
  }
  if (restarted && !wish.restarts()) node.phase = Phase::kConfirming;
  return Changes{.nodes = {{name, std::move(node)}}};
}

}  // namespace enlist
