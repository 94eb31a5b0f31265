// A fixture for tests of acts on the accounting database "db", through the slurmrestd of cluster "c". The derived test class
// serves slurmdbd's lists with `http`, and then calls join().
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/testing/manual_loop.hpp"
#include "slurm/rest/accounting_target.hpp"
#include "slurm/testing/fake_transport.hpp"
#include "slurm/testing/replies.hpp"

namespace slurm::testing {

class AccountingFixture : public ::testing::Test {
 protected:
  AccountingFixture() { serve_quiet_cluster(http); }

  void join() {
    clusters.set("c", {"c", 6820}, "key");
    clusters.set_accounting("db", {"c"});
    loop.advance(core::Duration{500});
  }
  static net::HttpResponse list(const std::string& name, const core::Json& rows) {
    return ok("{\"" + name + "\":" + rows.dump() + R"(,"errors":[],)" + meta() + "}");
  }
  plan::ActResult run(plan::ActPtr act) {
    std::optional<plan::ActResult> out;
    target.execute(std::move(act), [&](plan::ActResult result) { out = std::move(result); });
    for (int i = 0; i < 600 && !out; ++i) loop.advance(core::Duration{100});
    return out.value_or(plan::ActResult{core::fail(core::ErrorCode::kCancelled, "never told"), {}});
  }
  std::string outcome(plan::ActPtr act) { return text_of(run(std::move(act))); }
  /// Executes the acts together. Returns their outcomes as text, in the order of the acts.
  std::vector<std::string> outcomes(const std::vector<plan::ActPtr>& acts) {
    std::vector<std::string> out(acts.size());
    for (std::size_t i = 0; i < acts.size(); ++i)
      target.execute(acts[i], [&out, i](const plan::ActResult& result) { out[i] = text_of(result); });
    loop.advance(core::Duration{10000});
    return out;
  }
  static std::string text_of(const plan::ActResult& result) {
    return result.value ? result.value->dump()
                        : std::string(core::to_string(result.value.error().code)) + " " + result.value.error().message;
  }

  const std::string kDb = "/slurmdb/v0.0.45";
  core::ManualLoop loop;
  core::NullLogger log;
  ZeroRandom random;
  FakeTransport http{loop};
  Clusters clusters{loop, random, log, [this](const Endpoint&) { return std::make_unique<Link>(http); }};
  AccountingTarget target{loop, clusters};
};

}  // namespace slurm::testing
