#include "kube/act/events.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

namespace kube {

namespace {
constexpr std::size_t kMaxNote = 1024;  ///< The API's limit, in bytes.
constexpr std::size_t kMaxReason = 128;
constexpr std::size_t kMaxInFlight = 4;
constexpr core::Duration kSweep{60000};

/// Returns at most `most` bytes, without cutting a UTF-8 character in two.
std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}
}  // namespace

struct EventRecorder::Impl : std::enable_shared_from_this<EventRecorder::Impl> {
  Impl(core::Loop& l, core::Random& r, core::Logger& g, Client& c, EventOptions o)
      : loop(l), random(r), logger(g), client(c), options(std::move(o)), sweep_timer(l), stop_timer(l) {
    if (options.instance.empty()) options.instance = options.controller;
  }

  core::Loop& loop;
  core::Random& random;
  core::Logger& logger;
  Client& client;
  EventOptions options;
  core::Timer sweep_timer;
  core::Timer stop_timer;

  using SeriesKey = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  struct Series {
    Key event;  ///< The key of the event itself.
    int count = 1;
    int written = 0;  ///< The count that was last sent; 0: the event is not created yet.
    core::WallTime last;
    core::MonoTime last_seen;
    core::MonoTime last_written;
    bool queued = false;
  };
  std::map<SeriesKey, Series> series;

  struct Bucket {
    double tokens = 0;
    core::MonoTime at;
  };
  std::map<std::string, Bucket> buckets;

  struct Job {
    SeriesKey key;
    core::Json create;  ///< The event to create; null: patch the count.
  };
  std::deque<Job> queue;
  std::size_t in_flight = 0;
  std::uint64_t dropped = 0;
  bool stopped = false;
  std::function<void()> stop_done;

  [[nodiscard]] core::MonoTime now() const { return loop.clock().mono(); }

  static std::string object_id(const EventAct& event) {
    return event.object.uid.empty() ? event.regarding.kind + "/" + event.object.key().str() : event.object.uid;
  }

  bool take_token(const std::string& object) {
    const auto [it, is_new] = buckets.try_emplace(object);
    Bucket& bucket = it->second;
    if (is_new) {
      bucket.tokens = static_cast<double>(options.burst);
    } else {
      const double refilled = static_cast<double>((now() - bucket.at).count()) / static_cast<double>(options.refill.count());
      bucket.tokens = std::min(bucket.tokens + refilled, static_cast<double>(options.burst));
    }
    bucket.at = now();
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  void record(const EventAct& event) {
    if (stopped) return;
    const SeriesKey key{object_id(event), event.reason, event.action, event.type, event.note};
    if (const auto it = series.find(key); it != series.end() && now() - it->second.last_seen < options.series_finish) {
      return repeat(key, it->second);
    }
    if (queue.size() >= options.max_queue || !take_token(object_id(event))) {
      ++dropped;
      return;
    }
    if (series.size() >= options.max_series) forget_quietest();
    Series fresh;
    fresh.last = loop.clock().wall();
    fresh.last_seen = now();
    fresh.queued = true;
    fresh.event = {event.object.ns.empty() ? "default" : event.object.ns, name_for(event)};
    core::Json object = create_json(event, fresh);
    series[key] = std::move(fresh);
    queue.push_back({key, std::move(object)});
    if (!sweep_timer.pending()) sweep_timer.set(kSweep, [this] { sweep(); });
    pump();
  }

  /// Drops the series whose last event is the oldest, because a new event is worth more than the count of an old series. The
  /// next event of a dropped series begins a new series.
  void forget_quietest() {
    auto quietest = series.end();
    for (auto it = series.begin(); it != series.end(); ++it) {
      if (!it->second.queued && (quietest == series.end() || it->second.last_seen < quietest->second.last_seen)) quietest = it;
    }
    if (quietest != series.end()) series.erase(quietest);
  }

  void repeat(const SeriesKey& key, Series& running) {
    ++running.count;
    running.last = loop.clock().wall();
    running.last_seen = now();
    // Writes the count when the count has doubled, or a while after the last write. Without new events, nothing is written.
    const bool due = running.count >= 2 * running.written || now() - running.last_written >= options.series_refresh;
    if (due && !running.queued) enqueue_patch(key, running);
  }

  void enqueue_patch(const SeriesKey& key, Series& running) {
    if (queue.size() >= options.max_queue) {
      ++dropped;
      return;
    }
    running.queued = true;
    queue.push_back({key, nullptr});
    pump();
  }

  std::string name_for(const EventAct& event) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string suffix;
    for (int i = 0; i < 16; ++i) suffix += kDigits[random.below(16)];
    // The names of objects and of events may have up to 253 characters.
    return shortened(event.object.name, 230) + "." + suffix;
  }

  core::Json create_json(const EventAct& event, const Series& fresh) const {
    core::Json regarding = {
        {"apiVersion", event.regarding.api_version()}, {"kind", event.regarding.kind}, {"name", event.object.name}};
    if (!event.object.ns.empty()) regarding["namespace"] = event.object.ns;
    if (!event.object.uid.empty()) regarding["uid"] = event.object.uid;
    if (!event.object.resource_version.empty()) regarding["resourceVersion"] = event.object.resource_version;
    return {{"apiVersion", "events.k8s.io/v1"},
            {"kind", "Event"},
            {"metadata", meta_json(fresh.event)},
            {"eventTime", core::format_rfc3339_micro(fresh.last)},
            {"reportingController", options.controller},
            {"reportingInstance", shortened(options.instance, 128)},
            {"action", shortened(event.action.empty() ? event.reason : event.action, kMaxReason)},
            {"reason", shortened(event.reason, kMaxReason)},
            {"regarding", regarding},
            {"type", event.type},
            {"note", shortened(event.note, kMaxNote)}};
  }

  void pump() {
    while (in_flight < kMaxInFlight && !queue.empty()) {
      Job job = std::move(queue.front());
      queue.pop_front();
      send(std::move(job));
    }
    if (stopped && in_flight == 0 && queue.empty()) finish_stop();
  }

  void send(Job job) {
    const auto it = series.find(job.key);
    if (it == series.end()) return;
    Series& running = it->second;
    const int count = running.count;
    ++in_flight;
    const bool creates = !job.create.is_null();
    const auto answered = [weak = weak_from_this(), key = job.key, creates, count](core::Result<core::Json> reply) {
      if (const auto self = weak.lock()) self->sent(key, creates, count, reply);
    };
    if (creates) {
      client.create(resources::kEvent, job.create, answered);
    } else {
      const core::Json patch = {{"series", {{"count", count}, {"lastObservedTime", core::format_rfc3339_micro(running.last)}}}};
      client.patch(resources::kEvent, running.event, PatchType::kMerge, patch, answered);
    }
  }

  void sent(const SeriesKey& key, bool created, int count, const core::Result<core::Json>& reply) {
    --in_flight;
    if (const auto it = series.find(key); it != series.end()) {
      Series& running = it->second;
      running.queued = false;
      running.last_written = now();
      running.written = created ? 1 : count;
      if (!reply) {
        ++dropped;
        logger.debug("event not written", {core::error_field(reply.error())});
        // The API server does not have the event, so the next repeat begins a new series.
        if (created || reply.error().code == core::ErrorCode::kNotFound) series.erase(it);
      } else if (created && running.count > 1) {
        enqueue_patch(key, running);
      }
    }
    pump();
  }

  /// Ends series without recent events.
  void sweep() {
    std::erase_if(series,
                  [&](const auto& old) { return !old.second.queued && now() - old.second.last_seen >= options.series_finish; });
    const core::Duration full = options.refill * static_cast<int>(options.burst);
    std::erase_if(buckets, [&](const auto& bucket) { return now() - bucket.second.at > full; });
    if (!series.empty() || !buckets.empty()) sweep_timer.set(kSweep, [this] { sweep(); });
  }

  void finish_stop() {
    stop_timer.cancel();
    sweep_timer.cancel();
    if (!stop_done) return;
    const auto done = std::exchange(stop_done, nullptr);
    loop.after(core::Duration{0}, done);
  }
};

EventRecorder::EventRecorder(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, EventOptions options)
    : impl_(std::make_shared<Impl>(loop, random, logger, client, std::move(options))) {}

EventRecorder::~EventRecorder() {
  impl_->sweep_timer.cancel();
  impl_->stop_timer.cancel();
}

void EventRecorder::record(const EventAct& event) {
  impl_->record(event);
}

void EventRecorder::stop(core::Duration grace, std::function<void()> done) {
  impl_->stopped = true;
  impl_->stop_done = std::move(done);
  impl_->stop_timer.set(grace, [impl = impl_.get()] { impl->finish_stop(); });
  impl_->pump();
}

std::uint64_t EventRecorder::dropped() const {
  return impl_->dropped;
}

}  // namespace kube
