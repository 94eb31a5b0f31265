#include "operator/common/ports.hpp"

#include <memory>
#include <utility>

namespace op {

core::Json ReachPort::describe() const {
  return {{"act", "op.ReachPort"}, {"port", port.str()}};
}

plan::ActPtr reach_port(Endpoint port) {
  return std::make_shared<ReachPort>(std::move(port));
}

}  // namespace op
