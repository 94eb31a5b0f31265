#include "slurm/conf/loaded.hpp"

namespace slurm::conf {
namespace {
constexpr std::string_view kPrefix = "slurm-operator-";
}

std::string marker_partition(std::string_view hash) {
  return "PartitionName=" + std::string(kPrefix) + std::string(hash) + " Hidden=YES RootOnly=YES State=INACTIVE";
}

bool is_marker(std::string_view partition) {
  return partition.starts_with(kPrefix);
}

std::optional<std::string> loaded_hash(const Snapshot& snapshot) {
  // Names are sorted: the marker, if any, is the first name that is not less than the prefix.
  const auto found = snapshot.partitions.lower_bound(kPrefix);
  if (found == snapshot.partitions.end() || !is_marker(found->first)) return {};
  return found->first.substr(kPrefix.size());
}

}  // namespace slurm::conf
