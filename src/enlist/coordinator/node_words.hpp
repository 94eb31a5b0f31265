// The decision about a request to change Node::node_conf, the parameters for --conf of one node. Pure: the caller commits the
// changes.
#pragma once

#include <string>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "enlist/coordinator/joining.hpp"
#include "enlist/store/store.hpp"

namespace enlist {

/// Requests that Node::node_conf becomes `words` (Node::configuring). If only Weight or Features change, which Slurm can change
/// while slurmd runs, this is done at once. Otherwise the request waits until nothing runs on the node. If `words` are equal to
/// Node::node_conf, they cancel a pending request, or replace its parameters if the host may have stopped slurmd. If none is
/// pending, they change nothing, unless the node's phase is kInvalid or Slurm's record has other CPUs or memory than
/// Report::conf: then the node gets a new record in Slurm. Errors: kInvalid, with the parameter and the cause;
/// kNotFound; kConflict if the node leaves or is revoked; kUnavailable if the release of Slurm is not known.
[[nodiscard]] core::Result<Changes> configure(const Contents& now, const SlurmNow& slurm, const std::string& node,
                                              const std::string& words, core::WallTime at);

}  // namespace enlist
