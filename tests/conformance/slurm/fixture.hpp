// The fixture of the tests of Slurm: one Slurm, real or simulated, a client, and a target with snapshots as in the operator.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "slurm/acts.hpp"
#include "slurm/rest/client.hpp"
#include "slurm/rest/target.hpp"
#include "slurm/snapshot/registry.hpp"
#include "world.hpp"

namespace conformance {

using namespace std::chrono_literals;
using core::ErrorCode;
using slurm::Client;
using slurm::Node;
using slurm::NodeUpdate;
using slurm::Table;

inline constexpr const char* kCluster = "c";
/// The pause between reconfigures. If a slurmd of 26.05 is reconfigured again while it reconfigures, it may hang for good.
inline constexpr core::Duration kApart{1000};

/// The parameter: "real", "model_24_11" or "model_26_05".
class SlurmTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "real") {
      world = real_world();
      if (!world) GTEST_SKIP() << "SLURM_REST_URL is not set: no real Slurm to try (see tests/conformance/slurm_test.sh)";
    } else {
      world = simulated_world(GetParam() == "model_24_11" ? "24.11" : "26.05");
    }
    http = world->transport();
    tokens = std::make_unique<slurm::Hs256Tokens>(world->loop().clock(), world->key(), "slurm");
    client = std::make_unique<Client>(world->loop(), *http, *tokens, log, slurm::ClientOptions{.job_details = true});
    clusters = std::make_unique<slurm::Clusters>(
        world->loop(), world->random(), log, [this](const slurm::Endpoint&) { return world->transport(); },
        slurm::PollerOptions{}, slurm::ClientOptions{.job_details = true});
    target = std::make_unique<slurm::Target>(world->loop(), *clusters);
    ASSERT_NO_FATAL_FAILURE(begin_afresh());
    clusters->set(kCluster, {"slurmrestd", 6820}, world->key());
    ASSERT_TRUE(world->until([&] { return clusters->snapshot(kCluster)->complete(); }));
  }

  void TearDown() override {
    target.reset();
    clusters.reset();
    client.reset();
    http.reset();
  }

  // --- Requests ---------------------------------------------------------------------------------------------------

  template <class T>
  core::Result<T> ask(std::function<void(Client::Done<T>)> start, core::Duration most = 40s) {
    const auto out = std::make_shared<std::optional<core::Result<T>>>();
    start([out](core::Result<T> result) { *out = std::move(result); });
    world->until([&] { return out->has_value(); }, most);
    return out->value_or(core::fail(ErrorCode::kCancelled, "no answer in time"));
  }
  /// Returns an act that deletes the record, with its present state as the expected one.
  plan::ActPtr deletion(const std::string& name, std::optional<slurm::NodeEvidence::Live> expected = std::nullopt) {
    Node seen = node(name).value_or(Node{});
    seen.name = name;
    return slurm::delete_node(kCluster, slurm::Owner::kOperator, seen, "test", expected);
  }
  /// Returns the node with its current base state. slurmctld counts allocated CPUs only when somebody requests the whole table.
  /// So this first requests the table's changes since the far future.
  core::Result<Node> node(const std::string& name) {
    constexpr std::int64_t kFarFuture = 4'102'444'800;  // 2100-01-01
    const auto counted = nodes(kFarFuture);
    if (!counted) return std::unexpected(counted.error());
    return ask<Node>([&](auto done) { client->node(name, std::move(done)); });
  }
  core::Result<Table<Node>> nodes(std::optional<std::int64_t> since = {}) {
    return ask<Table<Node>>([&](auto done) { client->nodes(since, std::move(done)); });
  }
  core::Result<Table<slurm::Job>> jobs(std::optional<std::int64_t> since = {}) {
    return ask<Table<slurm::Job>>([&](auto done) { client->jobs(since, std::move(done)); });
  }
  core::Result<Table<slurm::Partition>> partitions(std::optional<std::int64_t> since = {}) {
    return ask<Table<slurm::Partition>>([&](auto done) { client->partitions(since, std::move(done)); });
  }
  core::Result<void> update(const std::string& name, const std::string& state, const std::string& reason = "") {
    NodeUpdate change;
    change.state = state;
    if (!reason.empty()) change.reason = reason;
    return ask<void>([&](auto done) { client->update_node(name, change, std::move(done)); });
  }
  core::Result<void> remove(const std::string& name) {
    return ask<void>([&](auto done) { client->delete_node(name, std::move(done)); });
  }
  /// Returns the reservation of that name; nullopt if there is none.
  std::optional<slurm::Reservation> reservation(const std::string& name) {
    const auto all = ask<Table<slurm::Reservation>>([&](auto done) { client->reservations(std::move(done)); });
    EXPECT_TRUE(all);
    for (const auto& row : all ? all->rows : std::vector<std::shared_ptr<const slurm::Reservation>>{}) {
      if (row->name == name) return *row;
    }
    return std::nullopt;
  }
  plan::ActResult run(plan::ActPtr act) {
    const auto out = std::make_shared<std::optional<plan::ActResult>>();
    target->execute(std::move(act), [out](plan::ActResult result) { *out = std::move(result); });
    world->until([&] { return out->has_value(); }, 40s);
    return out->value_or(plan::ActResult{core::fail(ErrorCode::kCancelled, "never told"), {}});
  }
  /// Returns a mark that no job of an earlier test or run has.
  slurm::JobMark new_mark() {
    const std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    return {slurm::Owner::kBridge, "cluster-a", test + " " + core::format_rfc3339(world->loop().clock().wall())};
  }
  static std::string error_of(const core::Result<void>& result) { return result ? "" : result.error().message; }

  /// Returns the state, such as "IDLE+DRAIN", with sorted flags but without DYNAMIC_NORM; "absent", or the error's message.
  std::string state(const std::string& name) {
    const auto found = node(name);
    if (!found) return found.error().code == ErrorCode::kNotFound ? "absent" : found.error().message;
    std::string out = found->state.base;
    for (const std::string& flag : found->state.flags) {
      if (flag != "DYNAMIC_NORM") out += "+" + flag;
    }
    return out;
  }
  bool becomes(const std::string& name, const std::string& wanted, core::Duration most = 40s) {
    // Waits longer than `most`, because on a busy machine everything takes longer.
    const std::string last = awaits(name, wanted, 4 * most);
    if (last == wanted) return true;
    ADD_FAILURE() << name << " is " << last << ", not " << wanted;
    return false;
  }
  /// Waits until the node has the wanted state, or `most` has passed. Returns the state of the node then.
  std::string awaits(const std::string& name, const std::string& wanted, core::Duration most) {
    // Polls, with one request at a time and pauses between them. That finds a state soon enough, and spares a real server.
    const core::MonoTime end = world->loop().clock().mono() + most;
    std::string last = state(name);
    while (last != wanted && world->loop().clock().mono() < end) {
      pass(100ms);
      last = state(name);
    }
    return last;
  }
  std::string job_state(std::int64_t id) {
    const auto all = jobs();
    if (!all) return all.error().message;
    for (const auto& job : all->rows) {
      if (job->id == id) return job->state + (job->flags.contains("COMPLETING") ? "+COMPLETING" : "");
    }
    return "absent";
  }
  bool job_becomes(std::int64_t id, const std::string& wanted, core::Duration most = 30s) {
    const core::MonoTime end = world->loop().clock().mono() + 4 * most;
    std::string last;
    while (world->loop().clock().mono() < end) {
      last = job_state(id);
      if (last == wanted) return true;
      pass(100ms);
    }
    ADD_FAILURE() << "job " << id << " is " << last << ", not " << wanted;
    return false;
  }
  void pass(core::Duration time) {
    const core::MonoTime end = world->loop().clock().mono() + time;
    world->until([&] { return world->loop().clock().mono() >= end; }, time + 1s);
  }
  bool opens(const plan::ActResult& result, core::Duration most = 10s) {
    return world->until(
        [&] { return std::ranges::all_of(result.gates, [](const plan::GatePtr& gate) { return gate->open(); }); }, most);
  }

  /// Restores the initial state: no jobs, n1 and n2 idle without a reason, the original configuration.
  void begin_afresh() {
    // Reconfigures only if necessary: while slurmd loads a configuration, jobs may take half a minute to end.
    const auto parts = partitions();
    ASSERT_TRUE(parts) << parts.error().message;
    if (parts->rows.size() != 1) {
      world->configure("");
      const auto reconfigured = ask<void>([&](auto done) { client->reconfigure(std::move(done)); });
      ASSERT_TRUE(reconfigured) << error_of(reconfigured);
      pass(kApart);
    }
    if (reservation("maint")) {
      ASSERT_TRUE(ask<void>([&](auto done) { client->delete_reservation("maint", std::move(done)); }));
    }
    const auto all = jobs();
    ASSERT_TRUE(all) << all.error().message;
    for (const auto& job : all->rows) {
      if (job->state == "SUSPENDED") world->resume(job->id);
      if (job->holds_nodes() || job->state == "PENDING") world->cancel(job->id);
    }
    for (const char* name : {"n1", "n2"}) {
      const std::string now = state(name);
      if (now == "absent") {
        try {
          world->stop_node(name);
        } catch (const std::exception&) {
          // The slurmd does not run.
        }
        world->start_node(name, kNodeConf);
      } else if (now.find("DRAIN") != std::string::npos || now.starts_with("DOWN")) {
        try {
          world->scontrol(name, "RESUME", "");
        } catch (const std::exception&) {
          // The node has returned to service by itself meanwhile.
        }
      }
    }
    for (const char* name : {"n1", "n2"}) {
      if (awaits(name, "IDLE", 80s) == "IDLE+NOT_RESPONDING") {
        // A slurmd of 26.05 may hang for good after refused reconfigures in the previous test.
        world->stop_node(name);
        world->start_node(name, kNodeConf);
      }
      ASSERT_TRUE(becomes(name, "IDLE"));
    }
    for (const char* name : {"n1", "n2"}) {
      NodeUpdate clean;
      clean.comment = "";
      clean.features = {"cpu"};
      const auto cleaned = ask<void>([&](auto done) { client->update_node(name, clean, std::move(done)); });
      ASSERT_TRUE(cleaned) << error_of(cleaned);
    }
  }

  [[nodiscard]] bool before_26_05() const { return world->release() < "26.05"; }

  core::NullLogger log;
  std::unique_ptr<World> world;
  std::unique_ptr<net::HttpTransport> http;
  std::unique_ptr<slurm::Hs256Tokens> tokens;
  std::unique_ptr<Client> client;
  std::unique_ptr<slurm::Clusters> clusters;
  std::unique_ptr<slurm::Target> target;
};

inline const auto kWorlds = ::testing::Values("real", "model_24_11", "model_26_05");

}  // namespace conformance
