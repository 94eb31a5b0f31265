#include "operator/accounting/observe.hpp"
#include "operator/testing/scenario_runner.hpp"

RUN_SCENARIOS(accounting, Accounting);
