// Parses Slurm's texts independently and simply, because the oracles must not share the operator's mistakes (src/slurm/conf,
// core/hostlist, slurm/holds).
//
// Accepts less than Slurm on purpose: only texts that the operator writes, or that histories and tests contain.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace sim {

/// Returns the text in lower case, because Slurm's keywords and keys are case-insensitive.
std::string lower(std::string_view text);
/// Returns the integer at the beginning of a text; `fallback` if there is none.
int number(std::string_view text, int fallback);
/// Returns the parts between separators, without empty parts.
std::vector<std::string> split(std::string_view text, char separator);

/// The "Key=Value" pairs of one line: keys in lower case, values without their double quotes.
using ConfWords = std::vector<std::pair<std::string, std::string>>;
/// Returns the value of `key`, which must be in lower case; "" if the line does not have the key.
std::string word(const ConfWords& words, std::string_view key);

/// Returns the lines of slurm.conf. Error: kInvalid if slurmctld would end because of the text.
core::Result<std::vector<ConfWords>> read_slurm_conf(std::string_view text);
/// Parses the argument of slurmd's --conf. Error: kInvalid if slurmd would end because of it.
core::Result<ConfWords> read_node_conf(std::string_view words);
/// Parses a hostlist such as "cpu-[0-3,07],login". Error: kInvalid.
core::Result<std::vector<std::string>> read_hostlist(std::string_view text);
/// Returns a hostlist that contains each of these names once.
std::string write_hostlist(const std::vector<std::string>& names);

/// Reports whether the reason of a drain or DOWN was set by the operator.
bool given_by_operator(std::string_view reason);
/// Reports whether a reason is slurmctld's message about a slurmd that has less memory or GRES than its record says.
bool tells_lack(std::string_view reason);

}  // namespace sim
