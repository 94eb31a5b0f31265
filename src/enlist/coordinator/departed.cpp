#include "enlist/coordinator/departed.hpp"

#include <utility>

#include "enlist/wire/messages.hpp"

namespace enlist {

std::map<std::string, Node> departed_nodes(const std::map<std::string, core::Json>& values) {
  std::map<std::string, Node> out;
  const auto found = values.find(kDepartedValue);
  if (found == values.end() || !found->second.is_object()) return out;
  for (const auto& [name, json] : found->second.items()) {
    if (auto node = from_json<Node>(json)) out.emplace(name, *std::move(node));
  }
  return out;
}

std::optional<core::Json> departed_value(const std::map<std::string, Node>& departed) {
  if (departed.empty()) return std::nullopt;
  core::Json out = core::Json::object();
  for (const auto& [name, node] : departed) out[name] = to_json(node);
  return out;
}

}  // namespace enlist
