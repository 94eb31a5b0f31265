// Random histories of resources that declare the same QOS or the same account. At the end, one resource must own the QOS or
// account, and no setting may be lost.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>

#include "operator/governance/testing/world.hpp"

namespace op::governance {
namespace {

using core::Json;
using testing::World;

class Race {
 public:
  Race(unsigned seed, bool qos) : random_(seed), qos_(qos), kind_(qos ? "SlurmQos" : "SlurmAccount") {
    world_.put({{"kind", "Accounting"}, {"metadata", {{"name", "demo"}}}});
  }

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  /// Simulates a random event: an act of a user or of sacctmgr, a crash, a late watch, or a pass of the operator.
  void step() {
    const std::string name = names_[static_cast<std::size_t>(below(3))];
    switch (below(8)) {
      case 0:
        if (world_.find(kind_, {"default", name}) == nullptr) put(name);
        break;
      case 1:
        if (below(3) == 0) world_.remove(kind_, {"default", name});
        break;
      case 2:
        // Until a status records the creation, the operator does not know who created the QOS or account.
        if (noted()) change(99);
        break;
      case 3:
        world_.ledger = {};
        break;
      case 4:
        world_.cut(kind_, {"default", name});
        break;
      case 5:
        world_.mend();
        break;
      default:
        pass(below(4) == 0 ? below(3) : 1000);
    }
    world_.advance(core::Duration{below(3) * 700});
  }

  /// Runs a pass that ends after `most` steps, as in a crash.
  std::vector<std::string> pass(int most = 1000) {
    plan::Plan plan = world_.plan<GovernanceController>({"default", "demo"});
    std::vector<std::string> did;
    for (const auto& [name, lane] : plan.lanes()) {
      plan::Plan part;
      for (const auto& group : lane.groups()) {
        for (const plan::Step& step : group) {
          if (most-- <= 0) break;
          part.lane(name).add(step).then();
        }
      }
      for (std::string& id : world_.carry_out(part)) did.push_back(std::move(id));
    }
    return did;
  }

  void settle() {
    world_.mend();
    int quiet = 0;
    for (int i = 0; i < 40 && quiet < 2; ++i) quiet = pass().empty() ? quiet + 1 : 0;
    ASSERT_EQ(quiet, 2) << "it does not come to rest: "
                        << world_.plan<GovernanceController>({"default", "demo"}).describe().dump(1);
  }

  void check() {
    std::vector<std::tuple<std::string, std::string, Json>> claims;
    for (const Json& document : world_.objects()) {
      if (document["kind"] != kind_) continue;
      ASSERT_FALSE(document["metadata"].contains("deletionTimestamp")) << document.dump(1);
      claims.emplace_back(document["metadata"]["creationTimestamp"], document["metadata"]["name"], document);
    }
    std::sort(claims.begin(), claims.end());
    if (claims.empty()) {
      EXPECT_EQ(found(), std::nullopt) << "left over";
      return;
    }
    for (std::size_t i = 0; i < claims.size(); ++i) {
      const Json& document = std::get<2>(claims[i]);
      const bool owns = i == 0;
      EXPECT_EQ(document["status"]["ready"], owns) << document.dump(1);
      EXPECT_EQ(document["status"].contains(qos_ ? "id" : "created"), owns) << document.dump(1);
      if (!owns) continue;
      if (qos_) EXPECT_EQ(document["status"]["id"], world_.qos.at("gpu")["id"]);
      ASSERT_NE(found(), std::nullopt);
      const std::string place = qos_ ? "" : "site: ";
      EXPECT_EQ(slurm::accounting::value_of(*found(), place + "GrpJobs"), document["spec"]["limits"]["grpJobs"]);
      // No setting of another resource is left over.
      EXPECT_EQ(slurm::accounting::value_of(*found(), place + "GrpSubmitJobs"),
                document["spec"]["limits"].value("grpSubmitJobs", Json("unlimited")));
    }
  }

 private:
  bool noted() {
    if (!found()) return false;
    const std::vector<Json> all = world_.objects();
    return std::any_of(all.begin(), all.end(), [&](const Json& document) {
      return qos_ ? core::get_int(document, {"status", "id"}) == world_.qos["gpu"]["id"]
                  : core::get_bool(document, {"status", "created"});
    });
  }

  std::optional<slurm::accounting::Settings> found() {
    if (qos_) {
      const auto row = world_.qos_of("gpu");
      return row ? std::optional(slurm::accounting::settings_of(*row)) : std::nullopt;
    }
    const auto it = world_.entities.find({World::EntityKind::kAccount, "gpu"});
    return it == world_.entities.end() ? std::nullopt : std::optional(it->second);
  }

  void change(int jobs) {
    if (qos_) {
      world_.write_qos("gpu", {{"GrpJobs", jobs}});
    } else {
      world_.write_entity({World::EntityKind::kAccount, "gpu"}, {{"site: GrpJobs", jobs}});
    }
  }

  void put(const std::string& name) {
    Json limits{{"grpJobs", name == "a" ? 1 : name == "b" ? 2 : 3}};
    if (name == "b") limits["grpSubmitJobs"] = 5;
    world_.put({{"kind", kind_},
                {"metadata", {{"name", name}, {"creationTimestamp", core::format_rfc3339(world_.now)}}},
                {"spec", {{"accountingRef", {{"name", "demo"}}}, {"name", "gpu"}, {"limits", limits}}}});
  }

  std::mt19937 random_;
  const bool qos_;
  const std::string kind_;
  World world_;
  const std::vector<std::string> names_{"a", "b", "c"};
};

void race(unsigned times, bool qos) {
  for (unsigned seed = 1; seed <= times; ++seed) {
    SCOPED_TRACE(seed);
    Race history(seed, qos);
    for (int i = 0; i < 15; ++i) history.step();
    history.settle();
    if (::testing::Test::HasFailure()) return;
    history.check();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Races, OneOwnerAndNoFlapping) {
  race(1000, true);
}

TEST(Races, OneOwnerOfAnAccount) {
  race(300, false);
}

}  // namespace
}  // namespace op::governance
