#include "kube/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <charconv>
#include <map>

namespace kube {

namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

const Histogram::BucketBoundaries kPassSeconds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
const Histogram::BucketBoundaries kQueueSeconds{1e-3, 1e-2, 0.1, 1, 10, 100, 1000};
const Histogram::BucketBoundaries kRequestSeconds{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
const Histogram::BucketBoundaries kRequestBytes{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216};

double seconds(core::Duration d) {
  return static_cast<double>(d.count()) / 1000.0;
}

/// For counts that are kept elsewhere.
void raise_to(Counter& counter, double total) {
  if (total > counter.Value()) counter.Increment(total - counter.Value());
}

/// Names of metrics have no dashes.
std::string prefix_of(std::string_view program) {
  std::string out(program);
  std::ranges::replace(out, '-', '_');
  return out;
}

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

struct Metrics::Impl {
  explicit Impl(std::string_view program) : prefix(prefix_of(program)) {}

  std::string prefix;
  prometheus::Registry registry;

  /// The full name: one that starts with _ is our own, the others are known from elsewhere.
  [[nodiscard]] std::string full(std::string_view name) const {
    return std::string(name.starts_with('_') ? prefix : "").append(name);
  }
  Family<Counter>& counter(const char* name, const char* help) {
    return BuildCounter().Name(full(name)).Help(help).Register(registry);
  }
  Family<Gauge>& gauge(const char* name, const char* help) {
    return BuildGauge().Name(full(name)).Help(help).Register(registry);
  }
  Family<Histogram>& histogram(const char* name, const char* help) {
    return BuildHistogram().Name(full(name)).Help(help).Register(registry);
  }

  Family<Counter>& pass_total = counter("controller_runtime_reconcile_total", "Passes per controller and result");
  Family<Counter>& pass_errors = counter("controller_runtime_reconcile_errors_total", "Passes that failed");
  Family<Counter>& panics = counter("controller_runtime_reconcile_panics_total", "Passes that threw");
  Family<Counter>& terminal_errors =
      counter("controller_runtime_terminal_reconcile_errors_total", "Passes that failed and are not tried again: none ever");
  Family<Counter>& timeouts = counter("controller_runtime_reconcile_timeouts_total", "Passes that ran out of time");
  Family<Histogram>& pass_seconds = histogram("controller_runtime_reconcile_time_seconds", "Length of passes, without gates");
  Family<Gauge>& max_concurrent = gauge("controller_runtime_max_concurrent_reconciles", "Passes allowed at once");
  Family<Gauge>& active = gauge("controller_runtime_active_workers", "Passes under way");
  Family<Gauge>& depth = gauge("workqueue_depth", "Keys waiting");
  Family<Counter>& adds = counter("workqueue_adds_total", "Keys added");
  Family<Histogram>& queue_seconds = histogram("workqueue_queue_duration_seconds", "Time that keys stood ready");
  Family<Histogram>& work_seconds = histogram("workqueue_work_duration_seconds", "Time that keys were worked on");
  Family<Gauge>& unfinished_seconds = gauge("workqueue_unfinished_work_seconds", "Age of all passes under way, added up");
  Family<Gauge>& longest_seconds = gauge("workqueue_longest_running_processor_seconds", "Age of the oldest pass under way");
  Family<Counter>& retries = counter("workqueue_retries_total", "Keys tried again");
  Family<Counter>& requests = counter("rest_client_requests_total", "Requests by status code, method and host");
  Family<Histogram>& request_seconds = histogram("rest_client_request_duration_seconds", "Length of requests");
  Family<Histogram>& request_bytes = histogram("rest_client_request_size_bytes", "Size of request bodies");
  Family<Histogram>& response_bytes = histogram("rest_client_response_size_bytes", "Size of response bodies");
  Family<Histogram>& limiter_seconds =
      histogram("rest_client_rate_limiter_duration_seconds", "Time waited for a client-side limit");
  Family<Counter>& request_retries = counter("rest_client_request_retries_total", "Requests sent again");
  Family<Gauge>& leader_status = gauge("leader_election_master_status", "1 while this process leads");
  Family<Counter>& leader_slow = counter("leader_election_slowpath_total", "Renewals that had to read the lease first");
  Counter& certificate_reads = counter("certwatcher_read_certificate_total", "Reads of the credentials' files").Add({});
  Counter& certificate_errors =
      counter("certwatcher_read_certificate_errors_total", "Reads of the credentials' files that failed").Add({});
  Family<Gauge>& cache_objects = gauge("_cache_objects", "Objects in a cache");
  Family<Gauge>& cache_bytes = gauge("_cache_bytes", "Memory that the objects of a cache and its indices take, estimated");
  Family<Gauge>& cache_version = gauge("_cache_resource_version", "Newest resourceVersion that a cache has shown");
  Family<Counter>& watch_failures = counter("_watch_failures_total", "Watches that failed");
  Family<Counter>& step_total = counter("_steps_total", "Steps of plans by outcome");
  Family<Histogram>& gate_seconds = histogram("_gate_wait_seconds", "Time until the caches showed a write");
  Family<Counter>& gates_settled = counter("_gates_settled_live_total", "Gates that a live read had to settle");
  Family<Gauge>& dropped_events = gauge("_events_dropped", "Events that were not written");
  Family<Counter>& cpu_seconds = counter("process_cpu_seconds_total", "User and system CPU time");
  Family<Gauge>& start_time = gauge("process_start_time_seconds", "Start of the process since the epoch");
  Family<Gauge>& resident_bytes = gauge("process_resident_memory_bytes", "Resident memory");
  Family<Gauge>& virtual_bytes = gauge("process_virtual_memory_bytes", "Virtual memory");
  Family<Gauge>& open_fds = gauge("process_open_fds", "Open file descriptors");
  Family<Gauge>& max_fds = gauge("process_max_fds", "Most file descriptors that may be open");
  Family<Gauge>& heap_bytes = gauge("_heap_bytes", "What malloc has handed out (used) and holds back (free)");

  struct PerController {
    std::map<PassEnd, Counter*> ends;
    Counter *errors, *panics, *timeouts, *adds, *retries, *steps_done, *steps_failed, *steps_withheld, *settled;
    Histogram *pass, *queue, *work, *gate;
    Gauge *active, *depth, *unfinished, *longest;
  };
  std::map<std::string, PerController> controllers;

  PerController& of(const std::string& name) { return controllers.at(name); }
};

Metrics::Metrics(std::string_view program) : impl_(std::make_unique<Impl>(program)) {
  impl_->dropped_events.Add({});
}
Metrics::~Metrics() = default;

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

void Metrics::request(const RequestRecord& record, const std::string& host) {
  const std::string code = record.status == 0 ? "<error>" : std::to_string(record.status);
  impl_->requests.Add({{"code", code}, {"method", record.method}, {"host", host}}).Increment();
  const prometheus::Labels verb = {{"verb", record.method}, {"host", host}};
  // Streams last for minutes; their lengths would say nothing.
  if (record.method == "WATCH") return;
  impl_->request_seconds.Add(verb, kRequestSeconds).Observe(seconds(record.took));
  impl_->limiter_seconds.Add(verb, kRequestSeconds).Observe(0);
  impl_->request_bytes.Add(verb, kRequestBytes).Observe(static_cast<double>(record.sent_bytes));
  impl_->response_bytes.Add(verb, kRequestBytes).Observe(static_cast<double>(record.received_bytes));
  if (record.retry) impl_->request_retries.Add({{"code", code}, {"verb", record.method}, {"host", host}}).Increment();
}

void Metrics::leader(const std::string& lease, bool leading) {
  impl_->leader_status.Add({{"name", lease}}).Set(leading ? 1 : 0);
  impl_->leader_slow.Add({{"name", lease}});
}
void Metrics::slow_renewal(const std::string& lease) {
  impl_->leader_slow.Add({{"name", lease}}).Increment();
}

void Metrics::cache(const std::string& name, std::size_t objects, std::size_t bytes, const std::string& resource_version) {
  impl_->cache_objects.Add({{"cache", name}}).Set(static_cast<double>(objects));
  impl_->cache_bytes.Add({{"cache", name}}).Set(static_cast<double>(bytes));
  double version = 0;
  const auto [at, error] = std::from_chars(resource_version.data(), resource_version.data() + resource_version.size(), version);
  if (error == std::errc{}) impl_->cache_version.Add({{"cache", name}}).Set(version);
}

void Metrics::watch_failures(const std::string& name, std::uint64_t total) {
  raise_to(impl_->watch_failures.Add({{"cache", name}}), static_cast<double>(total));
}

void Metrics::events_dropped(std::uint64_t total) {
  impl_->dropped_events.Add({}).Set(static_cast<double>(total));
}

void Metrics::credentials_read(bool good) {
  impl_->certificate_reads.Increment();
  if (!good) impl_->certificate_errors.Increment();
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

}  // namespace kube
