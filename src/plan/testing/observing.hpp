// For tests: makes the key to issuing evidence, which only the runtime makes otherwise.
#pragma once

#include "plan/evidence.hpp"

namespace plan::testing {

struct Observer {
  [[nodiscard]] static Observing at(core::MonoTime now) { return Observing(now); }
};

}  // namespace plan::testing
