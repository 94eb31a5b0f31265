// The decisions about requests that add something to the store: hosts, pools and tokens. Pure: the caller commits the changes.
#pragma once

#include <cstdint>
#include <string>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "enlist/coordinator/slurm_facts.hpp"
#include "enlist/store/store.hpp"
#include "enlist/wire/messages.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace enlist {

/// The state of Slurm when a request arrives.
struct SlurmNow {
  const core::Result<SlurmFacts>& facts;
  slurm::SnapshotPtr snapshot;
};

struct JoinAsk {
  std::string token;  ///< The digest of the token's secret.
  std::string key;    ///< The fingerprint of the host's key.
  std::string hostname, slurm_version, conf;
};
struct Joined {
  std::string node, pool;
  bool again = false;  ///< The host has joined before, and gets its former node again.
};

/// Returns the text with blanks in place of control characters, also of those beyond ASCII (U+0080 to U+009F), which some
/// terminals interpret.
[[nodiscard]] std::string without_controls(std::string text);

/// Checks whether the host with this key can use a token. A token that is used up is still valid for a host that has joined the
/// token's pool, because the reply to that host may have been lost. Error: kUnauthorized. Its message is the same in all cases,
/// so that nobody learns which tokens exist.
[[nodiscard]] core::Result<void> check_token(const Contents& now, const std::string& digest, const std::string& key,
                                             core::WallTime at);

/// Checks whether slurmd on the host would use the cluster's auth key although the host has key files that slurm-enlist has not
/// written. `file`, `revision`: those of the cluster's key. Error: kConflict.
[[nodiscard]] core::Result<void> check_host_keys(const JoinRequest& host, std::string_view file,
                                                 const core::Result<std::string>& revision);

/// Decides whether a host may join, and returns the name of its node in `out`. Errors: those of check_token; kConflict (the key
/// has joined another pool, its node leaves, or the pool is being removed); kUnavailable (Slurm does not answer, or the auth
/// key cannot be read); kInvalid (anything else).
[[nodiscard]] core::Result<Changes> join(const Contents& now, const SlurmNow& slurm,
                                         const core::Result<std::string>& key_revision, const JoinAsk& ask, core::WallTime at,
                                         Joined& out);

/// Adds a pool. Changes nothing if the pool exists with the same parameters. A pool that was found in the pool file is added
/// with the parameters of its partition there, unless `wish` has others. Errors: kInvalid (the name or the parameters),
/// kAlreadyExists (the name is taken), kConflict (the pool is being removed), kUnavailable (Slurm does not answer).
[[nodiscard]] core::Result<Changes> make_pool(const Contents& now, const SlurmNow& slurm, Pool wish);

/// Adds a token, and deletes the expired ones. Errors: kConflict (the pool is being removed), kNotFound (there is no such
/// pool).
[[nodiscard]] core::Result<Changes> make_token(const Contents& now, const std::string& digest, const Token& token,
                                               core::WallTime at);

/// Returns what the agent of the node must bring about. Errors: those of `facts` and `key_revision`; kInvalid if the node's
/// pool does not exist, or if the parameters for --conf of the pool and the node cannot be merged.
[[nodiscard]] core::Result<Desired> desired_of(const Contents& now, const Node& node, const core::Result<SlurmFacts>& facts,
                                               const core::Result<std::string>& key_revision);

}  // namespace enlist
