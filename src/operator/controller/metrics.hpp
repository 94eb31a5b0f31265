// slurmctld's metrics: whether slurmctld serves them, and the ServiceMonitor with which Prometheus finds them.
#pragma once

#include <string>

#include "operator/common/slinky.hpp"
#include "operator/controller/config.hpp"
#include "operator/controller/observed.hpp"
#include "operator/controller/rollout.hpp"
#include "slinky/status.hpp"
#include "slurm/conf/conf.hpp"

namespace op::controller {

/// Returns why slurmctld cannot serve the requested metrics, or "".
std::string metrics_refused(const Observed& observed, const ConfigState& state);
/// Adds the lines that enable slurmctld's metrics, if they are requested and slurmctld can serve them.
void add_metrics(slurm::conf::Conf& out, const Observed& observed, const ConfigState& state);

core::Json build_service_monitor(const Observed& observed);
/// Creates or deletes the ServiceMonitor.
void plan_service_monitor(const Observed& observed, const ConfigState& state, plan::Plan& plan);

/// Sets the condition MetricsServed if metrics are requested, or while a ServiceMonitor from an earlier request exists.
/// `loaded`: slurmctld runs with the wanted configuration.
void set_metrics_condition(Conditions& conditions, const Observed& observed, const ConfigState& state, bool loaded);

}  // namespace op::controller
