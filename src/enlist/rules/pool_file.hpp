// The include file of slurm.conf with the pools, and what slurm.conf itself needs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "enlist/rules/model.hpp"

namespace enlist {

/// The name of the include file, beside slurm.conf. slurmctld sends it to configless slurmds because it has no folder.
inline constexpr std::string_view kPoolFile = "slurm-enlist.conf";

/// Checks the words of a pool's partition: known keys, no PartitionName, no Nodes. Error: kInvalid with the word and what is
/// allowed.
[[nodiscard]] core::Result<void> check_partition_conf(std::string_view words);

/// Returns the file: for each pool, by name, "NodeSet=X Feature=X" and "PartitionName=X Nodes=X ...", and last the hidden partition
/// that tells which file slurmctld has loaded (slurm/conf/loaded.hpp, Owner::kEnlistment).
[[nodiscard]] std::string pool_file(const std::map<std::string, Pool>& pools);
/// Returns the hash in the marker of a file; "" if it has none.
[[nodiscard]] std::string hash_of(std::string_view pool_file);

/// What `coordinator init` finds in a slurm.conf.
struct Preflight {
  std::vector<std::string> problems;  ///< What init cannot set: named with the key, the value, and what is needed (auth/munge ...).
  std::vector<std::string> changes;   ///< What `text` changes: one line for people each.
  std::string text;                   ///< The slurm.conf with the changes; comments and the order of lines stay.
};
/// Checks slurm.conf for what joining needs: `Include slurm-enlist.conf` last, MaxNodeCount (by default `max_nodes`), enable_configless
/// in SlurmctldParameters, SelectType select/cons_tres, AuthType auth/slurm, AuthAltTypes auth/jwt with a jwt_key, and cred/slurm.
/// auth/munge and other select plugins are problems. `jwt_key`: the path to set if there is none.
[[nodiscard]] Preflight preflight(std::string_view slurm_conf, std::size_t max_nodes, std::string_view jwt_key);

}  // namespace enlist
