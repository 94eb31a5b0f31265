// `kubectl slurm rollout`: how far an update of a NodeSet is, which revisions there are, and back to one of them. Pure, but for
// the commands themselves.
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
    kWaitsForPeople,  ///< It does not go on by itself.
  };
  Phase phase = Phase::kUnderWay;
  std::string text;  ///< How far it is, or what it waits for; one line.
};
RolloutState rollout_state(const core::Json& nodeset);

/// The revisions of a NodeSet by their numbers, the newest last.
std::vector<core::Json> revisions_of(const core::Json& nodeset, std::vector<core::Json> revisions);
/// A document of them: which is in force, how many workers are of each, and what changed from each to the next.
core::Json history_document(const core::Json& nodeset, const std::vector<core::Json>& revisions,
                            const std::vector<core::Json>& workers);
std::string history_text(const core::Json& document);

/// The revision to go back to: of this number, or without one the newest before that in force. Error: there is none.
core::Result<core::Json> revision_to_undo(const core::Json& nodeset, const std::vector<core::Json>& revisions,
                                          std::optional<std::int64_t> number);

}  // namespace cli
