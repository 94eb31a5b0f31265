#include "slurm/conf/loaded.hpp"

namespace slurm::conf {

std::string marker_name(Owner writer, std::string_view hash) {
  return std::string(to_string(writer)) + "-" + std::string(hash);
}

std::string marker_partition(Owner writer, std::string_view hash) {
  return "PartitionName=" + marker_name(writer, hash) + " Hidden=YES RootOnly=YES State=INACTIVE";
}

bool is_marker(Owner writer, std::string_view partition) {
  return partition.starts_with(marker_name(writer, ""));
}

std::optional<std::string> loaded_hash(Owner writer, const Snapshot& snapshot) {
  // Names are sorted: the marker, if any, is the first name that is not less than the prefix.
  const std::string prefix = marker_name(writer, "");
  const auto found = snapshot.partitions.lower_bound(prefix);
  if (found == snapshot.partitions.end() || !is_marker(writer, found->first)) return {};
  return found->first.substr(prefix.size());
}

}  // namespace slurm::conf
