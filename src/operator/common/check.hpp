// Whether daemons accept the files that users give them: the init container `check` tries it, in the daemons' own image.
//
// It says in its termination message what they refuse, in their own words, and ends well whatever it finds: a pod whose sshd or
// SSSD does not run may still do what it is for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/status.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"

namespace op {

inline constexpr std::string_view kCheck = "check";

/// Which daemons' files are looked at.
struct Checked {
  bool sshd = false;
  bool sssd = false;
};

/// `mounts`: of the files, where the daemons find them; that of sssd.conf may be the one of the sidecar (sssd.hpp).
core::Json check_container(const std::string& image, Checked what, core::Json mounts);

/// What the daemons of these pods refused when the pods started.
std::vector<Problem> refused_files(const std::vector<kube::PodPtr>& pods);

}  // namespace op
