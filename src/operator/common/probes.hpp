// Probes of Slurm's daemons.
#pragma once

#include <string_view>

#include "core/json.hpp"

namespace op {

/// Returns a probe that connects to the port once a second. The probe does not use HTTP, because slurmctld and slurmd serve
/// /livez and /readyz only from 25.11 on. The kubelet would restart an older daemon, and a restart of slurmd ends jobs. The
/// operator cannot choose the probe by release, because an image tag does not prove the release of the daemon.
inline core::Json probe(std::string_view port, int failures) {
  return {{"periodSeconds", 1}, {"timeoutSeconds", 5}, {"failureThreshold", failures}, {"tcpSocket", {{"port", port}}}};
}

}  // namespace op
