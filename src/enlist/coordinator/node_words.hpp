// The decision about a request to change Node::node_conf, the parameters for --conf of one node. Pure: the caller commits the
// changes.
#pragma once

#include <string>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "enlist/coordinator/joining.hpp"
#include "enlist/store/store.hpp"

namespace enlist {

/// Replaces Node::node_conf with `words`. If only parameters change that Slurm can change while slurmd runs (Weight, Features),
/// the change takes effect at once. Otherwise it is a request (Node::configuring), which waits until nothing runs on the node.
/// The present parameters cancel a pending request, unless the host may have stopped slurmd: then they replace the request.
/// Without a request, the present parameters change nothing, unless the node is kInvalid or Slurm's record has other CPUs or
/// memory than Report::conf: then the node gets a new record in Slurm. Errors: kInvalid, with the parameter and the cause;
/// kNotFound; kConflict if the node leaves or is revoked; kUnavailable if the release of Slurm is not known.
[[nodiscard]] core::Result<Changes> configure(const Contents& now, const SlurmNow& slurm, const std::string& node,
                                              const std::string& words, core::WallTime at);

}  // namespace enlist
