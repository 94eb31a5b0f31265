#include "operator/loginset/observe.hpp"
#include "operator/testing/scenario_runner.hpp"

RUN_SCENARIOS(loginset, LoginSet);
