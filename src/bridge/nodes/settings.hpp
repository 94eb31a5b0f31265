// The settings of the nodes controller.
#pragma once

#include "bridge/common/settings.hpp"
#include "core/clock.hpp"
#include "slurm/model.hpp"

namespace bridge::nodes {

struct Settings {
  slurm::ClusterKey cluster;            ///< The Slurm cluster that has the nodes.
  bool retires = false;                 ///< The bridge is being removed: its nodes leave Slurm, and taints and drains go.
  bridge::Settings pods{};              ///< Say which pods the bridge manages.
  core::Duration made_again{300000};    ///< For how long a node must have other resources before its record is recreated.
  core::Duration unanswered{15000};     ///< For how long Slurm must wait for an external node before its record is recreated.
  core::Duration still_held{5000};      ///< For how long a node lists a job that has ended, although no pod of it is seen.
  core::Duration believed_gone{60000};  ///< For how long Slurm must lack a node before its taint is removed.
};

}  // namespace bridge::nodes
