// SSSD in pods: finds users that are not in the /etc/passwd of the image.
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

/// Returns the volume with the key of the Secret as sssd.conf. If `optional`, the pod starts without the Secret and gets the
/// file once the Secret exists.
core::Json sssd_volume(const api::SecretKeySelector& ref, bool optional = false);
/// Returns the mount from which SSSD reads its file. The file is not refreshed in a running container.
core::Json sssd_mount();

/// Adds the sidecar to a pod spec, for the first of its containers, and the check whether SSSD accepts the file (check.hpp).
/// `image`: one with SSSD, unless `over`, the user's template, sets another image for the sidecar.
void add_sssd_sidecar(core::Json& pod, const api::SecretKeySelector& ref, const std::string& image,
                      const api::PodTemplate& over);

}  // namespace op
