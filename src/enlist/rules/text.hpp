// Small functions that parse and write values of Slurm and texts for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace enlist {

/// Reports whether the texts are equal without regard to the case of ASCII letters, as Slurm compares keys.
[[nodiscard]] bool same_word(std::string_view a, std::string_view b);
/// Returns the items of "a, b,c" without blanks around them. Empty items are left out.
[[nodiscard]] std::vector<std::string> list_items(std::string_view list);
/// Joins the items with commas: "a,b,c".
[[nodiscard]] std::string comma_list(const std::vector<std::string>& items);
/// Parses a whole number of slurm.conf: "64" or "64k" (65536). nullopt: the text is no such number, or it is too large.
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view text);
/// Returns the text for a message: its first 60 bytes with "?" in place of control characters, and "..." if there are more.
[[nodiscard]] std::string shown(std::string_view text);
/// Parses a duration: "90s", "15m", "1h", "7d". Error: kInvalid.
[[nodiscard]] core::Result<std::chrono::seconds> parse_time(std::string_view text);

}  // namespace enlist
