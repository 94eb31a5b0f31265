// Checks whether something listens at a host and port.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "net/asio_loop.hpp"

namespace net {

/// Opens a TCP connection and closes it again without sending anything. `host` is a name or an address. Calls `done` once, in a
/// later loop iteration. Error: kUnavailable, with the cause: the name does not resolve, the connection is refused, or no
/// address has accepted a connection within `timeout`.
void reach(AsioLoop& loop, const std::string& host, std::uint16_t port, core::Duration timeout,
           std::function<void(core::Result<void>)> done);

}  // namespace net
