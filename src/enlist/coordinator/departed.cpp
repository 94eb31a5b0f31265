#include "enlist/coordinator/departed.hpp"

#include <string_view>
#include <utility>

#include "enlist/wire/messages.hpp"

namespace enlist {
namespace {

constexpr std::string_view kPrefix = "departed-node/";

}  // namespace

std::string departed_value(const std::string& node) {
  return std::string(kPrefix) + node;
}

std::optional<Node> departed_node(const std::map<std::string, core::Json>& values, const std::string& node) {
  const auto found = values.find(departed_value(node));
  if (found == values.end()) return std::nullopt;
  auto read = from_json<Node>(found->second);
  return read ? std::optional(*std::move(read)) : std::nullopt;
}

std::vector<std::string> departed_nodes(const std::map<std::string, core::Json>& values) {
  std::vector<std::string> out;
  for (auto value = values.lower_bound(std::string(kPrefix)); value != values.end() && value->first.starts_with(kPrefix);
       ++value)
    out.push_back(value->first.substr(kPrefix.size()));
  return out;
}

}  // namespace enlist
