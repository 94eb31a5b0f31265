// The decisions about requests that take something out of the cluster: nodes, keys and pools. Pure: the caller commits the
// changes. A request that was carried out already changes nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "enlist/coordinator/joining.hpp"
#include "enlist/store/store.hpp"
#include "slurm/model.hpp"

namespace enlist {

/// Requests that all these nodes leave. After an error, nothing has changed. Errors: kNotFound, with the names that no node
/// has; kInvalid (no names).
[[nodiscard]] core::Result<Changes> leave(const Contents& now, const std::vector<std::string>& nodes, bool force,
                                          core::WallTime at);

/// Cancels the request that a node leaves, or if there is none, the request to restart it with other parameters. Errors:
/// kNotFound; kInvalid (no names); kConflict if the host of one of the nodes may have stopped slurmd, or if the pool of one of
/// the nodes is being removed.
[[nodiscard]] core::Result<Changes> keep(const Contents& now, const std::vector<std::string>& nodes);

/// Revokes the keys of nodes, so that the coordinator refuses their agents, and deletes all tokens of their pools. Errors:
/// kNotFound; kInvalid (no names).
[[nodiscard]] core::Result<Changes> revoke(const Contents& now, const std::vector<std::string>& nodes);

/// The jobs that Slurm has returned for this request, not those of a snapshot; or why Slurm did not answer.
using LiveJobs = core::Result<std::vector<std::shared_ptr<const slurm::Job>>>;

/// Begins to remove a pool, also one that was only found in the pool file, and deletes its tokens. Errors: kNotFound;
/// kUnavailable (Slurm does not answer); kConflict, with the jobs that run or wait in the partition. With `force`, the removal
/// waits for these jobs instead.
[[nodiscard]] core::Result<Changes> remove_pool(const Contents& now, const LiveJobs& live, const std::string& pool, bool force);

}  // namespace enlist
