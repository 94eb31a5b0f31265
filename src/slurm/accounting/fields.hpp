// Translates settings of QOS and associations to the JSON of slurmrestd's data_parsers, and back.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "core/json.hpp"
#include "slurm/accounting/qos.hpp"

namespace slurm::accounting {

inline constexpr std::string_view kUsageFactor = "UsageFactor";

/// Returns the value that the field has in a new object.
[[nodiscard]] core::Json default_of(const QosField& field);
/// Returns the value that means "no number is set" in this field: kUnlimited for a limit, else kDefault.
[[nodiscard]] core::Json none_of(const QosField& field);
[[nodiscard]] core::Json list_json(std::set<std::string> words);
/// Returns the number, or `none` if it is unset or infinite.
[[nodiscard]] core::Json json_of(const Number& number, const core::Json& none);
/// Adds the limits that are set. `place` stands before each name: "site: ", or "".
void put_limits(Settings& out, const std::string& place, const Limits& limits);

/// Returns the number as slurmrestd spells it: {"set", "infinite", "number"}.
[[nodiscard]] core::Json number_json(const QosField& field, const core::Json& value);
/// Returns the request's list for a limit on TRES: the values in `found`, overwritten by those in `wanted`.
[[nodiscard]] core::Json tres_list(std::string_view field, const Settings& found, const Settings& wanted);
/// Sets the member at a path ("limits/max/jobs").
void put(core::Json& body, std::string_view path, core::Json value);

/// Returns how slurmrestd would misread the name in a path ("a number"), or "" if slurmrestd reads it as a name.
[[nodiscard]] std::string taken_for(std::string_view name);

}  // namespace slurm::accounting
