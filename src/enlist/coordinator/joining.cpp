#include "enlist/coordinator/joining.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "enlist/coordinator/pools_plan.hpp"
#include "enlist/rules/judge.hpp"
#include "enlist/rules/key_file.hpp"
#include "enlist/rules/leave.hpp"
#include "enlist/rules/names.hpp"
#include "enlist/rules/node_conf.hpp"
#include "enlist/rules/pool_file.hpp"
#include "slurm/rest/release.hpp"

namespace enlist {
namespace {

using core::ErrorCode;

/// Limits for the hostname and the detected parameters of a host, because they are stored and shown to people.
constexpr std::size_t kLongestName = 255, kLongestConf = 16384;

core::Result<void> slurm_known(const SlurmNow& slurm) {
  if (!slurm.facts) return core::fail(ErrorCode::kUnavailable, slurm.facts.error().message);
  if (slurm.snapshot->complete()) return {};
  return core::fail(ErrorCode::kUnavailable,
                    "Slurm does not answer the coordinator, so nothing can be checked; try again when it does" +
                        (slurm.snapshot->error.empty() ? std::string() : " (" + slurm.snapshot->error + ")"));
}

/// Returns what has this name already, in Slurm or in the store: "a node of Slurm"; "" if nothing has. The partition and the
/// NodeSet of a found pool do not count, so that make_pool() can take up the pool.
std::string_view taken_by(const Contents& now, const SlurmNow& slurm, const std::string& name) {
  if (slurm.snapshot->nodes.contains(name)) return "a node of Slurm";
  if (now.nodes.contains(name)) return "a node that has joined";
  if (now.pools.contains(name)) return "a pool";
  if (found_pools(now.values).contains(name)) return {};
  if (slurm.snapshot->partitions.contains(name)) return "a partition of Slurm";
  if (slurm.facts->node_sets.contains(name)) return "a NodeSet of Slurm";
  return {};
}

/// Checks that Slurm's node table has room for one more node. Counts the nodes of Slurm, and the nodes that have joined and are
/// not in Slurm yet. Revoked and silent nodes that Slurm does not have do not count.
core::Result<void> check_room(const Contents& now, const SlurmNow& slurm) {
  if (!slurm.facts->max_node_count) return {};
  std::size_t nodes = slurm.snapshot->nodes.size();
  for (const auto& [name, node] : now.nodes) {
    if (!node.revoked && node.phase != Phase::kSilent && !slurm.snapshot->nodes.contains(name)) ++nodes;
  }
  if (nodes < *slurm.facts->max_node_count) return {};
  return core::fail(
      ErrorCode::kInvalid,
      fmt::format("Slurm's node table is full: MaxNodeCount is {}, and there are {} nodes; raise it in slurm.conf and "
                  "run scontrol reconfigure",
                  *slurm.facts->max_node_count, nodes));
}

core::Result<void> check_text(std::string_view what, std::string_view text, std::size_t longest) {
  if (text.size() > longest)
    return core::fail(ErrorCode::kInvalid, fmt::format("{}: {} characters are more than {}", what, text.size(), longest));
  if (without_controls(std::string(text)) != text)
    return core::fail(ErrorCode::kInvalid, fmt::format("{}: it has control characters", what));
  return {};
}

core::Result<void> check_ask(const JoinAsk& ask) {
  if (auto good = check_text("the host's name", ask.hostname, kLongestName); !good) return good;
  if (auto good = check_text("slurmd's release", ask.slurm_version, kLongestName); !good) return good;
  return check_text("the detected parameters", ask.conf, kLongestConf);
}

core::Result<void> check_release(const std::string& slurmd, const std::string& slurmctld) {
  if (slurm::parse_release(slurmctld).major == 0)
    return core::fail(ErrorCode::kUnavailable, "the release of slurmctld is not known yet; try again");
  if (slurm::parse_release(slurmd).major == 0)
    return core::fail(ErrorCode::kInvalid, fmt::format("slurmd's release \"{}\" cannot be read; install slurmd {}",
                                                       slurmd.substr(0, 40), slurmctld));
  const std::string problem = version_problem(slurmd, slurmctld);
  if (problem.empty()) return {};
  return core::fail(ErrorCode::kInvalid, problem + "; install slurmd " + slurmctld);
}

/// Returns the token after one more use. A token that is used up stays until it expires, for hosts whose reply was lost.
Token left_of(Token token) {
  --token.uses_left;
  return token;
}

/// Returns the number for the first node of a new pool. It continues the numbers of a removed pool of this name.
std::int64_t next_number_of(const Contents& now, const std::string& pool) {
  const auto found = now.values.find(kNumbersValue);
  return found == now.values.end() ? 1 : core::get_int(found->second, {pool}, 1);
}

auto node_with(const Contents& now, const std::string& key) {
  return std::ranges::find(now.nodes, key, [](const auto& entry) -> const std::string& { return entry.second.key; });
}

}  // namespace

std::string without_controls(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto at = [&](std::size_t place) { return place < text.size() ? static_cast<unsigned char>(text[place]) : 0U; };
    if (at(i) < ' ' || at(i) == 0x7f) text[i] = ' ';
    // In UTF-8, U+0080 to U+009F begin with the byte C2.
    if (at(i) == 0xc2 && at(i + 1) >= 0x80 && at(i + 1) < 0xa0) text[i] = text[i + 1] = ' ';
  }
  return text;
}

core::Result<void> check_token(const Contents& now, const std::string& digest, const std::string& key, core::WallTime at) {
  const auto found = now.tokens.find(digest);
  if (found != now.tokens.end() && at < found->second.expires) {
    if (found->second.uses_left > 0) return {};
    const auto own = node_with(now, key);
    if (own != now.nodes.end() && own->second.pool == found->second.pool && !own->second.revoked) return {};
  }
  return core::fail(ErrorCode::kUnauthorized,
                    "the token is not known, has expired or is used up; make a new one with slurm-enlist token POOL");
}

core::Result<void> check_host_keys(const JoinRequest& host, std::string_view file, const core::Result<std::string>& revision) {
  if (!revision) return {};
  const auto refused = [](std::string_view name) {
    return core::fail(ErrorCode::kConflict,
                      fmt::format("the host has a {} with another key than the cluster's, which slurm-enlist "
                                  "has not written: move it away if nothing needs it, and join again",
                                  name));
  };
  // slurmd prefers a slurm.jwks to a slurm.key.
  if (!host.jwks.empty() && host.jwks != *revision) return refused(kJwksFile);
  if (file == kPlainKeyFile && !host.plain_key.empty() && host.plain_key != *revision) return refused(kPlainKeyFile);
  return {};
}

core::Result<Changes> join(const Contents& now, const SlurmNow& slurm, const core::Result<std::string>& key_revision,
                           const JoinAsk& ask, core::WallTime at, Joined& out) {
  if (auto good = check_token(now, ask.token, ask.key, at); !good) return std::unexpected(good.error());
  const Token& token = now.tokens.at(ask.token);
  const auto own = node_with(now, ask.key);
  if (own != now.nodes.end() && own->second.pool != token.pool)
    return core::fail(ErrorCode::kConflict,
                      fmt::format("this host has joined already: it is node {} of pool {}; a token of pool {} lets "
                                  "it join again, and after slurm-enlist leave it can join another pool",
                                  own->second.name, own->second.pool, own->second.pool));
  const auto pool = now.pools.find(token.pool);
  if (pool == now.pools.end())
    return core::fail(ErrorCode::kInvalid,
                      fmt::format("pool {} does not exist any more; use a token of another pool", token.pool));
  if (pool->second.removing)
    return core::fail(ErrorCode::kConflict, fmt::format("pool {} is being removed; use a token of another pool", token.pool));
  if (own != now.nodes.end() && own->second.leaving.wanted)
    return core::fail(ErrorCode::kConflict,
                      fmt::format("this host is node {}, which leaves; join again when slurm-enlist node list does not show it "
                                  "any more, or let it stay with slurm-enlist node keep {}",
                                  own->second.name, own->second.name));
  if (auto known = slurm_known(slurm); !known) return std::unexpected(known.error());
  // Without the key, the host's agent could not start slurmd.
  if (!key_revision) return core::fail(ErrorCode::kUnavailable, key_revision.error().message);
  if (auto good = check_ask(ask); !good) return std::unexpected(good.error());
  if (auto fits = check_release(ask.slurm_version, slurm.snapshot->capabilities.release); !fits)
    return std::unexpected(fits.error());
  // Pool::node_conf was checked for slurmctld's release only. The slurmd of this host may be older.
  auto words = check_node_words(pool->second.node_conf, {slurm.snapshot->capabilities.release, ask.slurm_version});
  if (const auto merged = merged_conf(ask.conf, pool->second.node_conf); words && !merged)
    words = std::unexpected(merged.error());
  if (!words) return core::fail(ErrorCode::kInvalid, "slurmd's --conf would be invalid: " + words.error().message);
  Changes changes{.tokens = {{ask.token, left_of(token)}}};
  if (own != now.nodes.end()) {
    Node node = own->second;
    out = {node.name, node.pool, true};
    // The host has its node already, so this does not count as a use of the token.
    if (!node.revoked) return Changes{};
    node.revoked = false;
    changes.nodes.emplace(node.name, std::move(node));
    return changes;
  }
  if (auto room = check_room(now, slurm); !room) return std::unexpected(room.error());
  Pool next = pool->second;
  while (!taken_by(now, slurm, node_name(next.name, next.next_number)).empty()) ++next.next_number;
  Node node{
      .name = node_name(next.name, next.next_number), .pool = next.name, .key = ask.key, .joined = core::whole_seconds(at)};
  node.report.hostname = ask.hostname;
  node.report.slurm_version = ask.slurm_version;
  ++next.next_number;
  out = {node.name, node.pool, false};
  changes.pools.emplace(next.name, std::move(next));
  changes.nodes.emplace(node.name, std::move(node));
  return changes;
}

core::Result<Changes> make_pool(const Contents& now, const SlurmNow& slurm, Pool wish) {
  if (auto good = check_pool_name(wish.name); !good) return std::unexpected(good.error());
  if (auto good = check_partition_conf(wish.partition_conf); !good) return std::unexpected(good.error());
  if (auto good = check_node_words(wish.node_conf, {slurm.snapshot->capabilities.release}); !good)
    return std::unexpected(good.error().with("node parameters"));
  if (const auto found = now.pools.find(wish.name); found != now.pools.end()) {
    if (found->second.removing)
      return core::fail(ErrorCode::kConflict, "pool " + wish.name + " is being removed; wait until pool list does not show it");
    if (found->second.partition_conf == wish.partition_conf && found->second.node_conf == wish.node_conf) return Changes{};
    return core::fail(ErrorCode::kAlreadyExists,
                      "pool " + wish.name + " exists already, with other parameters; choose another name");
  }
  if (auto known = slurm_known(slurm); !known) return std::unexpected(known.error());
  if (const std::string_view by = taken_by(now, slurm, wish.name); !by.empty())
    return core::fail(
        ErrorCode::kAlreadyExists,
        fmt::format("the name {} is taken by {}, and Slurm needs them to differ; choose another name", wish.name, by));
  wish.removing = false;
  wish.next_number = next_number_of(now, wish.name);
  Changes changes;
  std::map<std::string, Pool> found = found_pools(now.values);
  if (const auto taken_up = found.extract(wish.name); !taken_up.empty()) {
    if (wish.partition_conf.empty()) wish.partition_conf = taken_up.mapped().partition_conf;
    changes.values[kFoundValue] = found_value(found);
  }
  const std::string name = wish.name;
  changes.pools.emplace(name, std::move(wish));
  return changes;
}

core::Result<Changes> make_token(const Contents& now, const std::string& digest, const Token& token, core::WallTime at) {
  if (const auto pool = now.pools.find(token.pool); pool != now.pools.end() && pool->second.removing)
    return core::fail(ErrorCode::kConflict, "pool " + token.pool + " is being removed");
  if (!now.pools.contains(token.pool))
    return core::fail(ErrorCode::kNotFound, fmt::format("there is no pool {}; make it with slurm-enlist pool create",
                                                        token.pool.substr(0, kLongestName)));
  Changes changes;
  for (const auto& [old, one] : now.tokens) {
    if (one.expires <= at) changes.tokens.emplace(old, std::nullopt);
  }
  changes.tokens.insert_or_assign(digest, token);
  return changes;
}

core::Result<Desired> desired_of(const Contents& now, const Node& node, const core::Result<SlurmFacts>& facts,
                                 const core::Result<std::string>& key_revision) {
  if (!facts) return std::unexpected(facts.error());
  if (!key_revision) return std::unexpected(key_revision.error());
  const auto pool = now.pools.find(node.pool);
  if (pool == now.pools.end()) return core::fail(ErrorCode::kInvalid, "pool " + node.pool + " does not exist");
  core::Result<std::string> words = merged_conf(pool->second.node_conf, node.node_conf);
  if (!words) return std::unexpected(words.error());
  return Desired{.node = node.name,
                 .pool = node.pool,
                 .cluster = facts->cluster_name,
                 .controllers = facts->controllers,
                 .node_conf = *std::move(words),
                 .key_revision = *key_revision,
                 .registrations = node.registrations,
                 .leave = std::string(leave_of(node))};
}

}  // namespace enlist
