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

/// Checks the words of a pool's partition: known keys, no PartitionName, no Nodes, one line. Error: kInvalid with the word and
/// what is allowed.
[[nodiscard]] core::Result<void> check_partition_conf(std::string_view words);

/// Returns the file: "NodeSet=X Feature=X" for each pool, by name, "PartitionName=X Nodes=X ..." for each pool, and last the
/// hidden partition that tells which file slurmctld has loaded (slurm/conf/loaded.hpp, Owner::kEnlistment). A partition of a
/// pool that is being removed has State=DRAIN: it takes no new jobs, and those in the queue go on. The same pools give the same
/// text. `key_revision`: the revision of the auth key that slurmctld has to load with the file. "": the file does not tell.
[[nodiscard]] std::string pool_file(const std::map<std::string, Pool>& pools, std::string_view key_revision = {});
/// Returns the revision of the auth key in a file of pool_file(); "" if it has none.
[[nodiscard]] std::string_view key_revision_of(std::string_view pool_file);
/// Returns a file of pool_file() with another key revision. "": the file does not tell one.
[[nodiscard]] std::string with_key_revision(std::string_view pool_file, std::string_view key_revision);
/// True if two files of pool_file() have the same pools.
[[nodiscard]] bool same_pools(std::string_view one, std::string_view other);
/// Returns the hash in the marker of a file; "" if it has none.
[[nodiscard]] std::string hash_of(std::string_view pool_file);

/// Returns the pools of a pool file that has our marker, with the words of their partitions. Partitions without a NodeSet of
/// their name, and those whose name no pool can have, are somebody else's and left out, as are all of a file without a marker.
[[nodiscard]] std::map<std::string, Pool> pools_of(std::string_view pool_file);

/// What `coordinator init` finds in a slurm.conf.
struct Preflight {
  std::vector<std::string>
      problems;  ///< What init cannot set: named with the key, the value, and what is needed (auth/munge ...).
  std::vector<std::string> changes;  ///< What `text` changes: one line for people each.
  std::string text;                  ///< The slurm.conf with the changes; comments and the order of lines stay.
  std::string jwt_key;               ///< The path of the key for JWTs that slurmctld has with `text`.
};
/// Checks slurm.conf for what joining needs: `Include slurm-enlist.conf` (added as the last line), MaxNodeCount (at least
/// `max_nodes`, as far as Slurm allows it), enable_configless in SlurmctldParameters, SelectType select/cons_tres (the
/// default), AuthType auth/slurm, AuthAltTypes auth/jwt with a jwt_key, and cred/slurm. Another AuthType, also by default, and
/// other select plugins are problems: they are the administrator's decision. `jwt_key`: the path to set if slurmctld has none.
///
/// `included`: the texts of the other files that slurm.conf includes, by the names in its Include lines (included_files()).
/// Settings count in Slurm's order: the last one wins. Included files are not changed: what would have to change there is a
/// problem, and so is a file that is not given. A second call with the changed text changes nothing.
[[nodiscard]] Preflight preflight(std::string_view slurm_conf, std::size_t max_nodes, std::string_view jwt_key,
                                  const std::map<std::string, std::string>& included = {});
/// Returns the names in the Include lines of a text, without kPoolFile.
[[nodiscard]] std::vector<std::string> included_files(std::string_view slurm_conf);

}  // namespace enlist
