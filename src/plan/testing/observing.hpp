// For tests: makes the permission to issue evidence, which otherwise only the runtime makes.
#pragma once

#include "plan/evidence.hpp"

namespace plan::testing {

struct Observer {
  [[nodiscard]] static Observing at(core::MonoTime now) { return Observing(now); }
};

}  // namespace plan::testing
