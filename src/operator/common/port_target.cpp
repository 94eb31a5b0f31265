#include "operator/common/port_target.hpp"

#include <memory>
#include <utility>

#include "operator/common/ports.hpp"

namespace op {

PortTarget::PortTarget(Reach reach) {
  carries_out<ReachPort>([reach = std::move(reach)](const std::shared_ptr<const ReachPort>& act, Done done) {
    reach(act->port.host, act->port.port, [done = std::move(done)](core::Result<void> reached) {
      if (!reached) return done({std::unexpected(std::move(reached.error())), {}});
      done({core::Json(), {}});
    });
  });
}

}  // namespace op
