// A fixture for tests against a real slurmdbd with a real MariaDB. The tests read and change the accounting data with the
// operator's own code.
//
// Needs an instance of `dev/slurm-local.sh RELEASE start DIR -a`. SLURM_REST_URL, SLURM_LOCAL_RELEASE and SLURM_LOCAL_DIR name
// the instance. tests/conformance/accounting_test.sh starts one for each release.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "core/random.hpp"
#include "net/asio_loop.hpp"
#include "net/beast_transport.hpp"
#include "plan/testing/observing.hpp"
#include "slurm/accounting/acts.hpp"
#include "slurm/rest/accounting_target.hpp"
#include "slurm/snapshot/registry.hpp"

namespace conformance {

using namespace std::chrono_literals;

inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class Slurmdbd : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string url = environment("SLURM_REST_URL");
    dir = environment("SLURM_LOCAL_DIR");
    release = environment("SLURM_LOCAL_RELEASE");
    if (url.empty()) GTEST_SKIP() << "SLURM_REST_URL is not set: see tests/conformance/accounting_test.sh";
    const std::size_t colon = url.rfind(':');
    endpoint.host = url.substr(7, colon - 7);
    endpoint.port = static_cast<std::uint16_t>(std::stoi(url.substr(colon + 1)));
    std::ifstream file(dir + "/etc/jwt.key", std::ios::binary);
    std::stringstream key;
    key << file.rdbuf();
    clusters = std::make_unique<slurm::Clusters>(
        loop, random, log, [this](const slurm::Endpoint&) { return std::make_unique<net::BeastTransport>(loop, endpoint); });
    target = std::make_unique<slurm::AccountingTarget>(loop, *clusters);
    clusters->set("c", {endpoint.host, endpoint.port}, key.str());
    clusters->set_accounting("db", {"c"});
    ASSERT_TRUE(until([&] { return clusters->snapshot("c")->complete() && all_complete(); }));
  }
  void TearDown() override {
    target.reset();
    clusters.reset();
  }

  bool until(const std::function<bool()>& test, core::Duration most = 60s) {
    const core::MonoTime end = loop.clock().mono() + 4 * most;
    bool held = test();
    std::function<void()> look = [&] {
      held = test();
      if (held || loop.clock().mono() >= end) return loop.stop();
      loop.after(core::Duration{20}, look);
    };
    if (!held) {
      loop.after(core::Duration{0}, look);
      loop.run();
    }
    return held;
  }
  [[nodiscard]] slurm::accounting::View view() const { return clusters->lists("db")->view(); }

  std::string shell(const std::string& command) const {
    std::string out;
    std::FILE* pipe = popen(command.c_str(), "r");
    std::array<char, 4096> buffer{};
    while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) out += buffer.data();
    pclose(pipe);
    while (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
  }
  std::string local(const std::string& verb, const std::string& words) const {
    return shell("dev/slurm-local.sh " + release + " " + verb + " " + dir + " " + words + " 2>&1");
  }
  std::string sacctmgr(const std::string& words) const { return local("exec", "sacctmgr --immediate " + words); }
  [[nodiscard]] bool all_complete() const {
    const auto lists = view();
    return lists.qos.complete() && lists.tres.complete() && lists.accounts.complete() && lists.users.complete() &&
           lists.associations.complete();
  }
  /// Waits until all lists are complete and were requested after this call.
  bool fresh() {
    const core::MonoTime now = loop.clock().mono();
    return until([&] {
      const auto lists = view();
      return all_complete() && std::min({lists.qos.requested_at, lists.accounts.requested_at, lists.users.requested_at,
                                         lists.associations.requested_at}) > now;
    });
  }

  plan::ActResult run(plan::ActPtr act) {
    const auto out = std::make_shared<std::optional<plan::ActResult>>();
    target->execute(std::move(act), [out](plan::ActResult result) { *out = std::move(result); });
    until([&] { return out->has_value(); });
    return out->value_or(plan::ActResult{core::fail(core::ErrorCode::kCancelled, "never told"), {}});
  }
  /// Runs the act, and waits until the lists show its outcome. Returns "", or the error's code and message.
  std::string outcome(plan::ActPtr act) {
    const plan::ActResult result = run(std::move(act));
    EXPECT_TRUE(until([&] { return std::ranges::all_of(result.gates, [](const auto& gate) { return gate->open(); }); }));
    return result.value ? "" : std::string(core::to_string(result.value.error().code)) + " " + result.value.error().message;
  }
  template <class T>
  core::Result<T> ask(std::function<void(slurm::Client::Done<T>)> start) {
    const auto out = std::make_shared<std::optional<core::Result<T>>>();
    start([out](core::Result<T> result) { *out = std::move(result); });
    until([&] { return out->has_value(); });
    return out->value_or(core::fail(core::ErrorCode::kCancelled, "no answer in time"));
  }

  std::string dir, release;
  net::Endpoint endpoint;
  net::AsioLoop loop;
  core::SystemRandom random;
  core::NullLogger log;
  std::unique_ptr<slurm::Clusters> clusters;
  std::unique_ptr<slurm::AccountingTarget> target;
};

/// A setting, and how sacctmgr shows it.
struct Shown {
  const char* setting;
  core::Json value;
  const char* format;
  const char* text;
};

}  // namespace conformance
