// The decision about the request that a node gets other words of --conf for itself. Pure: the caller commits the changes.
#pragma once

#include <string>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "enlist/coordinator/joining.hpp"
#include "enlist/store/store.hpp"

namespace enlist {

/// Gives a node words of --conf for itself, in place of those that it had. If Slurm takes them while slurmd runs (Weight and
/// Features), they count at once. Otherwise they are a wish, which waits until nothing runs there. The former words take a wish
/// back, until the host may have stopped slurmd; after that they replace it. Words that the node has already change nothing,
/// unless Slurm's record is invalid or has other CPUs or memory: then the node gets a new record. Errors: kInvalid, with the
/// word and its cause; kNotFound; kConflict if the node leaves or is revoked; kUnavailable if the release of Slurm is not
/// known.
[[nodiscard]] core::Result<Changes> configure(const Contents& now, const SlurmNow& slurm, const std::string& node,
                                              const std::string& words, core::WallTime at);

}  // namespace enlist
