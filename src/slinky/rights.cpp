#include "slinky/rights.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace slinky {
namespace {

/// The usual order of verbs.
constexpr std::array<std::string_view, 7> kVerbs{"get", "list", "watch", "create", "update", "patch", "delete"};

core::Json ordered(const std::set<std::string, std::less<>>& verbs) {
  core::Json out = core::Json::array();
  for (const std::string_view verb : kVerbs) {
    if (verbs.contains(verb)) out.push_back(verb);
  }
  return out;
}

}  // namespace

void Rights::add(const kube::Resource& resource, std::initializer_list<std::string_view> verbs, std::string_view subresource) {
  for (const std::string_view verb : verbs) {
    if (std::ranges::find(kVerbs, verb) == kVerbs.end()) throw std::invalid_argument("no verb: " + std::string(verb));
  }
  const std::string name = subresource.empty() ? resource.plural : resource.plural + "/" + std::string(subresource);
  verbs_[{resource.group, name}].insert(verbs.begin(), verbs.end());
}

core::Json Rights::rules() const {
  std::map<std::pair<std::string, core::Json>, core::Json> resources;
  for (const auto& [what, verbs] : verbs_) resources[{what.first, ordered(verbs)}].push_back(what.second);
  core::Json out = core::Json::array();
  for (const auto& [rule, names] : resources) {
    out.push_back({{"apiGroups", core::Json::array({rule.first})}, {"resources", names}, {"verbs", rule.second}});
  }
  return out;
}

}  // namespace slinky
