// Executes the act of operator/common/ports.hpp.
#pragma once

#include <functional>
#include <string>

#include "plan/executor.hpp"

namespace op {

/// Opens a TCP connection to a host and port and closes it again, and calls its last argument once, in a later turn. In
/// production: net::reach.
using Reach = std::function<void(const std::string& host, int port, std::function<void(core::Result<void>)>)>;

class PortTarget final : public plan::Target {
 public:
  explicit PortTarget(Reach reach);
};

}  // namespace op
