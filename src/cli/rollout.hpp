// `kubectl slurm rollout`: shows the progress of a NodeSet's update and its revisions, and restores a revision. Pure, except
// for the commands themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace cli {

struct RolloutState {
  enum class Phase {
    kComplete,
    kUnderWay,
    kWaitsForPeople,  ///< The update continues only after a user has acted.
  };
  Phase phase = Phase::kUnderWay;
  std::string text;  ///< The progress, or what the update waits for. One line.
};
RolloutState rollout_state(const core::Json& nodeset);

/// Returns those of `revisions` that the NodeSet owns, sorted by number, the newest last.
std::vector<core::Json> revisions_of(const core::Json& nodeset, std::vector<core::Json> revisions);
/// Returns a document about the revisions: which revision is in force, how many workers have each revision, and the changes
/// from one revision to the next.
core::Json history_document(const core::Json& nodeset, const std::vector<core::Json>& revisions,
                            const std::vector<core::Json>& workers);
std::string history_text(const core::Json& document);

/// Returns the revision that `rollout undo` restores: the revision with the given number. Without a number, the newest
/// revision whose template differs from the NodeSet's. Error: kNotFound.
core::Result<core::Json> revision_to_undo(const core::Json& nodeset, const std::vector<core::Json>& revisions,
                                          std::optional<std::int64_t> number);

}  // namespace cli
