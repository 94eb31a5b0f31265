// The operator's code names what programs about our resources share (slinky/) as its own.
#pragma once

namespace slinky {}
namespace op {
using namespace slinky;  // NOLINT(google-build-using-namespace): all of the operator speaks of these things alone.
}  // namespace op
