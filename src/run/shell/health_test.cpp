#include "run/shell/health.hpp"

#include <gtest/gtest.h>

namespace run {
namespace {

net::HttpRequest request(const std::string& target, const std::string& method) {
  return {method, target, {}, "", core::Duration{0}};
}

TEST(HealthTest, Answers) {
  bool ready = false;
  HealthChecks checks;
  checks.ready = [&] { return ready; };
  const auto status = [&](const std::string& target, const std::string& method = "GET") {
    return answer_health(checks, request(target, method)).status;
  };
  EXPECT_EQ(status("/healthz"), 200);
  EXPECT_EQ(status("/readyz"), 503);
  ready = true;
  EXPECT_EQ(status("/readyz?verbose"), 200);
  EXPECT_EQ(status("/other"), 404);
  EXPECT_EQ(status("/healthz", "POST"), 405);
}

// --metrics-addr=0 turns metrics off, so they must not appear at the other address.
TEST(HealthTest, EachAddressServesItsOwnPaths) {
  const auto status = [](const std::string& target, const std::string& method = "GET") {
    return answer_metrics([] { return std::string("up 1\n"); }, {}, request(target, method)).status;
  };
  EXPECT_EQ(answer_health({}, request("/metrics", "GET")).status, 404);
  EXPECT_EQ(status("/metrics"), 200);
  EXPECT_EQ(status("/metrics?x=y"), 200);
  EXPECT_EQ(status("/metrics", "POST"), 405);
  EXPECT_EQ(status("/healthz"), 404);
}

TEST(HealthTest, MetricsMayAskForAToken) {
  std::optional<std::string> token = "secret";
  const auto status = [&](const std::string& shown) {
    net::HttpRequest asks = request("/metrics", "GET");
    if (!shown.empty()) asks.headers["authorization"] = shown;
    return answer_metrics([] { return std::string("up 1\n"); }, [&] { return token; }, asks).status;
  };
  EXPECT_EQ(status("Bearer secret"), 200);
  EXPECT_EQ(status(""), 401);
  EXPECT_EQ(status("secret"), 401);
  EXPECT_EQ(status("Bearer secre"), 401);
  token = "rotated";
  EXPECT_EQ(status("Bearer secret"), 401);
  token = "";
  EXPECT_EQ(status("Bearer "), 401) << "an empty file is no token";
  token.reset();
  EXPECT_EQ(status("Bearer secret"), 401);
}

}  // namespace
}  // namespace run
