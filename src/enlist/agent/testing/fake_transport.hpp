// An HTTP transport whose requests the test answers.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/json.hpp"
#include "core/loop.hpp"
#include "net/http.hpp"

namespace enlist::testing {

class FakeTransport final : public net::HttpTransport {
 public:
  explicit FakeTransport(core::Loop& loop) : loop_(loop) {}

  RequestId send(net::HttpRequest request, Done done) override {
    pending.emplace(++last_, std::pair(std::move(request), std::move(done)));
    return last_;
  }
  RequestId stream(net::HttpRequest, net::StreamHandler) override { return ++last_; }
  void cancel(RequestId id) override { cancelled += static_cast<int>(pending.erase(id)); }

  /// Returns the pending request with this target, or null.
  [[nodiscard]] const net::HttpRequest* find(const std::string& target) const {
    for (const auto& [id, entry] : pending) {
      if (entry.first.target == target) return &entry.first;
    }
    return nullptr;
  }
  /// Answers the pending request with this target. Returns false if there is none.
  bool answer(const std::string& target, core::Result<net::HttpResponse> reply) {
    for (const auto& [id, entry] : pending) {
      if (entry.first.target != target) continue;
      auto node = pending.extract(id);
      loop_.after(core::Duration{0}, [done = std::move(node.mapped().second), reply = std::move(reply)] { done(reply); });
      return true;
    }
    return false;
  }
  bool answer(const std::string& target, int status, const core::Json& body) {
    return answer(target, net::HttpResponse{.status = status, .headers = {}, .body = body.dump()});
  }

  std::map<RequestId, std::pair<net::HttpRequest, Done>> pending;
  int cancelled = 0;

 private:
  core::Loop& loop_;
  RequestId last_ = 0;
};

}  // namespace enlist::testing
