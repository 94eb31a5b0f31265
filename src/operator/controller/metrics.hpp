// slurmctld's own metrics: whether it serves them, and the ServiceMonitor by which Prometheus finds them.
#pragma once

#include <string>

#include "cluster/status.hpp"
#include "operator/controller/config.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "slurm/conf/conf.hpp"

namespace op::controller {

/// Why slurmctld cannot serve the metrics that are asked for, or "".
std::string metrics_refused(const Observed& observed, const ConfigState& state);
/// Has slurmctld serve them, where it can.
void add_metrics(slurm::conf::Conf& out, const Observed& observed, const ConfigState& state);

core::Json build_service_monitor(const Observed& observed);
/// Makes the ServiceMonitor, or takes it away.
void plan_service_monitor(const Observed& observed, const ConfigState& state, plan::Plan& plan);

/// There only where metrics are asked for, and for as long as there is a ServiceMonitor of former times. `loaded`: slurmctld
/// runs with what is wanted.
void set_metrics_condition(Conditions& conditions, const Observed& observed, const ConfigState& state, bool loaded);

}  // namespace op::controller
