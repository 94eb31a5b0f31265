#include "bridge/metrics.hpp"

#include "run/shell/metric_families.hpp"

namespace bridge {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

const Histogram::BucketBoundaries kWaitSeconds{1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400, 604800};

}  // namespace

struct Metrics::Impl {
  explicit Impl(run::MetricFamilies& of) : families(of) {}

  run::MetricFamilies& families;
  Histogram& wait =
      families.histogram("_wait_seconds", "Time from the submission of a job to the placing of its pod").Add({}, kWaitSeconds);
  Family<Counter>& ended = families.counter("_pods_ended_total", "Pods that the bridge ended, by the reason of SlurmEnded");
  Family<Gauge>& pods = families.gauge("_pods", "Pods that wait for Slurm, and pods that were placed and have not ended");
  Gauge& waiting = pods.Add({{"state", "waiting"}});
  Gauge& placed = pods.Add({{"state", "placed"}});
  Gauge& age = families.gauge("_queue_age_seconds", "Age of the oldest job that waits").Add({});
  Gauge& orphans = families.gauge("_orphan_jobs", "Jobs that have not ended and name no pod that exists").Add({});
  Gauge& missing = families.gauge("_missing_jobs", "Placed pods whose jobs Slurm does not have").Add({});
};

Metrics::Metrics(run::MetricFamilies& families) : impl_(std::make_unique<Impl>(families)) {}
Metrics::~Metrics() = default;

void Metrics::placed(core::Duration waited) {
  impl_->wait.Observe(run::seconds(waited));
}

void Metrics::ended(const std::string& reason) {
  impl_->ended.Add({{"reason", reason}}).Increment();
}

void Metrics::counts(const jobs::Counts& counts) {
  impl_->waiting.Set(static_cast<double>(counts.waiting));
  impl_->placed.Set(static_cast<double>(counts.placed));
  impl_->age.Set(run::seconds(counts.oldest));
  impl_->orphans.Set(static_cast<double>(counts.orphans));
  impl_->missing.Set(static_cast<double>(counts.missing));
}

}  // namespace bridge
