// Lets the operator's code use the names of slinky/, which other programs share, without a prefix.
#pragma once

namespace slinky {}
namespace op {
using namespace slinky;  // NOLINT(google-build-using-namespace): all of the operator speaks of these things alone.
}  // namespace op
