// Probes of Slurm's daemons.
#pragma once

#include <string_view>

#include "core/json.hpp"

namespace op {

/// A probe that opens the port once a second. slurmctld and slurmd serve /livez and /readyz there from 25.11 on; a daemon that
/// does not would be ended by a probe that asks for them, with its jobs, and nothing tells the release of a daemon before it
/// runs: a tag may say anything.
inline core::Json probe(std::string_view port, int failures) {
  return {{"periodSeconds", 1}, {"timeoutSeconds", 5}, {"failureThreshold", failures}, {"tcpSocket", {{"port", port}}}};
}

}  // namespace op
