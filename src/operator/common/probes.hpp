// Probes of Slurm's daemons.
#pragma once

#include <string_view>

#include "core/json.hpp"

namespace op {

/// Returns a probe that connects to the port once a second. slurmctld and slurmd serve /livez and /readyz only from 25.11 on.
/// With an HTTP probe, the kubelet would restart an older daemon, and the jobs of a slurmd would end. The release of a daemon
/// is unknown before it runs, because an image tag proves nothing.
inline core::Json probe(std::string_view port, int failures) {
  return {{"periodSeconds", 1}, {"timeoutSeconds", 5}, {"failureThreshold", failures}, {"tcpSocket", {{"port", port}}}};
}

}  // namespace op
