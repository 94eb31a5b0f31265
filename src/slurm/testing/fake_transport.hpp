// An HttpTransport for unit tests. It answers each request after `latency` with the answer that the test has set with on(), or
// else with 404. The test can hold requests back.
//
//   FakeTransport http(loop);
//   http.on("GET", "/slurm/v0.0.45/ping/", {200, {}, R"({"pings":[...]})"});
//   EXPECT_EQ(http.asked("GET", "/slurm/v0.0.45/ping/"), 1);
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "core/random.hpp"
#include "net/http.hpp"

namespace slurm {

class FakeTransport final : public net::HttpTransport {
 public:
  using Answer = core::Result<net::HttpResponse>;
  using Answerer = std::function<Answer(const net::HttpRequest&)>;

  explicit FakeTransport(core::Loop& loop) : loop_(loop) {}

  RequestId send(net::HttpRequest request, Done done) override {
    const RequestId id = ++last_id_;
    log.push_back(request);
    const std::string name = request.method + " " + request.target;
    waiting_.emplace(id, std::pair(std::move(request), std::move(done)));
    if (!held.empty() && name.find(held) != std::string::npos) return id;
    loop_.after(latency, [this, id] { answer(id); });
    return id;
  }
  RequestId stream(net::HttpRequest, net::StreamHandler) override { return 0; }
  void cancel(RequestId id) override { waiting_.erase(id); }

  /// Answers requests of this method whose target starts with `target`. The longest match counts.
  void on(const std::string& method, const std::string& target, Answerer answerer) {
    answers_[method + " " + target] = std::move(answerer);
  }
  void on(const std::string& method, const std::string& target, net::HttpResponse response) {
    on(method, target, [response](const net::HttpRequest&) -> Answer { return response; });
  }
  /// Returns the number of requests of this method whose target starts with `target`.
  [[nodiscard]] int asked(const std::string& method, const std::string& target) const {
    int count = 0;
    for (const auto& request : log) count += request.method == method && request.target.starts_with(target) ? 1 : 0;
    return count;
  }
  /// Answers all waiting requests at once, and no longer holds requests back.
  void release() {
    held.clear();
    std::vector<RequestId> ids;
    for (const auto& [id, entry] : waiting_) ids.push_back(id);
    for (const RequestId id : ids) answer(id);
  }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }

  std::vector<net::HttpRequest> log;
  core::Duration latency{1};
  std::string held;  ///< Requests whose "METHOD target" contains this wait for release().

 private:
  void answer(RequestId id) {
    const auto entry = waiting_.extract(id);
    if (entry.empty()) return;
    const auto& [request, done] = entry.mapped();
    const std::string name = request.method + " " + request.target;
    const Answerer* best = nullptr;
    std::size_t length = 0;
    for (const auto& [prefix, answerer] : answers_) {
      if (name.starts_with(prefix) && prefix.size() >= length) {
        best = &answerer;
        length = prefix.size();
      }
    }
    done(best != nullptr ? (*best)(request) : Answer(net::HttpResponse{404, {}, "Unable to find requested URL"}));
  }

  core::Loop& loop_;
  RequestId last_id_ = 0;
  std::map<RequestId, std::pair<net::HttpRequest, Done>> waiting_;
  std::map<std::string, Answerer> answers_;
};

/// A transport that forwards to one FakeTransport, so that all connections reach the same server.
struct Link final : net::HttpTransport {
  explicit Link(FakeTransport& to) : to_(to) {}
  RequestId send(net::HttpRequest request, Done done) override { return to_.send(std::move(request), std::move(done)); }
  RequestId stream(net::HttpRequest, net::StreamHandler) override { return 0; }
  void cancel(RequestId id) override { to_.cancel(id); }
  FakeTransport& to_;
};

struct ZeroRandom final : core::Random {
  std::uint64_t below(std::uint64_t) override { return 0; }
  std::string bytes(std::size_t n) override { return std::string(n, '0'); }
  [[nodiscard]] std::unique_ptr<core::Random> stream(std::string_view) const override { return std::make_unique<ZeroRandom>(); }
};

}  // namespace slurm
