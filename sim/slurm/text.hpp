// How Slurm reads its texts, written a second time and simply: what judges the
// operator must not share its mistakes (src/slurm/conf, core/hostlist,
// slurm::ours).
//
// Deliberately less than Slurm takes: what neither the operator writes nor a
// history or test has in it is refused.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace sim {

/// Slurm's keywords and names of keys are of any case.
std::string lower(std::string_view text);
/// The integer that a text begins with; the fallback when it begins with none.
int number(std::string_view text, int fallback);
/// What stands between separators; nothing for two of them side by side.
std::vector<std::string> split(std::string_view text, char separator);

/// "Key=Value" words of one line, keys in lower case, values without their
/// double quotes.
using ConfWords = std::vector<std::pair<std::string, std::string>>;
/// The value of a key (in lower case); "": there is none.
std::string word(const ConfWords& words, std::string_view key);

/// The lines of slurm.conf. Errors: kInvalid, for which slurmctld ends.
core::Result<std::vector<ConfWords>> read_slurm_conf(std::string_view text);
/// The argument of slurmd's --conf. Errors: kInvalid, for which slurmd ends.
core::Result<ConfWords> read_node_conf(std::string_view words);
/// "cpu-[0-3,07],login". Errors: kInvalid.
core::Result<std::vector<std::string>> read_hostlist(std::string_view text);
/// One hostlist for these names, each once.
std::string write_hostlist(const std::vector<std::string>& names);

/// The reason of a drain or DOWN says that the operator gave it.
bool given_by_operator(std::string_view reason);
/// slurmctld's own words for a slurmd that has less than its record.
bool tells_lack(std::string_view reason);

}  // namespace sim
