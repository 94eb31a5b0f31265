#include "operator/testing/scenario_runner.hpp"
#include "operator/token/observe.hpp"

RUN_SCENARIOS(token, Token);
