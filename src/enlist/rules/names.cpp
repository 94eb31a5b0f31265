#include "enlist/rules/names.hpp"

#include <algorithm>

#include "enlist/rules/text.hpp"
#include "slurm/conf/loaded.hpp"

namespace enlist {
namespace {

constexpr std::size_t kLongestPoolName = 40;

bool letter(char c) {
  return c >= 'a' && c <= 'z';
}
bool digit(char c) {
  return c >= '0' && c <= '9';
}

/// Returns the rule that the name of a pool breaks; "": none.
std::string why_no_pool_name(std::string_view name) {
  const bool plain = std::ranges::all_of(name, [](char c) { return letter(c) || digit(c) || c == '-'; });
  if (name.empty() || name.size() > kLongestPoolName || !plain || !letter(name.front()) || name.back() == '-')
    return "must be 1 to 40 of a-z, 0-9 and \"-\", a letter first, and no \"-\" last";
  const std::size_t dash = name.rfind('-');
  if (dash != std::string_view::npos && std::ranges::all_of(name.substr(dash + 1), digit))
    return "must not end with \"-\" and a number, like the name of a node";
  // PartitionName=default sets the defaults of other partitions, and Nodes=all means every node of the cluster, in any case.
  if (name == "default" || name == "all") return "is a reserved word in slurm.conf";
  for (const slurm::Owner owner : {slurm::Owner::kOperator, slurm::Owner::kBridge, slurm::Owner::kEnlistment}) {
    if (slurm::conf::is_marker(owner, name))
      return "must not begin with \"" + slurm::conf::marker_name(owner, "") + "\", like a partition that marks a configuration";
  }
  return {};
}

}  // namespace

core::Result<void> check_pool_name(std::string_view name) {
  if (std::string why = why_no_pool_name(name); !why.empty())
    return core::fail(core::ErrorCode::kInvalid, "pool \"" + shown(name) + "\": the name " + why);
  return {};
}

std::string node_name(std::string_view pool, std::int64_t number) {
  return std::string(pool) + "-" + std::to_string(number);
}

}  // namespace enlist
