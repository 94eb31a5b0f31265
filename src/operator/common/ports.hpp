// An act that checks whether a server listens at a host and port. operator/common/port_target.hpp executes it.
#pragma once

#include "operator/common/slinky.hpp"
#include "plan/plan.hpp"
#include "slinky/names.hpp"

namespace op {

/// Opens a TCP connection and closes it again. Changes nothing. The result is null. Error: kUnavailable, with the cause.
struct ReachPort final : plan::Act {
  explicit ReachPort(Endpoint to) : port(std::move(to)) {}
  Endpoint port;
  [[nodiscard]] core::Json describe() const override;
};

[[nodiscard]] plan::ActPtr reach_port(Endpoint port);

}  // namespace op
