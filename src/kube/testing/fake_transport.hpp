// A transport for unit tests: holds each request until the test answers it.
//
//   FakeTransport api;
//   client.get(...);
//   api.take("GET", "/api/v1/pods").reply(200, {{"kind", "Pod"}});
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "core/testing/fake_random.hpp"
#include "net/http.hpp"

namespace kube {

using core::FakeRandom;

class FakeTransport final : public net::HttpTransport {
 public:
  struct Sent {
    RequestId id = 0;
    net::HttpRequest request;
    Done done;
    void reply(int status, const core::Json& body, net::Headers headers = {}) const {
      done(net::HttpResponse{status, std::move(headers), body.dump()});
    }
    void fail(core::ErrorCode code) const { done(core::fail(code, "fake")); }
    [[nodiscard]] core::Json body() const { return core::Json::parse(request.body); }
  };
  struct Opened {
    RequestId id = 0;
    net::HttpRequest request;
    net::StreamHandler handler;
    void head(int status = 200) const { handler.on_head(status, {}); }
    void line(const core::Json& json) const { handler.on_data(json.dump() + "\n"); }
    void event(std::string_view type, const core::Json& object) const { line({{"type", type}, {"object", object}}); }
    void end() const { handler.on_end({}); }
    void fail(core::ErrorCode code) const { handler.on_end(core::fail(code, "fake")); }
    /// Sends a whole answer at once: its head, its body and its end.
    void answer(int status, const core::Json& body) const {
      handler.on_head(status, {});
      handler.on_data(body.dump());
      handler.on_end({});
    }
  };

  RequestId send(net::HttpRequest request, Done done) override {
    sent.push_back({++last_, std::move(request), std::move(done)});
    return last_;
  }
  RequestId stream(net::HttpRequest request, net::StreamHandler handler) override {
    streams.push_back({++last_, std::move(request), std::move(handler)});
    return last_;
  }
  void cancel(RequestId id) override {
    std::erase_if(sent, [&](const Sent& s) { return s.id == id; });
    std::erase_if(streams, [&](const Opened& s) { return s.id == id; });
    ++cancelled;
  }

  /// Removes and returns the oldest request with this method whose target starts with `target`. Throws std::runtime_error if
  /// there is none.
  Sent take(std::string_view method, std::string_view target = "") {
    for (auto it = sent.begin(); it != sent.end(); ++it) {
      if (it->request.method != method || !it->request.target.starts_with(target)) continue;
      Sent found = std::move(*it);
      sent.erase(it);
      return found;
    }
    std::string have;
    for (const Sent& s : sent) have += "\n  " + s.request.method + " " + s.request.target;
    throw std::runtime_error("not sent: " + std::string(method) + " " + std::string(target) + "; sent:" + have);
  }
  [[nodiscard]] bool has(std::string_view method, std::string_view target = "") const {
    for (const Sent& s : sent) {
      if (s.request.method == method && s.request.target.starts_with(target)) return true;
    }
    return false;
  }
  /// Removes and returns the oldest stream whose target starts with `target`. Throws std::runtime_error if there is none.
  Opened take_stream(std::string_view target = "") {
    for (auto it = streams.begin(); it != streams.end(); ++it) {
      if (!it->request.target.starts_with(target)) continue;
      Opened found = std::move(*it);
      streams.erase(it);
      return found;
    }
    throw std::runtime_error("no stream " + std::string(target));
  }

  std::deque<Sent> sent;
  std::deque<Opened> streams;
  int cancelled = 0;

 private:
  RequestId last_ = 0;
};

/// Returns the Status of a failed request, as the API server sends it.
inline core::Json status_json(int code, std::string_view reason, std::string_view message = "no") {
  return {{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"},
          {"code", code},     {"reason", reason},   {"message", message}};
}

/// Returns an object with the metadata that a server adds.
inline core::Json object_json(std::string_view ns, std::string_view name, std::string_view rv, std::string_view uid = "",
                              core::Json more = core::Json::object()) {
  core::Json object = std::move(more);
  object["metadata"]["namespace"] = ns;
  object["metadata"]["name"] = name;
  object["metadata"]["resourceVersion"] = rv;
  object["metadata"]["uid"] = uid.empty() ? "uid-" + std::string(name) : std::string(uid);
  return object;
}

inline core::Json bookmark_json(std::string_view rv, bool initial_end = false) {
  core::Json object = {{"metadata", {{"resourceVersion", rv}}}};
  if (initial_end) object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  return object;
}

}  // namespace kube
