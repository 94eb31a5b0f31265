#include "kube/health.hpp"

#include <gtest/gtest.h>

namespace kube {
namespace {

TEST(HealthTest, Answers) {
  bool ready = false;
  HealthChecks checks;
  checks.ready = [&] { return ready; };
  checks.metrics = [] { return std::string("up 1\n"); };
  const auto status = [&](const std::string& target, const std::string& method = "GET") {
    return answer_health(checks, {method, target, {}, "", core::Duration{0}}).status;
  };
  EXPECT_EQ(status("/healthz"), 200);
  EXPECT_EQ(status("/readyz"), 503);
  ready = true;
  EXPECT_EQ(status("/readyz?verbose"), 200);
  EXPECT_EQ(status("/metrics"), 200);
  EXPECT_EQ(status("/other"), 404);
  EXPECT_EQ(status("/healthz", "POST"), 405);
}

}  // namespace
}  // namespace kube
