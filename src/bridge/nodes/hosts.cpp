#include "bridge/nodes/hosts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "bridge/common/names.hpp"

namespace bridge::nodes {
namespace {

constexpr long double kMiB = 1024.0L * 1024;
/// The extended resources that are GPUs in Slurm.
constexpr std::array<std::string_view, 2> kGpus{"nvidia.com/gpu", "amd.com/gpu"};
/// Slurm keeps the number of CPUs in 16 bits.
constexpr std::int64_t kCpusAtMost = 65535;

std::int64_t whole(const kube::SchedulingNodeRecord& node, std::string_view resource, long double unit = 1) {
  const auto there = node.allocatable.find(resource);
  return there == node.allocatable.end() ? 0 : static_cast<std::int64_t>(std::floor(there->second / unit));
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string slurm_name_of(const kube::ObjectMeta& node) {
  const std::string_view given = node.label(kLabelSlurmNodeName);
  return std::string(given.empty() ? node.name : given);
}

Hosts hosts_of(const std::vector<HostPtr>& nodes) {
  Hosts out;
  for (const HostPtr& node : nodes) out[slurm_name_of(node->meta)].push_back(node);
  for (auto& [name, claimants] : out) {
    std::ranges::sort(claimants, {},
                      [&name](const HostPtr& node) { return std::pair(node->meta.name != name, node->meta.name); });
  }
  return out;
}

std::vector<std::string> partitions_of(const kube::ObjectMeta& node) {
  std::vector<std::string> out;
  std::string_view names = node.annotation(kAnnotationPartitions);
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    const std::string name(trimmed(names.substr(0, end)));
    if (!name.empty() && std::ranges::find(out, name) == out.end()) out.push_back(name);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return out;
}

core::Result<slurm::NodeWish> wish_of(const kube::SchedulingNodeRecord& node, const slurm::Snapshot& snapshot) {
  const auto invalid = [](std::string what) { return core::fail(core::ErrorCode::kInvalid, std::move(what)); };
  slurm::NodeWish out;
  out.name = slurm_name_of(node.meta);
  out.address = node.internal_ip;
  out.cpus = std::min(whole(node, "cpu"), kCpusAtMost);
  out.real_memory_mib = whole(node, "memory", kMiB);
  if (const auto gpus = gpu_resources_of(node); gpus.size() == 1) out.gpus = whole(node, gpus.front());
  out.features = partitions_of(node.meta);
  if (!slurm::is_plain_word(out.name)) return invalid("Slurm cannot have a node with the name " + out.name);
  if (!slurm::is_plain_word(out.address)) return invalid("the Kubernetes node has no InternalIP yet");
  if (out.cpus < 1 || out.real_memory_mib < 1) return invalid("the Kubernetes node has no allocatable CPU or memory yet");
  for (const std::string& partition : out.features) {
    if (!snapshot.partitions.contains(partition) || !slurm::is_plain_word(partition))
      return invalid("annotation " + std::string(kAnnotationPartitions) + ": Slurm has no partition \"" + partition + "\"");
  }
  return out;
}

std::vector<std::string> gpu_resources_of(const kube::SchedulingNodeRecord& node) {
  std::vector<std::string> out;
  for (const std::string_view resource : kGpus) {
    if (whole(node, resource) > 0) out.emplace_back(resource);
  }
  return out;
}

slurm::OwnFeatures features_of(const slurm::NodeWish& wish, const slurm::Snapshot& snapshot) {
  slurm::OwnFeatures out;
  out.values = wish.features;
  for (const auto& [name, partition] : snapshot.partitions) out.obsolete.push_back(name);
  return out;
}

}  // namespace bridge::nodes
