#include "sim/base/http_front.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace sim {

struct HttpFront::Impl {
  Impl(net::AsioLoop& l, Server& s, Faults& f, net::ServerOptions options)
      : loop(l), server(s), faults(f), http(l, std::move(options), [this](net::HttpRequest request, net::Responder responder) {
          handle(request, std::move(responder));
        }) {}

  net::AsioLoop& loop;
  Server& server;
  Faults& faults;
  net::HttpServer http;

  void handle(const net::HttpRequest& request, net::Responder responder) {
    const Fault fault = server.listening() ? faults.decide(request) : Fault::kRefuse;
    switch (fault) {
      case Fault::kRefuse:
      case Fault::kLostRequest:
        return responder.cut();
      case Fault::kCrashBefore:
        if (faults.on_crash) faults.on_crash();
        return responder.cut();
      case Fault::kConflict:
        return responder.respond(server.fault_reply(409));
      case Fault::kTooMany:
        return responder.respond(server.fault_reply(429));
      case Fault::kInternal:
        return responder.respond(server.fault_reply(500));
      case Fault::kForbidden:
        return responder.respond(server.fault_reply(403));
      default:
        break;
    }
    if (server.is_stream(request)) return stream(request, std::move(responder));
    net::HttpResponse reply = server.serve(request);
    switch (fault) {
      case Fault::kLostReply:
        return responder.cut();
      case Fault::kCrashAfter:
        if (faults.on_crash) faults.on_crash();
        return responder.cut();
      case Fault::kInternalAfter:
        return responder.respond(server.fault_reply(500));
      case Fault::kSlow:
        loop.after(core::Duration{500},
                   [responder, reply = std::move(reply)]() mutable { responder.respond(std::move(reply)); });
        return;
      default:
        return responder.respond(std::move(reply));
    }
  }

  /// Shared by the callbacks of a stream. Pieces sent from inside of open() wait until the head is sent.
  struct Stream {
    std::optional<net::Responder> responder;
    std::vector<StreamPiece> early;
    bool begun = false;
    bool ended = false;
    Server::StreamId id = 0;
  };

  void stream(const net::HttpRequest& request, net::Responder responder) {
    auto state = std::make_shared<Stream>();
    state->responder = responder;
    StreamSink sink;
    sink.on_piece = [this, state](StreamPiece piece) {
      if (!state->begun) {
        state->early.push_back(std::move(piece));
      } else {
        write(state, std::move(piece));
      }
    };
    sink.on_end = [state] {
      state->ended = true;
      if (state->begun && state->responder) state->responder->end();
      state->responder.reset();
    };
    auto opened = server.open(request, std::move(sink));
    if (!opened) {
      state->responder.reset();
      return responder.respond(std::move(opened.error()));
    }
    state->id = *opened;
    responder.on_gone([this, state] {
      if (!state->ended) server.close(state->id);
      state->responder.reset();
    });
    responder.begin(200, {{"content-type", "application/json"}});
    state->begun = true;
    for (StreamPiece& piece : std::exchange(state->early, {})) write(state, std::move(piece));
    if (state->ended) responder.end();
  }

  void write(const std::shared_ptr<Stream>& state, StreamPiece piece) {
    if (!state->responder) return;
    if (piece.kind == StreamPiece::Kind::kBookmark && faults.withhold_bookmark()) return;
    switch (piece.kind == StreamPiece::Kind::kData ? faults.decide_piece() : StreamFault::kNone) {
      case StreamFault::kCut: {
        state->responder->write(std::string_view(piece.text).substr(0, piece.text.size() / 2));
        // Closes the stream in a later callback: the server is sending this piece now, and must not be called during that.
        loop.after(core::Duration{0}, [this, state] {
          if (!state->responder) return;
          state->responder->cut();
          state->responder.reset();
          if (!state->ended) server.close(state->id);
        });
        return;
      }
      case StreamFault::kGone:
        state->responder->write("{\"type\":\"ERROR\",\"object\":" + server.fault_reply(410).body + "}\n");
        loop.after(core::Duration{0}, [this, state] {
          if (state->responder) state->responder->end();
          state->responder.reset();
          if (!state->ended) server.close(state->id);
        });
        return;
      case StreamFault::kDuplicate:
        state->responder->write(piece.text);
        break;
      default:
        break;
    }
    state->responder->write(piece.text);
  }
};

HttpFront::HttpFront(net::AsioLoop& loop, Server& server, Faults& faults, net::ServerOptions options)
    : impl_(std::make_unique<Impl>(loop, server, faults, std::move(options))) {}
HttpFront::~HttpFront() = default;
core::Result<void> HttpFront::start() {
  return impl_->http.start();
}
std::uint16_t HttpFront::port() const {
  return impl_->http.port();
}
core::Result<void> HttpFront::set_tls(net::Tls tls) {
  return impl_->http.set_tls(std::move(tls));
}
void HttpFront::stop() {
  impl_->http.stop();
}

}  // namespace sim
