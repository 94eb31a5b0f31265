// Passes the actions of operators to the oracles: a server that reports each request, and a logger that reports each line.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/log.hpp"
#include "sim/base/server.hpp"
#include "sim/oracles/oracles.hpp"

namespace sim {

/// A server that reports an operator's requests to the oracles.
class Tap final : public Server {
 public:
  Tap(Server& server, Oracles& oracles) : server_(server), oracles_(oracles) {}
  [[nodiscard]] bool listening() const override { return server_.listening(); }
  net::HttpResponse serve(const net::HttpRequest& request) override {
    oracles_.request(request, false, identity_of(request));
    return server_.serve(request);
  }
  [[nodiscard]] bool is_stream(const net::HttpRequest& request) const override { return server_.is_stream(request); }
  std::expected<StreamId, net::HttpResponse> open(const net::HttpRequest& request, StreamSink sink) override {
    return server_.open(request, std::move(sink));
  }
  void close(StreamId id) override { server_.close(id); }
  [[nodiscard]] net::HttpResponse fault_reply(int status) const override { return server_.fault_reply(status); }

 private:
  static std::string identity_of(const net::HttpRequest& request);

  Server& server_;
  Oracles& oracles_;
};

/// Passes every line to the oracles, and keeps the last ones in their notes.
class OracleLogger final : public core::Logger {
 public:
  OracleLogger(Oracles& oracles, const core::Clock& clock, std::string who, bool print)
      : oracles_(oracles), clock_(clock), who_(std::move(who)), print_(print) {}
  void log(core::Level level, std::string_view message, std::vector<core::Field> fields) override;

 private:
  Oracles& oracles_;
  const core::Clock& clock_;
  std::string who_;
  bool print_;
};

}  // namespace sim
