// Executes ReachPort, the act of operator/common/ports.hpp.
#pragma once

#include <functional>
#include <string>

#include "plan/executor.hpp"

namespace op {

/// Opens a TCP connection to a host and port and closes it again. Calls the callback once, in a later iteration of the loop,
/// with the error if there was no connection. In production: net::reach.
using Reach = std::function<void(const std::string& host, int port, std::function<void(core::Result<void>)>)>;

class PortTarget final : public plan::Target {
 public:
  explicit PortTarget(Reach reach);
};

}  // namespace op
