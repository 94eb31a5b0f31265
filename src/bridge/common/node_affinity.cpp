#include "bridge/common/node_affinity.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace bridge {
namespace {

using core::Json;

/// Reads a number as Kubernetes compares it. nullopt: the text is no number, so the expression matches no node.
std::optional<long long> whole(std::string_view text) {
  long long out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

/// The values of one label that all expressions so far allow.
class Allowed {
 public:
  void add(const std::string& op, const std::set<std::string>& values) {
    if (op == "In") {
      in(values);
    } else if (op == "NotIn") {
      not_in_.insert(values.begin(), values.end());
    } else if (op == "DoesNotExist") {
      absent_ = true;
    } else if (op == "Exists") {
      exists_ = true;
    } else if ((op == "Gt" || op == "Lt") && values.size() == 1) {
      bound(op == "Gt", whole(*values.begin()));
    }
  }

  [[nodiscard]] bool none() const {
    const bool bounded = above_ || below_;
    if (absent_) return in_ || exists_ || bounded;
    if (in_) return std::ranges::none_of(*in_, [this](const std::string& value) { return holds(value); });
    return above_ && below_ && *above_ >= *below_ - 1;
  }

 private:
  void in(const std::set<std::string>& values) {
    if (!in_) {
      in_ = values;
    } else {
      std::erase_if(*in_, [&](const std::string& value) { return !values.contains(value); });
    }
  }
  void bound(bool above, std::optional<long long> limit) {
    if (!limit) return in({});
    if (above) {
      above_ = std::max(above_.value_or(*limit), *limit);
    } else {
      below_ = std::min(below_.value_or(*limit), *limit);
    }
  }
  [[nodiscard]] bool holds(const std::string& value) const {
    if (not_in_.contains(value)) return false;
    if (!above_ && !below_) return true;
    const auto number = whole(value);
    return number && (!above_ || *number > *above_) && (!below_ || *number < *below_);
  }

  std::optional<std::set<std::string>> in_;  ///< nullopt: any value.
  std::set<std::string> not_in_;
  std::optional<long long> above_, below_;
  bool exists_ = false, absent_ = false;
};

using ByLabel = std::map<std::string, Allowed>;

void add_expressions(ByLabel& labels, const Json& term, const char* list) {
  const Json* expressions = core::find(term, {list});
  if (expressions == nullptr || !expressions->is_array()) return;
  for (const Json& expression : *expressions) {
    std::set<std::string> values;
    if (const Json* given = core::find(expression, {"values"}); given != nullptr && given->is_array()) {
      for (const Json& value : *given) values.insert(value.is_string() ? value.get<std::string>() : value.dump());
    }
    labels[core::get_string(expression, {"key"})].add(core::get_string(expression, {"operator"}), values);
  }
}

/// Returns the label or field for which no value satisfies both the term and the node selector; "" if there is none.
std::string impossible(const kube::StringMap& node_selector, const Json& term) {
  ByLabel labels, fields;
  for (const auto& [label, value] : node_selector) labels[label].add("In", {value});
  add_expressions(labels, term, "matchExpressions");
  add_expressions(fields, term, "matchFields");
  for (const ByLabel* of : {&labels, &fields}) {
    for (const auto& [key, allowed] : *of) {
      if (allowed.none()) return key;
    }
  }
  return {};
}

}  // namespace

std::string contradiction(const kube::StringMap& node_selector, const Json& affinity) {
  const Json* terms =
      core::find(affinity, {"nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  if (terms == nullptr || !terms->is_array()) return {};
  for (std::size_t i = 0; i < terms->size(); ++i) {
    const std::string key = impossible(node_selector, (*terms)[i]);
    if (key.empty()) continue;
    return "spec.affinity.nodeAffinity: no node can match the required term " + std::to_string(i + 1) + ", which contradicts " +
           (node_selector.contains(key) ? "the node selector" : "itself") + " about " + key;
  }
  return {};
}

}  // namespace bridge
