// Checks whether daemons accept the files that users give them. The init container `check` tries the files in the image of the
// daemons.
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

/// Returns the init container. `mounts` must have the files where the daemons expect them, and sssd.conf as in sssd_mount.
core::Json check_container(const std::string& image, Checked what, core::Json mounts);

/// Returns the errors that the init containers of these pods have reported.
std::vector<Problem> refused_files(const std::vector<kube::PodPtr>& pods);

}  // namespace op
