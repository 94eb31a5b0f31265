#include "sim/programs/enlist/wire.hpp"

#include <map>
#include <utility>

namespace sim {
namespace {

using core::ErrorCode;

/// Returns the HTTP status with which a gateway answers instead of the coordinator; 0 for a fault without such an answer.
int status_of(Fault fault) {
  switch (fault) {
    case Fault::kTooMany:
      return 429;
    case Fault::kForbidden:
      return 403;
    case Fault::kConflict:
    case Fault::kInternal:
      return 503;
    default:
      return 0;
  }
}

}  // namespace

struct EnlistTransport::Impl : std::enable_shared_from_this<EnlistTransport::Impl> {
  Impl(World& w, EnlistProgram& p, core::Loop& c, const EnlistHost* h, std::function<void()> crash)
      : world(w), program(p), client(c), host(h), on_crash(std::move(crash)) {}

  struct Call {
    Done done;
    core::Loop::TimerId deadline = 0;
  };
  World& world;
  EnlistProgram& program;
  core::Loop& client;
  const EnlistHost* host;
  std::function<void()> on_crash;
  std::map<RequestId, Call> calls;
  RequestId last = 0;
  bool dead = false;

  core::Duration hop() { return core::Duration{world.random().between(1, 10)}; }
  [[nodiscard]] bool cut() const { return host != nullptr && host->cut(); }

  /// Called on the client's loop.
  void finish(RequestId id, core::Result<net::HttpResponse> result) {
    const auto entry = calls.extract(id);
    if (entry.empty()) return;
    client.cancel(entry.mapped().deadline);
    entry.mapped().done(std::move(result));
  }

  void answer(RequestId id, core::Result<net::HttpResponse> result, core::Duration delay = core::Duration{0}) {
    world.loop().after(hop() + delay, [self = shared_from_this(), id, result = std::move(result)]() mutable {
      if (self->dead || self->cut()) return;
      self->client.after(core::Duration{0}, [self, id, result = std::move(result)]() mutable {
        if (!self->dead) self->finish(id, std::move(result));
      });
    });
  }

  void arrive(RequestId id, const net::HttpRequest& request) {
    if (cut()) return;  // The request ends with the client's deadline.
    EnlistCoordinator* coordinator = program.coordinator();
    if (coordinator == nullptr) return answer(id, core::fail(ErrorCode::kUnavailable, "connection refused"));
    // An agent's sync does not count as a write: agents send syncs all the time, so the number of syncs depends on time.
    const bool counted = request.method != "GET" && request.target != "/v1/sync";
    const Fault fault = world.faults().decide({.method = counted ? "POST" : "GET", .target = request.target});
    if (fault == Fault::kRefuse) return answer(id, core::fail(ErrorCode::kUnavailable, "connection refused"));
    if (fault == Fault::kLostRequest) return;
    if (fault == Fault::kCrashBefore) return crash();
    if (const int status = status_of(fault); status != 0)
      return answer(id, net::HttpResponse{status, {}, R"({"error":"a gateway is unwell"})", {}});
    coordinator->serve(
        request, [self = shared_from_this(), id, fault, request, at = world.loop().clock().mono()](net::HttpResponse response) {
          self->program.oracle().exchanged(request, response);
          if (request.target == "/v1/sync" && response.status == 200) self->program.oracle().heard(request.peer_key, at);
          if (fault == Fault::kCrashAfter) return self->crash();
          if (fault == Fault::kLostReply || fault == Fault::kInternalAfter) return;
          self->answer(id, std::move(response), core::Duration{fault == Fault::kSlow ? 5000 : 0});
        });
  }

  /// Ends the client or the coordinator.
  void crash() {
    if (!on_crash || world.random().chance(0.4)) return world.crash(program.controller().slot, core::Duration{500});
    if (!dead) on_crash();
  }
};

EnlistTransport::EnlistTransport(World& world, EnlistProgram& program, core::Loop& client, const EnlistHost* host,
                                 std::function<void()> on_crash)
    : impl_(std::make_shared<Impl>(world, program, client, host, std::move(on_crash))) {}

EnlistTransport::~EnlistTransport() {
  impl_->dead = true;
  for (const auto& [id, call] : impl_->calls) impl_->client.cancel(call.deadline);
  impl_->calls.clear();
}

net::HttpTransport::RequestId EnlistTransport::send(net::HttpRequest request, Done done) {
  const RequestId id = ++impl_->last;
  request.peer_key = impl_->host == nullptr ? EnlistProgram::kAdmin : impl_->host->fingerprint();
  const core::Duration limit = request.timeout;
  impl_->calls[id] = {std::move(done), impl_->client.after(limit, [impl = impl_.get(), id] {
                        impl->finish(id, core::fail(ErrorCode::kUnknownOutcome, "no answer in time"));
                      })};
  impl_->world.loop().after(impl_->hop(), [impl = impl_, id, request = std::move(request)] { impl->arrive(id, request); });
  return id;
}

net::HttpTransport::RequestId EnlistTransport::stream(net::HttpRequest, net::StreamHandler) {
  return ++impl_->last;  // slurm-enlist uses no streams.
}

void EnlistTransport::cancel(RequestId id) {
  const auto entry = impl_->calls.extract(id);
  if (!entry.empty()) impl_->client.cancel(entry.mapped().deadline);
}

}  // namespace sim
