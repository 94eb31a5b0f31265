// Lets the operator's code use the names of slinky/, which other programs share, without a prefix.
#pragma once

namespace slinky {}
namespace op {
using namespace slinky;  // NOLINT(google-build-using-namespace): the operator gives these names no other meaning.
}  // namespace op
