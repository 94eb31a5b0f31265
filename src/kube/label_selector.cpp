#include "kube/label_selector.hpp"

#include <optional>
#include <string>
#include <vector>

namespace kube {

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Splits at commas outside of parentheses.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(trim(text.substr(begin, i - begin)));
      begin = i + 1;
    } else if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')') {
      --depth;
    }
  }
  return parts;
}

std::optional<std::string_view> value_of(const StringMap& labels, std::string_view key) {
  const auto it = labels.find(key);
  if (it == labels.end()) return std::nullopt;
  return it->second;
}

/// Reports whether "(x, y)" contains the value. Returns nullopt if the text is not a list of this form.
std::optional<bool> in_set(std::string_view set, std::optional<std::string_view> value) {
  set = trim(set);
  if (!set.starts_with('(') || !set.ends_with(')')) return std::nullopt;
  for (const std::string_view item : split(set.substr(1, set.size() - 2))) {
    if (value && item == *value) return true;
  }
  return false;
}

bool matches(std::string_view requirement, const StringMap& labels) {
  if (requirement.empty()) return false;
  if (requirement.starts_with('!')) return !value_of(labels, trim(requirement.substr(1)));
  if (const auto at = requirement.find(" notin "); at != std::string_view::npos) {
    const auto found = in_set(requirement.substr(at + 7), value_of(labels, trim(requirement.substr(0, at))));
    return found && !*found;
  }
  if (const auto at = requirement.find(" in "); at != std::string_view::npos) {
    return in_set(requirement.substr(at + 4), value_of(labels, trim(requirement.substr(0, at)))).value_or(false);
  }
  if (const auto at = requirement.find("!="); at != std::string_view::npos) {
    return value_of(labels, trim(requirement.substr(0, at))) != trim(requirement.substr(at + 2));
  }
  if (const auto at = requirement.find('='); at != std::string_view::npos) {
    std::string_view wanted = requirement.substr(at + 1);
    if (wanted.starts_with('=')) wanted.remove_prefix(1);
    return value_of(labels, trim(requirement.substr(0, at))) == trim(wanted);
  }
  return value_of(labels, requirement).has_value();
}

}  // namespace

bool matches_labels(std::string_view selector, const StringMap& labels) {
  if (trim(selector).empty()) return true;
  for (const std::string_view requirement : split(selector)) {
    if (!matches(requirement, labels)) return false;
  }
  return true;
}

}  // namespace kube
