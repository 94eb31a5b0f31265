#include "sim/base/transport.hpp"

#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace sim {

using core::ErrorCode;

namespace {

core::Error error(ErrorCode code, const net::HttpRequest& request, const char* why) {
  return {code, request.method + " " + request.target.substr(0, 200) + ": " + why, 0, {}, {}};
}

/// Returns the HTTP status with which the server replies under the fault; 0 for a fault without such a reply.
int status_of(Fault fault) {
  switch (fault) {
    case Fault::kConflict:
      return 409;
    case Fault::kTooMany:
      return 429;
    case Fault::kInternal:
    case Fault::kInternalAfter:
      return 500;
    case Fault::kForbidden:
      return 403;
    default:
      return 0;
  }
}

}  // namespace

struct Transport::Impl : std::enable_shared_from_this<Transport::Impl> {
  Impl(core::Loop& n, core::Loop& c, Server& s, Faults& f, SeededRandom r, Latency l)
      : network(n), client(c), server(&s), faults(f), random(std::move(r)), latency(l) {}

  struct Call {
    explicit Call(core::Loop& loop) : timer(loop) {}
    net::HttpRequest request;
    Done done;
    net::StreamHandler handler;
    bool streaming = false;
    bool headed = false;
    core::Timer timer;

    // The state of a stream. Pieces wait in `pieces`, and one delivery is under way at a time.
    Server::StreamId stream = 0;
    bool open = false;
    bool ended = false;
    bool sealed = false;  ///< An injected error event is the last piece: nothing follows.
    bool delivering = false;
    core::Duration stall{0};
    std::deque<StreamPiece> pieces;
    std::optional<core::Error> cut;  ///< The error with which the connection breaks after the waiting pieces.
  };
  using CallPtr = std::shared_ptr<Call>;

  core::Loop& network;
  core::Loop& client;
  Server* server;
  Faults& faults;
  std::function<void()> on_crash;
  SeededRandom random;
  Latency latency;
  RequestId last_id = 0;
  std::map<RequestId, CallPtr> calls;
  bool dead = false;

  core::Duration hop() { return core::Duration{random.between(latency.least.count(), latency.most.count())}; }
  core::Duration slow() { return core::Duration{random.between(latency.most.count(), latency.slow.count())}; }

  CallPtr find(RequestId id) const {
    const auto it = calls.find(id);
    return it == calls.end() ? nullptr : it->second;
  }

  RequestId start(CallPtr call) {
    const RequestId id = ++last_id;
    calls[id] = call;
    set_deadline(id, *call);
    // The network carries the request to the server even if the client has ended or given up meanwhile.
    network.after(hop(), [self = shared_from_this(), id, request = call->request, streaming = call->streaming] {
      streaming ? self->arrive_stream(id, request) : self->arrive(id, request);
    });
    return id;
  }

  void set_deadline(RequestId id, Call& call) {
    call.timer.set(call.request.timeout, [this, id] {
      const CallPtr held = calls.at(id);
      finish(id,
             std::unexpected(error(ErrorCode::kUnknownOutcome, held->request, held->headed ? "silence" : "no reply in time")));
    });
  }

  /// Calls back on the client's loop, if the client still waits.
  void on_client(core::Duration delay, std::function<void()> call) {
    if (dead) return;
    client.after(delay, [self = shared_from_this(), call = std::move(call)] {
      if (!self->dead) call();
    });
  }

  void answer(RequestId id, core::Duration delay, core::Result<net::HttpResponse> reply) {
    on_client(delay, [this, id, reply = std::move(reply)]() mutable { finish(id, std::move(reply)); });
  }

  void arrive(RequestId id, const net::HttpRequest& request) {
    const Fault fault = server->listening() ? faults.decide(request) : Fault::kRefuse;
    if (fault == Fault::kRefuse) {
      return answer(id, hop(), std::unexpected(error(ErrorCode::kUnavailable, request, "connection refused")));
    }
    if (fault == Fault::kLostRequest) return;  // ends with the client's deadline
    if (fault == Fault::kCrashBefore) return crash();
    const int status = status_of(fault);
    if (status != 0 && fault != Fault::kInternalAfter) return answer(id, hop(), server->fault_reply(status));
    net::HttpResponse reply = server->serve(request);
    if (fault == Fault::kCrashAfter) return crash();
    if (fault == Fault::kLostReply) {
      // The client sees a reset at once, or waits until its own timeout.
      if (random.chance(0.5))
        answer(id, hop(), std::unexpected(error(ErrorCode::kUnknownOutcome, request, "connection reset")));
      return;
    }
    if (fault == Fault::kInternalAfter) reply = server->fault_reply(status);
    answer(id, fault == Fault::kSlow ? slow() : hop(), std::move(reply));
  }

  void crash() const {
    if (const auto& call = on_crash ? on_crash : faults.on_crash) call();
  }

  void finish(RequestId id, core::Result<net::HttpResponse> reply) {
    const auto node = calls.extract(id);
    if (!node) return;
    const CallPtr call = node.mapped();
    call->timer.cancel();
    close_stream(*call);
    if (!call->streaming) return call->done(std::move(reply));
    if (!reply) {
      if (call->handler.on_end) call->handler.on_end(std::unexpected(reply.error()));
      return;
    }
    // The server answered the request for a stream with a whole reply.
    if (call->handler.on_head) call->handler.on_head(reply->status, reply->headers);
    if (call->handler.on_data && !reply->body.empty()) call->handler.on_data(reply->body);
    if (call->handler.on_end) call->handler.on_end({});
  }

  void close_stream(Call& call) const {
    if (std::exchange(call.open, false)) server->close(call.stream);
  }

  void arrive_stream(RequestId id, const net::HttpRequest& request) {
    const CallPtr call = find(id);
    if (!call) return;
    if (!server->is_stream(request)) return arrive(id, request);
    const Fault fault = server->listening() ? faults.decide(request) : Fault::kRefuse;
    const int status = status_of(fault);
    if (status != 0) return answer(id, hop(), server->fault_reply(status));
    if (fault == Fault::kRefuse) {
      return answer(id, hop(), std::unexpected(error(ErrorCode::kUnavailable, request, "connection refused")));
    }
    if (fault == Fault::kLostRequest || fault == Fault::kLostReply) return;
    StreamSink sink;
    const std::weak_ptr<Impl> weak = weak_from_this();
    sink.on_piece = [weak, id](StreamPiece piece) {
      if (const auto self = weak.lock()) self->take(id, std::move(piece));
    };
    sink.on_end = [weak, id] {
      const auto self = weak.lock();
      const CallPtr held = self ? self->find(id) : nullptr;
      if (!held) return;
      held->open = false;
      held->ended = true;
      self->deliver_later(id, *held);
    };
    auto opened = server->open(request, std::move(sink));
    if (!opened) return answer(id, hop(), std::move(opened.error()));
    call->stream = *opened;
    call->open = !call->ended;
    call->headed = false;
    deliver_later(id, *call);  // the head
  }

  void take(RequestId id, StreamPiece piece) {
    const CallPtr call = find(id);
    if (!call || call->cut || call->sealed) return;
    if (piece.kind == StreamPiece::Kind::kBookmark && faults.withhold_bookmark()) return;
    switch (piece.kind == StreamPiece::Kind::kData ? faults.decide_piece() : StreamFault::kNone) {
      case StreamFault::kNone:
        break;
      case StreamFault::kCut:
        piece.text.resize(piece.text.size() / 2);
        call->cut = error(ErrorCode::kUnknownOutcome, call->request, "cut in the middle");
        break;
      case StreamFault::kGone:
        piece.text = "{\"type\":\"ERROR\",\"object\":" + server->fault_reply(410).body + "}\n";
        call->ended = true;
        call->sealed = true;
        break;
      case StreamFault::kDuplicate:
        call->pieces.push_back(piece);
        break;
      case StreamFault::kDelay:
        call->stall = slow();
        break;
    }
    call->pieces.push_back(std::move(piece));
    deliver_later(id, *call);
  }

  void deliver_later(RequestId id, Call& call) {
    if (std::exchange(call.delivering, true)) return;
    on_client(hop() + std::exchange(call.stall, core::Duration{0}), [this, id] { deliver(id); });
  }

  void deliver(RequestId id) {
    const CallPtr call = find(id);
    if (!call) return;
    call->delivering = false;
    set_deadline(id, *call);
    if (!std::exchange(call->headed, true) && call->handler.on_head) {
      call->handler.on_head(200, {{"content-type", "application/json"}, {"transfer-encoding", "chunked"}});
    }
    // As with TCP, several lines come in one piece, or one line comes in several pieces.
    std::string bytes;
    for (std::uint64_t n = 1 + random.below(8); n > 0 && !call->pieces.empty(); --n) {
      bytes += call->pieces.front().text;
      call->pieces.pop_front();
    }
    const std::size_t split = random.chance(0.3) && bytes.size() > 1 ? 1 + random.below(bytes.size() - 1) : bytes.size();
    for (const std::string_view part : {std::string_view(bytes).substr(0, split), std::string_view(bytes).substr(split)}) {
      if (!part.empty() && calls.contains(id) && call->handler.on_data) call->handler.on_data(part);
    }
    if (!calls.contains(id)) return;  // cancelled in a callback
    if (!call->pieces.empty()) return deliver_later(id, *call);
    if (call->cut) return finish(id, std::unexpected(*call->cut));
    if (call->ended) end_stream(id);
  }

  void end_stream(RequestId id) {
    const auto node = calls.extract(id);
    node.mapped()->timer.cancel();
    close_stream(*node.mapped());
    if (node.mapped()->handler.on_end) node.mapped()->handler.on_end({});
  }

  void cancel(RequestId id) {
    const auto node = calls.extract(id);
    if (!node) return;
    node.mapped()->timer.cancel();
    close_stream(*node.mapped());
    // A callback of the call may be running, so a later callback of the loop destroys the call.
    client.after(core::Duration{0}, [call = node.mapped()] {});
  }

  void cut_all() {
    for (const auto& [id, call] : calls)
      answer(id, hop(), std::unexpected(error(ErrorCode::kUnknownOutcome, call->request, "connection reset")));
  }

  void shutdown() {
    dead = true;
    for (const auto& [id, call] : std::exchange(calls, {})) {
      call->timer.cancel();
      close_stream(*call);
    }
  }
};

Transport::Transport(core::Loop& network, core::Loop& client, Server& server, Faults& faults, SeededRandom random,
                     Latency latency)
    : impl_(std::make_shared<Impl>(network, client, server, faults, std::move(random), latency)) {}
Transport::~Transport() {
  impl_->shutdown();
}

net::HttpTransport::RequestId Transport::send(net::HttpRequest request, Done done) {
  auto call = std::make_shared<Impl::Call>(impl_->client);
  call->request = std::move(request);
  call->done = std::move(done);
  return impl_->start(std::move(call));
}

net::HttpTransport::RequestId Transport::stream(net::HttpRequest request, net::StreamHandler handler) {
  auto call = std::make_shared<Impl::Call>(impl_->client);
  call->request = std::move(request);
  call->handler = std::move(handler);
  call->streaming = true;
  return impl_->start(std::move(call));
}

void Transport::cancel(RequestId id) {
  impl_->cancel(id);
}
void Transport::set_on_crash(std::function<void()> on_crash) {
  impl_->on_crash = std::move(on_crash);
}

void Transport::cut_all() {
  impl_->cut_all();
}

}  // namespace sim
