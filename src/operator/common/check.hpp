// Checks whether sshd and SSSD accept the files that users provide. The init container `check` runs the check in the image of
// these daemons.
//
// The container writes the errors of the daemons to its termination message and always succeeds, because a pod is useful even
// if its sshd or SSSD does not run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "kube/object.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/status.hpp"

namespace op {

inline constexpr std::string_view kCheck = "check";

/// The daemons whose files are checked.
struct Checked {
  bool sshd = false;
  bool sssd = false;
};

/// Returns the init container. `mounts`: the volume mounts with the files, at the paths where the daemons expect the files.
/// sssd.conf can also be at /mnt/sssd/sssd.conf.
core::Json check_container(const std::string& image, Checked what, core::Json mounts);

/// Returns the errors that the init containers of these pods have reported.
std::vector<Problem> refused_files(const std::vector<kube::PodPtr>& pods);

}  // namespace op
