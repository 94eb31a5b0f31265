// The settings of the nodes controller.
#pragma once

#include "bridge/common/settings.hpp"
#include "core/clock.hpp"
#include "slurm/model.hpp"

namespace bridge::nodes {

struct Settings {
  slurm::ClusterKey cluster;            ///< The Slurm cluster that has the nodes.
  bool retires = false;                 ///< The bridge is being removed: it removes its nodes, taints and drains.
  bridge::Settings pods{};              ///< The settings that determine which pods the bridge manages.
  core::Duration made_again{300000};    ///< How long a node must have other resources before its record is recreated.
  core::Duration unanswered{15000};     ///< How long Slurm must wait for an external node before its record is recreated.
  core::Duration still_held{5000};      ///< How long a node still lists an ended job whose pods are no longer seen.
  core::Duration believed_gone{60000};  ///< How long a node must be absent from Slurm before its taint is removed.
};

}  // namespace bridge::nodes
