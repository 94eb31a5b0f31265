// Probes of Slurm's daemons: a period of one second, HTTP where the release serves it.
#pragma once

#include <string_view>

#include "cluster/names.hpp"
#include "core/json.hpp"

namespace op {

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
