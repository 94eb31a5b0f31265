#include "operator/common/partition.hpp"

#include <algorithm>
#include <string>

namespace op {

core::Result<slurm::conf::Entry> partition_line(std::string_view name, std::string_view config) {
  slurm::conf::Conf line;
  std::string wrong;
  for (const slurm::conf::Problem& problem :
       line.add_record("PartitionName", name, "Nodes=" + std::string(name) + " " + std::string(config))) {
    if (problem.fatal) wrong += (wrong.empty() ? "" : "; ") + problem.str();
  }
  const auto is_nodes = [](const slurm::conf::Setting& setting) { return setting.key == "Nodes"; };
  if (wrong.empty() && std::ranges::count_if(line.entries().front().settings, is_nodes) > 1)
    wrong = "Nodes: set by the operator to the workers of the NodeSet; remove it";
  if (!wrong.empty()) return core::fail(core::ErrorCode::kInvalid, std::move(wrong));
  return line.entries().front();
}

std::string partition_doubts(std::string_view name, std::string_view config) {
  slurm::conf::Conf line;
  std::string out;
  for (const slurm::conf::Problem& problem :
       line.add_record("PartitionName", name, "Nodes=" + std::string(name) + " " + std::string(config))) {
    if (!problem.fatal) out += "; " + problem.str();
  }
  return out;
}

}  // namespace op
