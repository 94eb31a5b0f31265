// The world of tests of the jobs controller.
#pragma once

#include "bridge/common/testing/world.hpp"
#include "bridge/jobs/observe.hpp"

namespace bridge::jobs::testing {

using bridge::testing::Json;
using bridge::testing::kInstallation;
using World = bridge::testing::World<JobsController>;

}  // namespace bridge::jobs::testing
