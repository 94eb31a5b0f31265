#include "kube/app/metrics.hpp"

#include <charconv>

#include "run/shell/metric_families.hpp"

namespace kube {

namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

const Histogram::BucketBoundaries kRequestSeconds{0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
const Histogram::BucketBoundaries kRequestBytes{64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216};

}  // namespace

struct Metrics::Impl {
  explicit Impl(run::MetricFamilies& of) : families(of) {}

  run::MetricFamilies& families;
  Family<Counter>& requests = families.counter("rest_client_requests_total", "Requests by status code, method and host");
  Family<Histogram>& request_seconds = families.histogram("rest_client_request_duration_seconds", "Duration of requests");
  Family<Histogram>& request_bytes = families.histogram("rest_client_request_size_bytes", "Size of request bodies");
  Family<Histogram>& response_bytes = families.histogram("rest_client_response_size_bytes", "Size of response bodies");
  Family<Histogram>& limiter_seconds =
      families.histogram("rest_client_rate_limiter_duration_seconds", "Time waited for a client-side limit");
  Family<Counter>& request_retries = families.counter("rest_client_request_retries_total", "Requests sent again");
  Family<Gauge>& leader_status = families.gauge("leader_election_master_status", "1 while this process leads");
  Family<Counter>& leader_slow =
      families.counter("leader_election_slowpath_total", "Renewals that had to read the lease first");
  Counter& certificate_reads =
      families.counter("certwatcher_read_certificate_total", "Reads of the credentials' files").Add({});
  Counter& certificate_errors =
      families.counter("certwatcher_read_certificate_errors_total", "Reads of the credentials' files that failed").Add({});
  Family<Gauge>& cache_objects = families.gauge("_cache_objects", "Objects in a cache");
  Family<Gauge>& cache_version = families.gauge("_cache_resource_version", "Newest resourceVersion that a cache has shown");
  Family<Counter>& watch_failures = families.counter("_watch_failures_total", "Watches that failed");
  Family<Gauge>& dropped_events = families.gauge("_events_dropped", "Events that were not written");
};

Metrics::Metrics(std::string_view program) : run::Metrics(program), impl_(std::make_unique<Impl>(families())) {
  impl_->dropped_events.Add({});
}
Metrics::~Metrics() = default;

void Metrics::request(const RequestRecord& record, const std::string& host) {
  const std::string code = record.status == 0 ? "<error>" : std::to_string(record.status);
  impl_->requests.Add({{"code", code}, {"method", record.method}, {"host", host}}).Increment();
  const prometheus::Labels verb = {{"verb", record.method}, {"host", host}};
  // Streams last for minutes, so their durations would distort the metric.
  if (record.method == "WATCH") return;
  impl_->request_seconds.Add(verb, kRequestSeconds).Observe(run::seconds(record.took));
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

void Metrics::cache(const std::string& name, std::size_t objects, const std::string& resource_version) {
  impl_->cache_objects.Add({{"cache", name}}).Set(static_cast<double>(objects));
  double version = 0;
  const auto [at, error] = std::from_chars(resource_version.data(), resource_version.data() + resource_version.size(), version);
  if (error == std::errc{}) impl_->cache_version.Add({{"cache", name}}).Set(version);
}

void Metrics::watch_failures(const std::string& name, std::uint64_t total) {
  run::raise_to(impl_->watch_failures.Add({{"cache", name}}), static_cast<double>(total));
}

void Metrics::events_dropped(std::uint64_t total) {
  impl_->dropped_events.Add({}).Set(static_cast<double>(total));
}

void Metrics::credentials_read(bool good) {
  impl_->certificate_reads.Increment();
  if (!good) impl_->certificate_errors.Increment();
}

}  // namespace kube
