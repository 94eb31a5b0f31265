// The labels and the taint of Kubernetes nodes that slurm-bridge manages. Both slurm-operator and slurm-bridge use this header.
#pragma once

#include <string_view>

#include "kube/object.hpp"

namespace slinky {

/// If a Kubernetes node has one of these labels, it becomes an external node of Slurm. The value "false" counts as absent.
inline constexpr std::string_view kLabelExternalNode = "scheduler.slinky.slurm.net/external-node";
inline constexpr std::string_view kLabelBridgeExternalNode = "scheduler.slinky.slurm.net/slurm-bridge-external-node";
/// Taint of Kubernetes nodes that Slurm manages.
inline constexpr std::string_view kTaintManagedNode = "slinky.slurm.net/managed-node";

/// Reports whether the labels make the Kubernetes node an external node of Slurm.
[[nodiscard]] inline bool is_external(const kube::ObjectMeta& node) {
  const auto asks = [&](std::string_view label) { return node.labels.contains(label) && node.label(label) != "false"; };
  return asks(kLabelExternalNode) || asks(kLabelBridgeExternalNode);
}

}  // namespace slinky
