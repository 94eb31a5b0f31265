// Passes the actions of a program to the oracles: a server that reports each request, and a logger that reports each line.
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/log.hpp"
#include "sim/base/server.hpp"
#include "sim/oracles/oracles.hpp"

namespace sim {

/// A server that reports each request before it serves it.
class Tap final : public Server {
 public:
  using Tell = std::function<void(const net::HttpRequest&)>;
  Tap(Server& server, Tell tell) : server_(server), tell_(std::move(tell)) {}
  [[nodiscard]] bool listening() const override { return server_.listening(); }
  net::HttpResponse serve(const net::HttpRequest& request) override {
    tell_(request);
    return server_.serve(request);
  }
  [[nodiscard]] bool is_stream(const net::HttpRequest& request) const override { return server_.is_stream(request); }
  std::expected<StreamId, net::HttpResponse> open(const net::HttpRequest& request, StreamSink sink) override {
    return server_.open(request, std::move(sink));
  }
  void close(StreamId id) override { server_.close(id); }
  [[nodiscard]] net::HttpResponse fault_reply(int status) const override { return server_.fault_reply(status); }

 private:
  Server& server_;
  Tell tell_;
};

/// Passes every line to the oracles, and adds it to their notes unless its level is debug. A line that reports a bug is a
/// violation.
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
