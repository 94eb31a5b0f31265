// Makes a plan::Observing for tests that issue evidence. Outside of tests, only the runtime makes an Observing.
#pragma once

#include "plan/evidence.hpp"

namespace plan::testing {

struct Observer {
  [[nodiscard]] static Observing at(core::MonoTime now) { return Observing(now); }
};

}  // namespace plan::testing
