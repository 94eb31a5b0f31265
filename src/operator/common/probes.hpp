// Probes of Slurm's daemons: a period of one second, HTTP where the release serves it.
#pragma once

#include <string_view>

#include "core/json.hpp"
#include "operator/common/names.hpp"

namespace op {

inline constexpr std::string_view kAnnotationDefaultContainer = "kubectl.kubernetes.io/default-container";
/// On slurmctld's pods: a digest of the settings that only a restart brings into force.
inline constexpr std::string_view kAnnotationRestartHash = "slinky.slurm.net/restart-hash";
/// On slurmctld's pod template: the configuration for which a slurmctld that did not get up was given a new pod.
inline constexpr std::string_view kAnnotationRestartedFor = "slinky.slurm.net/restarted-for";

/// slurmctld and slurmd serve /livez and /readyz on their own port from 25.11 on.
inline bool serves_http(ImageRelease release) {
  return release >= ImageRelease{25, 11};
}

inline core::Json probe(bool http, std::string_view path, std::string_view port, int failures) {
  core::Json out{{"periodSeconds", 1}, {"timeoutSeconds", 5}, {"failureThreshold", failures}};
  if (http) {
    out["httpGet"] = {{"path", path}, {"port", port}};
  } else {
    out["tcpSocket"] = {{"port", port}};
  }
  return out;
}

}  // namespace op
