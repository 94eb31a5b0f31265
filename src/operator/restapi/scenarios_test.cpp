#include "operator/restapi/observe.hpp"
#include "operator/testing/scenario_runner.hpp"

RUN_SCENARIOS(restapi, RestApi);
