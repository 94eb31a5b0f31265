#include "run/shell/metrics.hpp"

#include <prometheus/text_serializer.h>

#include <map>

#include "run/shell/metric_families.hpp"

namespace run {

namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

const Histogram::BucketBoundaries kPassSeconds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
const Histogram::BucketBoundaries kQueueSeconds{1e-3, 1e-2, 0.1, 1, 10, 100, 1000};

std::string_view word(Metrics::PassEnd end) {
  switch (end) {
    case Metrics::PassEnd::kSuccess:
      return "success";
    case Metrics::PassEnd::kError:
      return "error";
    case Metrics::PassEnd::kRequeue:
      return "requeue";
    case Metrics::PassEnd::kRequeueAfter:
      return "requeue_after";
  }
  return "?";
}

}  // namespace

struct Metrics::Impl : MetricFamilies {
  using MetricFamilies::MetricFamilies;

  Family<Counter>& pass_total = counter("controller_runtime_reconcile_total", "Passes per controller and result");
  Family<Counter>& pass_errors = counter("controller_runtime_reconcile_errors_total", "Passes that failed");
  Family<Counter>& panics = counter("controller_runtime_reconcile_panics_total", "Passes that threw");
  Family<Counter>& terminal_errors =
      counter("controller_runtime_terminal_reconcile_errors_total", "Passes that failed and are not tried again: always 0");
  Family<Counter>& timeouts = counter("controller_runtime_reconcile_timeouts_total", "Passes that ran out of time");
  Family<Histogram>& pass_seconds =
      histogram("controller_runtime_reconcile_time_seconds", "Duration of passes, without the time at gates");
  Family<Gauge>& max_concurrent = gauge("controller_runtime_max_concurrent_reconciles", "Passes allowed at once");
  Family<Gauge>& active = gauge("controller_runtime_active_workers", "Passes under way");
  Family<Gauge>& depth = gauge("workqueue_depth", "Keys waiting");
  Family<Counter>& adds = counter("workqueue_adds_total", "Keys added");
  Family<Histogram>& queue_seconds = histogram("workqueue_queue_duration_seconds", "Time that keys waited in the queue");
  Family<Histogram>& work_seconds = histogram("workqueue_work_duration_seconds", "Time that keys were worked on");
  Family<Gauge>& unfinished_seconds = gauge("workqueue_unfinished_work_seconds", "Age of all passes under way, added up");
  Family<Gauge>& longest_seconds = gauge("workqueue_longest_running_processor_seconds", "Age of the oldest pass under way");
  Family<Counter>& retries = counter("workqueue_retries_total", "Keys tried again");
  Family<Counter>& step_total = counter("_steps_total", "Steps of plans by outcome");
  Family<Histogram>& gate_seconds = histogram("_gate_wait_seconds", "Time until the caches showed a write");
  Family<Counter>& gates_settled = counter("_gates_settled_live_total", "Gates that were opened by a live read");
  Family<Counter>& cpu_seconds = counter("process_cpu_seconds_total", "User and system CPU time");
  Family<Gauge>& start_time = gauge("process_start_time_seconds", "Start of the process since the epoch");
  Family<Gauge>& resident_bytes = gauge("process_resident_memory_bytes", "Resident memory");
  Family<Gauge>& virtual_bytes = gauge("process_virtual_memory_bytes", "Virtual memory");
  Family<Gauge>& open_fds = gauge("process_open_fds", "Open file descriptors");
  Family<Gauge>& max_fds = gauge("process_max_fds", "Most file descriptors that may be open");
  Family<Gauge>& heap_bytes = gauge("_heap_bytes", "Memory that malloc has given out (used) and retains (free)");

  struct PerController {
    std::map<PassEnd, Counter*> ends;
    Counter *errors, *panics, *timeouts, *adds, *retries, *steps_done, *steps_failed, *steps_withheld, *settled;
    Histogram *pass, *queue, *work, *gate;
    Gauge *active, *depth, *unfinished, *longest;
  };
  std::map<std::string, PerController> controllers;

  PerController& of(const std::string& name) { return controllers.at(name); }
};

Metrics::Metrics(std::string_view program) : impl_(std::make_unique<Impl>(program)) {}
Metrics::~Metrics() = default;

MetricFamilies& Metrics::families() {
  return *impl_;
}

void Metrics::add_controller(const std::string& name, std::size_t max_concurrent) {
  const prometheus::Labels controller = {{"controller", name}};
  const prometheus::Labels queue = {{"controller", name}, {"name", name}};
  Impl::PerController c{};
  for (const PassEnd end : {PassEnd::kSuccess, PassEnd::kError, PassEnd::kRequeue, PassEnd::kRequeueAfter}) {
    c.ends[end] = &impl_->pass_total.Add({{"controller", name}, {"result", std::string(word(end))}});
  }
  c.errors = &impl_->pass_errors.Add(controller);
  c.panics = &impl_->panics.Add(controller);
  c.timeouts = &impl_->timeouts.Add(controller);
  c.pass = &impl_->pass_seconds.Add(controller, kPassSeconds);
  impl_->terminal_errors.Add(controller);
  impl_->max_concurrent.Add(controller).Set(static_cast<double>(max_concurrent));
  c.active = &impl_->active.Add(controller);
  c.depth = &impl_->depth.Add({{"controller", name}, {"name", name}, {"priority", ""}});
  c.adds = &impl_->adds.Add(queue);
  c.queue = &impl_->queue_seconds.Add(queue, kQueueSeconds);
  c.work = &impl_->work_seconds.Add(queue, kQueueSeconds);
  c.unfinished = &impl_->unfinished_seconds.Add(queue);
  c.longest = &impl_->longest_seconds.Add(queue);
  c.retries = &impl_->retries.Add(queue);
  c.steps_done = &impl_->step_total.Add({{"controller", name}, {"outcome", "done"}});
  c.steps_failed = &impl_->step_total.Add({{"controller", name}, {"outcome", "failed"}});
  c.steps_withheld = &impl_->step_total.Add({{"controller", name}, {"outcome", "withheld"}});
  c.gate = &impl_->gate_seconds.Add(controller, kPassSeconds);
  c.settled = &impl_->gates_settled.Add(controller);
  impl_->controllers[name] = c;
}

void Metrics::pass_started(const std::string& controller) {
  impl_->of(controller).active->Increment();
}

void Metrics::pass_worked(const std::string& controller, core::Duration took) {
  Impl::PerController& c = impl_->of(controller);
  c.pass->Observe(seconds(took));
  c.work->Observe(seconds(took));
  c.active->Decrement();
}

void Metrics::pass_ended(const std::string& controller, PassEnd end) {
  Impl::PerController& c = impl_->of(controller);
  c.ends.at(end)->Increment();
  if (end == PassEnd::kError) c.errors->Increment();
}

void Metrics::pass_panicked(const std::string& controller) {
  impl_->of(controller).panics->Increment();
}
void Metrics::pass_timed_out(const std::string& controller) {
  impl_->of(controller).timeouts->Increment();
}

void Metrics::queue_popped(const std::string& controller, core::Duration waited) {
  impl_->of(controller).queue->Observe(seconds(waited));
}
void Metrics::queue_retried(const std::string& controller) {
  impl_->of(controller).retries->Increment();
}
void Metrics::queue_counts(const std::string& controller, std::size_t depth, std::uint64_t adds) {
  impl_->of(controller).depth->Set(static_cast<double>(depth));
  raise_to(*impl_->of(controller).adds, static_cast<double>(adds));
}
void Metrics::unfinished(const std::string& controller, core::Duration sum, core::Duration longest) {
  impl_->of(controller).unfinished->Set(seconds(sum));
  impl_->of(controller).longest->Set(seconds(longest));
}

void Metrics::steps(const std::string& controller, std::size_t done, std::size_t failed) {
  impl_->of(controller).steps_done->Increment(static_cast<double>(done));
  impl_->of(controller).steps_failed->Increment(static_cast<double>(failed));
}

void Metrics::steps_withheld(const std::string& controller, std::size_t count) {
  impl_->of(controller).steps_withheld->Increment(static_cast<double>(count));
}

void Metrics::gate_waited(const std::string& controller, core::Duration waited, bool settled_live) {
  impl_->of(controller).gate->Observe(seconds(waited));
  if (settled_live) impl_->of(controller).settled->Increment();
}

void Metrics::process(const ProcessUsage& usage) {
  raise_to(impl_->cpu_seconds.Add({}), usage.cpu_seconds);
  impl_->start_time.Add({}).Set(usage.start_time_seconds);
  impl_->resident_bytes.Add({}).Set(usage.resident_bytes);
  impl_->virtual_bytes.Add({}).Set(usage.virtual_bytes);
  impl_->open_fds.Add({}).Set(usage.open_fds);
  impl_->max_fds.Add({}).Set(usage.max_fds);
  impl_->heap_bytes.Add({{"state", "used"}}).Set(usage.heap_used_bytes);
  impl_->heap_bytes.Add({{"state", "free"}}).Set(usage.heap_free_bytes);
}

std::string Metrics::text() {
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace run
