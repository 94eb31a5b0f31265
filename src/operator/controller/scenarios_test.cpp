#include "operator/controller/observe.hpp"
#include "operator/testing/scenario_runner.hpp"

RUN_SCENARIOS(controller, Controller);
