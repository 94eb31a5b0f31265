// Writes the include file of slurm.conf with the pools, and checks whether slurm.conf itself has what joining needs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "enlist/rules/model.hpp"

namespace enlist {

/// The name of the include file, which is beside slurm.conf. slurmctld sends included files to configless slurmds only if their
/// Include line names no folder.
inline constexpr std::string_view kPoolFile = "slurm-enlist.conf";

/// Checks Pool::partition_conf: known keys, no PartitionName, no Nodes, one line. Error: kInvalid with the parameter and the
/// rule.
[[nodiscard]] core::Result<void> check_partition_conf(std::string_view words);

/// Returns the text of the pool file: for each pool, by name, "NodeSet=X Feature=X" and "PartitionName=X Nodes=X ...", and last
/// the hidden partition that shows which file slurmctld has loaded (slurm/conf/loaded.hpp, Owner::kEnlistment). The partition
/// of a pool that is being removed has State=DRAIN: it accepts no new jobs, and jobs in its queue still run. The same pools
/// give the same text. `key_revision`: the revision of the auth key that slurmctld has to load with the file. "": none.
[[nodiscard]] std::string pool_file(const std::map<std::string, Pool>& pools, std::string_view key_revision = {});
/// Returns the revision of the auth key in a file of pool_file(); "" if the file has none.
[[nodiscard]] std::string_view key_revision_of(std::string_view pool_file);
/// Returns a file of pool_file() with this key revision in place of its own. `key_revision` "": the result has none.
[[nodiscard]] std::string with_key_revision(std::string_view pool_file, std::string_view key_revision);
/// True if two files of pool_file() have the same pools.
[[nodiscard]] bool same_pools(std::string_view one, std::string_view other);
/// Returns the hash in the marker partition of a file of pool_file(); "" if the file has no marker.
[[nodiscard]] std::string hash_of(std::string_view pool_file);

/// Returns the pools in a pool file, with the parameters of their partitions. Leaves out partitions of somebody else: those
/// without a NodeSet of their name, those whose name no pool can have, and all in a file without our marker.
[[nodiscard]] std::map<std::string, Pool> pools_of(std::string_view pool_file);

/// What `coordinator init` finds in a slurm.conf.
struct Preflight {
  std::vector<std::string> problems;  ///< Settings that init cannot change: for each the key, the value, and what is needed.
  std::vector<std::string> changes;   ///< The changes that `text` makes: for each one line for people.
  std::string text;                   ///< The slurm.conf with the changes. Comments and the order of lines stay.
  std::string jwt_key;                ///< The path of the key for JWTs that slurmctld uses with `text`.
};
/// Checks the settings in slurm.conf that joining needs: `Include slurm-enlist.conf` (added as the last line), MaxNodeCount (at
/// least `max_nodes`, as far as Slurm allows it), enable_configless in SlurmctldParameters, SelectType select/cons_tres (the
/// default), AuthType auth/slurm, AuthAltTypes auth/jwt with a jwt_key, and CredType cred/slurm. Other values of AuthType (also
/// by default), CredType and SelectType are problems, because the administrator must decide. `jwt_key`: the path to set if
/// slurmctld has none.
///
/// `included`: the texts of the other files that slurm.conf includes, by the names in its Include lines (included_files()).
/// Of several settings of a key, the last one in Slurm's order counts. Included files are not changed: a change that is needed
/// there is a problem, and so is a missing text. A second call with the changed text changes nothing.
[[nodiscard]] Preflight preflight(std::string_view slurm_conf, std::size_t max_nodes, std::string_view jwt_key,
                                  const std::map<std::string, std::string>& included = {});
/// Returns the names in the Include lines of a text, without kPoolFile.
[[nodiscard]] std::vector<std::string> included_files(std::string_view slurm_conf);

}  // namespace enlist
