// Probes of Slurm's daemons.
#pragma once

#include <string_view>

#include "core/json.hpp"

namespace op {

/// A probe that connects to the port once a second. slurmctld and slurmd serve /livez and /readyz there only from 25.11 on. An
/// HTTP probe would end an older daemon with its jobs. The release of a daemon is unknown before it runs, because an image tag
/// proves nothing.
inline core::Json probe(std::string_view port, int failures) {
  return {{"periodSeconds", 1}, {"timeoutSeconds", 5}, {"failureThreshold", failures}, {"tcpSocket", {{"port", port}}}};
}

}  // namespace op
