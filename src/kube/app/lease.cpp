#include "kube/app/lease.hpp"

#include <algorithm>
#include <utility>

namespace kube {

namespace {
/// The timeout of a request. An API server that takes 5 s to answer is slow, not down. If it does not answer, there is time
/// for a second request.
constexpr core::Duration kRequestTimeout{6000};
}  // namespace

struct LeaderElection::Impl : std::enable_shared_from_this<LeaderElection::Impl> {
  Impl(core::Loop& l, core::Random& r, core::Logger& g, Client& c, LeaseOptions o, Callbacks cb)
      : loop(l), random(r), logger(g), client(c), options(std::move(o)), callbacks(std::move(cb)), tick(l), deadline_timer(l) {}

  core::Loop& loop;
  core::Random& random;
  core::Logger& logger;
  Client& client;
  LeaseOptions options;
  Callbacks callbacks;
  core::Timer tick;
  core::Timer deadline_timer;

  bool running = false;
  bool leading = false;
  bool ended = false;
  bool writing = false;                     ///< A write of the Lease is under way.
  std::function<void()> when_written = {};  ///< The rest of release(), to run when the write under way has ended.
  core::MonoTime renewed_at;                ///< When the last successful renewal was sent.
  core::Json lease;                         ///< The Lease as last seen; null: never seen, or not reliable.
  core::Json observed_spec;                 ///< The spec that the holder wrote last, first seen at observed_at.
  core::MonoTime observed_at;
  std::string told_holder;

  [[nodiscard]] core::MonoTime now() const { return loop.clock().mono(); }
  [[nodiscard]] core::MonoTime deadline() const { return renewed_at + options.renew_deadline; }
  [[nodiscard]] core::MonoTime lost_at() const { return renewed_at + options.duration - options.retry_period; }

  void again() {
    if (ended) return;
    // The duration of a slow answer counts towards the period.
    if (leading && !lease.is_null())
      return tick.set(std::max(renewed_at + options.retry_period - now(), core::Duration{0}), [this] { attempt(); });
    // Standbys use random delays, so that they do not all ask at once.
    const double spread = leading ? 1.0 : 1.0 + random.unit() * options.jitter;
    const double delay = static_cast<double>(options.retry_period.count()) * spread;
    tick.set(core::Duration{static_cast<core::Duration::rep>(delay)}, [this] { attempt(); });
  }

  void attempt() {
    // The leader's own copy of the Lease is current unless somebody else writes the Lease. So usually one request is enough.
    if (leading && !lease.is_null()) return write();
    if (leading && callbacks.on_slow_renewal) callbacks.on_slow_renewal();
    read();
  }

  void read() {
    client.get(resources::kLease, options.key,
               [weak = weak_from_this()](core::Result<core::Json> reply) {
                 const auto self = weak.lock();
                 if (!self || self->ended) return;
                 if (reply) return self->seen(std::move(*reply));
                 if (reply.error().code == core::ErrorCode::kNotFound) {
                   self->lease = nullptr;
                   return self->write();
                 }
                 self->logger.warn("lease: cannot read it", {core::error_field(reply.error())});
                 self->again();
               },
               {.timeout = time_left(), .urgent = true});
  }

  void seen(core::Json current) {
    lease = std::move(current);
    const core::Json spec = lease.value("spec", core::Json::object());
    if (spec != observed_spec) {
      observed_spec = spec;
      observed_at = now();
    }
    const std::string holder = core::get_string(spec, {"holderIdentity"});
    tell(holder);
    const bool ours = holder == options.identity;
    if (leading && !ours) return lose("another replica holds it: " + holder);
    // The holder counts as alive for options.duration after we saw the Lease change. The holder's clock is not used.
    const bool expired = now() - observed_at >= options.duration;
    if (!holder.empty() && !ours && !expired) return again();
    write();
  }

  void tell(const std::string& holder) {
    if (holder == told_holder) return;
    told_holder = holder;
    if (callbacks.on_holder) callbacks.on_holder(holder);
  }

  [[nodiscard]] core::Json wanted() const {
    const std::string at = core::format_rfc3339_micro(loop.clock().wall());
    core::Json object = lease;
    if (object.is_null()) {
      object = {{"apiVersion", "coordination.k8s.io/v1"}, {"kind", "Lease"}, {"metadata", meta_json(options.key)}};
    } else {
      object["metadata"].erase("managedFields");
    }
    core::Json& spec = object["spec"];
    const bool ours = core::get_string(object, {"spec", "holderIdentity"}) == options.identity;
    if (!ours) {
      spec["acquireTime"] = at;
      spec["leaseTransitions"] = core::get_int(object, {"spec", "leaseTransitions"}) + (lease.is_null() ? 0 : 1);
    }
    spec["holderIdentity"] = options.identity;
    spec["leaseDurationSeconds"] = options.duration.count() / 1000;
    spec["renewTime"] = at;
    return object;
  }

  /// Returns the timeout of one request. A leader waits at most until the Lease counts as lost.
  [[nodiscard]] core::Duration time_left() const {
    return leading ? std::clamp(lost_at() - now(), core::Duration{1}, kRequestTimeout) : kRequestTimeout;
  }

  /// Returns options that make the client send a renewal before other requests. If a renewal waited for a connection behind
  /// hundreds of writes, it would be too late.
  [[nodiscard]] WriteOptions write_options() const {
    WriteOptions made;
    made.fenced = false;
    made.timeout = time_left();
    made.urgent = true;
    return made;
  }

  void write() {
    const core::MonoTime sent = now();
    const auto answered = [weak = weak_from_this(), sent](core::Result<core::Json> reply) {
      const auto self = weak.lock();
      if (!self) return;
      self->writing = false;
      if (!self->ended) return self->written(sent, std::move(reply));
      self->lease = reply ? std::move(*reply) : core::Json();
      if (const auto then = std::exchange(self->when_written, nullptr)) then();
    };
    writing = true;
    if (lease.is_null()) {
      client.create(resources::kLease, wanted(), answered, write_options());
    } else {
      client.update(resources::kLease, wanted(), answered, write_options());
    }
  }

  void written(core::MonoTime sent, core::Result<core::Json> reply) {
    if (!reply) {
      lease = nullptr;  // Read the Lease before the next write.
      logger.warn(leading ? "lease: cannot renew it" : "lease: cannot take it", {core::error_field(reply.error())});
      return again();
    }
    lease = std::move(*reply);
    observed_spec = lease.value("spec", core::Json::object());
    observed_at = now();
    // The renewal succeeded, but the answer arrived when the Lease already counted as lost.
    if (leading && now() >= lost_at()) return lose("renewed too late");
    renewed_at = sent;
    if (!leading && now() >= deadline()) return again();
    deadline_timer.set(std::max(lost_at() - now(), core::Duration{0}), [this] { lose("not renewed in time"); });
    tell(options.identity);
    if (!leading) {
      leading = true;
      logger.info("lease taken", {{"lease", options.key.str()}, {"holder", options.identity}});
      if (callbacks.on_leading) callbacks.on_leading();
    }
    again();
  }

  void lose(const std::string& why) {
    if (ended) return;
    const bool led = leading;
    end();
    if (led && callbacks.on_lost) callbacks.on_lost(why);
  }

  void end() {
    leading = false;
    ended = true;
    tick.cancel();
    deadline_timer.cancel();
  }

  void release(std::function<void()> done) {
    const bool held = leading;
    end();
    if (writing) {
      // Waits for the answer, because only the answer shows whether the Lease was written.
      when_written = [this, done = std::move(done)] { give_up(done, true); };
    } else if (held) {
      give_up(std::move(done), true);
    } else {
      loop.after(core::Duration{0}, std::move(done));
    }
  }

  /// Writes the Lease without a holder. If there is no copy of the Lease, reads the Lease first. With `may_read`, reads it
  /// once more after a conflict.
  void give_up(std::function<void()> done, bool may_read) {
    if (lease.is_null()) return read_and_give_up(std::move(done));
    core::Json object = wanted();
    object["spec"]["holderIdentity"] = "";
    object["spec"]["leaseDurationSeconds"] = 1;
    client.update(
        resources::kLease, object,
        [weak = weak_from_this(), done = std::move(done), may_read](core::Result<core::Json> reply) {
          const auto self = weak.lock();
          if (!self || reply) return done();
          if (may_read && reply.error().code == core::ErrorCode::kConflict) return self->read_and_give_up(done);
          self->not_released(reply.error());
          done();
        },
        write_options());
  }

  void read_and_give_up(std::function<void()> done) {
    client.get(resources::kLease, options.key,
               [weak = weak_from_this(), done = std::move(done)](core::Result<core::Json> reply) {
                 const auto self = weak.lock();
                 if (!self) return done();
                 if (!reply) {
                   self->not_released(reply.error());
                   return done();
                 }
                 if (core::get_string(*reply, {"spec", "holderIdentity"}) != self->options.identity) return done();
                 self->lease = std::move(*reply);
                 self->give_up(done, false);
               },
               {.timeout = time_left(), .urgent = true});
  }

  void not_released(const core::Error& why) { logger.warn("lease: cannot release it", {core::error_field(why)}); }
};

LeaderElection::LeaderElection(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client,
                               LeaseOptions options, Callbacks callbacks)
    : impl_(std::make_shared<Impl>(loop, random, logger, client, std::move(options), std::move(callbacks))) {}

LeaderElection::~LeaderElection() {
  impl_->end();
}

void LeaderElection::start() {
  if (impl_->running) return;
  impl_->running = true;
  impl_->tick.set(core::Duration{0}, [impl = impl_.get()] { impl->attempt(); });
}

void LeaderElection::release(std::function<void()> done) {
  impl_->release(std::move(done));
}

void LeaderElection::end() {
  impl_->end();
}

bool LeaderElection::leading() const {
  return impl_->leading && impl_->now() < impl_->deadline();
}

std::optional<core::MonoTime> LeaderElection::deadline() const {
  if (!leading()) return std::nullopt;
  return impl_->deadline();
}

}  // namespace kube
