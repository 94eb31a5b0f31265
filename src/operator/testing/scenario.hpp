// What the runners of tests/scenarios have in common.
#pragma once

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace op::testing {

/// Numbers and booleans are what JSON takes for such; what is quoted is text.
inline core::Json from_yaml(const YAML::Node& node) {
  if (node.IsMap()) {
    core::Json out = core::Json::object();
    for (const auto& item : node) out[item.first.as<std::string>()] = from_yaml(item.second);
    return out;
  }
  if (node.IsSequence()) {
    core::Json out = core::Json::array();
    for (const auto& item : node) out.push_back(from_yaml(item));
    return out;
  }
  if (!node.IsScalar()) return nullptr;
  const std::string text = node.Scalar();
  if (node.Tag() == "!") return text;  // Quoted.
  core::Json parsed = core::Json::parse(text, nullptr, false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : core::Json(text);
}

/// Shell-like: "*" stands for anything.
inline bool matches(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  for (std::size_t from = star; from <= text.size(); ++from) {
    if (matches(pattern.substr(star + 1), text.substr(from))) return true;
  }
  return false;
}

/// What a scenario wants of one thing, and what was found: nullopt where that is not there. "(absent)" and "(present)" are
/// words of their own, "!" in front stands for "not". Nothing but "(absent)" holds of what is not there: neither "*" nor "!x"
/// says that it may be missing.
inline bool holds(std::string_view want, const std::optional<std::string>& found) {
  if (want == "(absent)") return !found.has_value();
  if (!found) return false;
  if (want == "(present)") return true;
  return want.starts_with('!') ? !matches(want.substr(1), *found) : matches(want, *found);
}

/// For messages of tests.
inline std::string lines(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += "  - " + item + "\n";
  return out.empty() ? "  (nothing)\n" : out;
}

/// Likewise: what was wanted beside what was found.
inline std::string found_of(const core::Json& want, const std::optional<std::string>& found) {
  return "\n  wanted: " + want.dump() + "\n  found:  " + found.value_or("(absent)");
}

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

/// `run:` of a step: how many passes at most, and whether nothing may be left to do after them. "settle", as without it: 25 of
/// them, and rest. "once" is 1, "none" is 0.
struct Run {
  int passes = 25;
  bool must_rest = true;
};
inline Run run_of(const core::Json& step) {
  if (!step.contains("run") || step["run"] == "settle") return {};
  const core::Json& run = step["run"];
  if (run == "once") return {1, false};
  if (run == "none") return {0, false};
  if (!run.is_number_unsigned()) unknown(run.dump());
  return {run.get<int>(), false};
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
