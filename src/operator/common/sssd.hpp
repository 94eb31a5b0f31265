// SSSD in pods: who users are, where the image alone does not say it.
//
// In pods whose containers run as root (login nodes, workers) the image starts it, where it finds a configuration. Beside a
// daemon that is not root it runs in a sidecar, and answers over a socket that both mount: the daemon's image needs no more
// than the NSS library of SSSD.
#pragma once

#include <string>
#include <string_view>

#include "api/common.hpp"
#include "core/json.hpp"

namespace op {

inline constexpr std::string_view kSssdVolume = "sssd-conf";

/// The volume with the Secret's key as sssd.conf. `optional`: the pod starts without it, and gets it when it is there.
core::Json sssd_volume(const api::SecretKeySelector& ref, bool optional = false);
/// Where SSSD reads it. Not refreshed in a container that runs.
core::Json sssd_mount();

/// Adds the sidecar to a pod spec, for the first of its containers, and what looks whether SSSD accepts the file (check.hpp).
/// `image`: one that has SSSD, unless `over`, the user's template, names another for the sidecar.
void add_sssd_sidecar(core::Json& pod, const api::SecretKeySelector& ref, const std::string& image,
                      const api::PodTemplate& over);

}  // namespace op
