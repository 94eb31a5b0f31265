// Adds SSSD to pods. SSSD finds users that are not in the /etc/passwd of the image.
//
// In pods whose containers run as root (login nodes, workers), the image starts SSSD if it finds a configuration. For a daemon
// that does not run as root, SSSD runs in a sidecar and answers over a socket that both containers mount. The daemon's image
// then only needs SSSD's NSS library.
#pragma once

#include <string>
#include <string_view>

#include "api/common.hpp"
#include "core/json.hpp"

namespace op {

inline constexpr std::string_view kSssdVolume = "sssd-conf";

/// Returns a volume with the file sssd.conf, whose content is the Secret data that `ref` names. If `optional` is true, the pod
/// can start while the Secret is missing, and gets the file once the Secret exists.
core::Json sssd_volume(const api::SecretKeySelector& ref, bool optional = false);
/// Returns the volume mount of /etc/sssd/sssd.conf. If the Secret changes, a running container still has the old file.
core::Json sssd_mount();

/// Adds two init containers to a pod spec: the SSSD sidecar, which serves the first container of the pod, and the check whether
/// SSSD accepts sssd.conf (check.hpp). `image` must have SSSD, unless the user's template `over` sets another image for the
/// sidecar.
void add_sssd_sidecar(core::Json& pod, const api::SecretKeySelector& ref, const std::string& image,
                      const api::PodTemplate& over);

}  // namespace op
