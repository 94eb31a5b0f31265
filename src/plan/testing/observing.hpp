// For tests: makes a plan::Observing, with which evidence can be issued. Outside of tests, only the runtime makes one.
#pragma once

#include "plan/evidence.hpp"

namespace plan::testing {

struct Observer {
  [[nodiscard]] static Observing at(core::MonoTime now) { return Observing(now); }
};

}  // namespace plan::testing
