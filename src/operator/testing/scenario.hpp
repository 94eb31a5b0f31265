// What the runners of tests/scenarios have in common.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace op::testing {

/// A misspelt word of a scenario would make it pass for the wrong reason: throws std::invalid_argument.
[[noreturn]] inline void unknown(std::string_view word) {
  throw std::invalid_argument("unknown: " + std::string(word));
}

/// Throws std::invalid_argument for a key that is not among `known`.
inline void check_keys(const core::Json& object, const std::vector<std::string_view>& known) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) == known.end()) unknown(key);
  }
}

/// The one key and value of an action, as in `- advance: 600`; throws std::invalid_argument unless there is exactly one.
inline std::pair<std::string, core::Json> only_item(const core::Json& action) {
  if (action.size() != 1) throw std::invalid_argument("not one action: " + action.dump());
  return {action.begin().key(), action.begin().value()};
}

/// "Forbidden"; throws std::invalid_argument for a word that no code has.
inline core::ErrorCode code_of(const std::string& word) {
  using enum core::ErrorCode;
  for (const auto code : {kInvalid, kForbidden, kAlreadyExists, kConflict, kUnavailable, kBusy, kInternal}) {
    if (core::to_string(code) == word) return code;
  }
  unknown(word);
}

}  // namespace op::testing
