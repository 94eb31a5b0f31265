// The decisions about requests that take something out of the cluster: nodes that leave or stay, keys, and pools. Pure: the
// caller commits the changes. A request that was carried out already changes nothing.
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

/// Lets nodes leave: all, or none. Error: kNotFound, with the names that no node has.
[[nodiscard]] core::Result<Changes> leave(const Contents& now, const std::vector<std::string>& nodes, bool force,
                                          core::WallTime at);

/// Takes the wish to leave back, or else the one for other words. Errors: kNotFound; kConflict if the host of one of the nodes
/// may have stopped slurmd, or if the pool is being removed.
[[nodiscard]] core::Result<Changes> keep(const Contents& now, const std::vector<std::string>& nodes);

/// Takes away the access of nodes to the coordinator, and withdraws all tokens of their pools. Error: kNotFound.
[[nodiscard]] core::Result<Changes> revoke(const Contents& now, const std::vector<std::string>& nodes);

/// The jobs that Slurm, asked now, has; or why it did not answer.
using LiveJobs = core::Result<std::vector<std::shared_ptr<const slurm::Job>>>;

/// Begins to remove a pool, also one that was only found in the pool file, and deletes its tokens. Errors: kNotFound;
/// kUnavailable (Slurm does not answer); kConflict, with the jobs that run or wait in the partition, unless `force`. Then they
/// are waited for.
[[nodiscard]] core::Result<Changes> remove_pool(const Contents& now, const LiveJobs& live, const std::string& pool, bool force);

}  // namespace enlist
